-- Purpose: which migrations this database has, so that every process can refuse a schema it does not know.
create view seapost.schema_versions as
select m.number, m.name, m.phase, m.checksum, m.applied_at, m.release, m.finished_at
from seapost.schema_migration as m;
