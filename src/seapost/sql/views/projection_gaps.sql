-- Purpose: the revisions that were awaited, filled or not: an open gap holds back every later event of its aggregate.
create view seapost.projection_gaps as
select g.projection_name, g.projection_version, g.producer, g.aggregate_kind, g.aggregate_id, g.expected_revision,
       g.seen_revision, g.first_seen_at, g.resolved_at
from seapost.projection_gap as g;
