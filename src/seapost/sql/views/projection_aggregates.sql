-- Purpose: how far each aggregate was applied by each version of a projection.
create view seapost.projection_aggregates as
select a.projection_name, a.projection_version, a.producer, a.aggregate_kind, a.aggregate_id, a.revision, a.last_event_id
from seapost.projection_aggregate as a where a.revision > 0;
