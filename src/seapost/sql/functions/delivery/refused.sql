-- Purpose: tells why a settle call did not move a delivery: 'invalid' while its lease is still the caller's, else 'stale'.
-- p_done are the attempts that the call has finished. An attempt is named by its event as well: of the same number beside
-- another event nothing was moved, so that is refused too.
-- Locks: none.
-- Errors: none.
create or replace function seapost.delivery_refused(
    p_destination text, p_event_ids uuid[], p_attempt_ids bigint[], p_tokens uuid[], p_done bigint[]
)
returns table (event_id uuid, attempt_id bigint, result text)
language sql
stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
    select g.event_id, g.attempt_id,
        case when exists (
            select from seapost.delivery_lease as l
            where l.event_id = g.event_id and l.destination = p_destination
              and l.attempt_id = g.attempt_id and l.token = g.token offset 0) then 'invalid' else 'stale' end
    from unnest(p_event_ids, p_attempt_ids, p_tokens) as g (event_id, attempt_id, token)
    where (g.attempt_id = any (p_done) and exists (
        select from seapost.delivery_attempt_finish as f
        where f.event_id = g.event_id and f.attempt_id = g.attempt_id offset 0)) is not true
$$;
