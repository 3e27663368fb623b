-- Purpose: the tables that each version of a projection keeps its view in, as its code declared them.
create view seapost.projection_tables as
select t.projection_name, t.projection_version, t.schema_name, t.table_name
from seapost.projection_table as t;
