-- Purpose: how far each version was built: for people, and for the time that is left. It proves nothing (ORD-04).
create view seapost.projection_rebuilds as
select r.projection_name, r.projection_version, v.state, r.started_at, r.moved_at, r.finished_at, r.passes,
       r.applied_count, r.expected_count
from seapost.projection_rebuild as r
join seapost.projection_version as v
    on v.projection_name = r.projection_name and v.projection_version = r.projection_version;
