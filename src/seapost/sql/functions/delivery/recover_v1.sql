-- Purpose: ends attempts whose lease has expired by the database's clock with the finish lease_expired_unknown and makes
-- their deliveries due again, in one transaction (CLM-07, AMB-25). The only way to recover (SEC-04).
-- Locks: the expired delivery_lease rows, SKIP LOCKED: an acknowledgement that holds the row wins; one that comes later
--   finds nothing and is stale.
-- Errors: SP013 argument.
create or replace function seapost.delivery_recover_v1(p_limit int, p_delay interval default interval '0')
returns table (destination text, recovered bigint)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set timezone = 'UTC'  -- so that an interval of a day is 24 hours, whatever zone the session lives in
as $$
#variable_conflict use_column
declare
    v_moment timestamptz := seapost.clock_now();
begin
    if p_limit is null or p_limit not between 1 and 10000
       or p_delay is null or p_delay not between interval '0' and interval '1 day' then
        raise exception using errcode = 'SP013', message = 'p_limit must be 1 to 10000 and p_delay 0 to 1 day';
    end if;
    return query
    with expired as materialized (
        select l.event_id, l.destination, l.attempt_id
        from seapost.delivery_lease as l
        where l.expires_at <= v_moment
        order by l.expires_at, l.event_id
        limit p_limit
        for update skip locked),
    moved as (  -- an array of keys, then the exact pairs: no join order to go wrong
        delete from seapost.delivery_lease as l
        where l.event_id = any (array(select x.event_id from expired as x))
          and exists (select from expired as x where x.event_id = l.event_id and x.destination = l.destination
                                                 and x.attempt_id = l.attempt_id)
        returning l.*),
    finished as (
        insert into seapost.delivery_attempt_finish (event_id, attempt_id, finished_at, outcome, error_code)
        select m.event_id, m.attempt_id, v_moment, 4, 'lease_expired' from moved as m),
    waiting as (
        insert into seapost.delivery_ready (event_id, available_at, created_at, member_id, attempt_count,
            failure_count, lost_count, event_digest, destination, lane)
        select m.event_id, v_moment + p_delay, m.created_at, m.member_id, m.attempt_count,
            m.failure_count + (m.company = 1)::int, m.lost_count + 1, m.event_digest, m.destination, m.lane
        from moved as m)
    select m.destination, count(*) from moved as m group by m.destination;
end $$;
