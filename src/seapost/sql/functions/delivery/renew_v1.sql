-- Purpose: lengthens the lease of what still runs (CLM-05). Equality of attempt and token decides, not time: a lease that
-- has expired but is not recovered yet may still be renewed (AMB-06). Returns the renewed events; the rest is lost.
-- Locks: the delivery_lease rows in event order.
-- Errors: SP013 argument.
create or replace function seapost.delivery_renew_v1(
    p_destination text, p_event_ids uuid[], p_attempt_ids bigint[], p_tokens uuid[], p_lease interval
)
returns setof uuid
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set timezone = 'UTC'  -- so that an interval of a day is 24 hours, whatever zone the session lives in
as $$
begin
    perform seapost.delivery_check_arguments(p_destination, p_event_ids, cardinality(p_attempt_ids), cardinality(p_tokens));
    if p_lease is null or p_lease not between interval '100 milliseconds' and interval '1 day' then
        raise exception using errcode = 'SP013', message = 'p_lease must be 100 ms to 1 day';
    end if;
    return query
    with given as materialized (
        select * from unnest(p_event_ids, p_attempt_ids, p_tokens) as g (event_id, attempt_id, token) order by event_id),
    held as materialized (
        select l.event_id
        from given as g
        cross join lateral (
            select l.event_id from seapost.delivery_lease as l
            where l.event_id = g.event_id and l.destination = p_destination
              and l.attempt_id = g.attempt_id and l.token = g.token
            for update) as l)
    update seapost.delivery_lease as l set expires_at = seapost.clock_now() + p_lease
    where l.event_id = any (array(select h.event_id from held as h)) and l.destination = p_destination
    returning l.event_id;
end $$;
