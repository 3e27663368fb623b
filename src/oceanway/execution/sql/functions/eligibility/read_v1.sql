-- Purpose: the manifests of attempts and how they ended, each with its event, and the conflict under which an attempt
--   stands, in the order asked (REF-18, REF-19).
-- Locks: none.
-- Errors: none; what is not there is null.
create or replace function execution.eligibility_read_v1(p_attempts text[])
returns table (manifest bytea, fact bytea, event_id uuid, event_envelope_sha256 text, conflict bytea)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select a.document, e.document, e.finalized_event_id, s.event_envelope_sha256, c.document
    from unnest(p_attempts) with ordinality as i (attempt_id, position)
    left join execution.attempt as a on a.execution_attempt_id = i.attempt_id
    left join execution.eligibility_fact as e on e.execution_attempt_id = i.attempt_id
    left join execution.event_source as s on s.event_id = e.finalized_event_id
    left join execution.eligibility_conflict as c on c.execution_attempt_id = i.attempt_id and c.repaired_at is null
    order by i.position;
$$;
