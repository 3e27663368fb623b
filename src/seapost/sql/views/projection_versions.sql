-- Purpose: the projections of this database and the summary of each version. A count and a last time say nothing about
-- whether earlier events were all applied (OPS-07).
create view seapost.projection_versions as
select v.projection_name, v.projection_version, v.state, v.registered_at, p.projection_version is not null as is_current,
       v.claim_token is not null as is_fed, v.rollback_until, v.stalled_event_id, v.stalled_reason, v.stalled_at,
       coalesce(s.applied_count, 0) as applied_count, s.last_applied_at, g.open_gaps, g.oldest_gap_at
from seapost.projection_version as v
left join seapost.projection_pointer as p
    on p.projection_name = v.projection_name and p.projection_version = v.projection_version
left join lateral (
    select sum(t.applied_count)::bigint as applied_count, max(t.last_applied_at) as last_applied_at
    from seapost.projection_summary as t
    where t.projection_name = v.projection_name and t.projection_version = v.projection_version) as s on true
left join lateral (
    select count(*) as open_gaps, min(o.first_seen_at) as oldest_gap_at
    from seapost.projection_gap as o
    where o.projection_name = v.projection_name and o.projection_version = v.projection_version
      and o.resolved_at is null) as g on true;
