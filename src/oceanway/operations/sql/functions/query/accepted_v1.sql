-- Purpose: accepted envelopes after a given one, in order of their event identifier: the source of a rebuild for events of
--   other producers (AMB-39).
-- Locks: none.
-- Errors: none.
create or replace function operations.query_accepted_v1(p_after uuid, p_limit integer)
returns table (event_id uuid, envelope bytea)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select a.event_id, a.envelope from operations.accepted_events as a
    where p_after is null or a.event_id > p_after
    order by a.event_id limit least(greatest(p_limit, 1), 1000)
$$;
