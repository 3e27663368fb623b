-- Purpose: the aggregates of a version: how many, the digest of their set, and whether each stands where its receipts say:
-- revisions have no holes, so they add up to the number of receipts, and each last event is of this very revision.
-- Locks: none.
-- Errors: none.
create or replace function seapost.completeness_aggregates(p_name text, p_version text, p_receipts bigint)
returns table (member_count bigint, set_digest text, is_consistent boolean)
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
    select count(*), seapost.completeness_set_digest(count(*),
            sum(hash_record_extended(row (a.producer, a.aggregate_kind, a.aggregate_id, a.revision, a.last_event_id), 1)::numeric),
            sum(hash_record_extended(row (a.producer, a.aggregate_kind, a.aggregate_id, a.revision, a.last_event_id), 2)::numeric)),
        coalesce(sum(a.revision), 0) = p_receipts
            and count(*) filter (where (s.aggregate_kind, s.aggregate_id, s.aggregate_revision)
                is distinct from (a.aggregate_kind, a.aggregate_id, a.revision)) = 0
    from seapost.projection_aggregate as a
    left join seapost.source_events as s on s.event_id = a.last_event_id
    where a.projection_name = p_name and a.projection_version = p_version and a.revision > 0
$$;
