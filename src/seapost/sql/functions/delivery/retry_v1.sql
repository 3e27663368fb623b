-- Purpose: finishes attempts as retryable and makes their deliveries due again after a delay (DLV-04, DLV-13, STO-21).
-- p_counted: the finish counts towards a configured maximum (AMB-18). p_lost: the attempt ended without an answer about
-- this delivery; such an end counts only if the delivery was claimed alone. Returns only what was refused.
-- Locks: the delivery_lease rows in event order.
-- Errors: SP011 a lease moved twice, SP013 argument, 23505 a delivery stands twice in the call, 23514 a reference is not
--   [A-Za-z0-9_-]{1,64}; all roll the whole call back.
create or replace function seapost.delivery_retry_v1(
    p_destination text, p_event_ids uuid[], p_attempt_ids bigint[], p_tokens uuid[], p_delays interval[],
    p_codes text[], p_refs text[], p_counted boolean[], p_lost boolean[]
)
returns table (event_id uuid, attempt_id bigint, result text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set timezone = 'UTC'  -- so that an interval of a day is 24 hours, whatever zone the session lives in
as $$
#variable_conflict use_column
declare
    v_moment timestamptz := seapost.clock_now();
    v_done bigint[];
    v_held int;
begin
    perform seapost.delivery_check_arguments(p_destination, p_event_ids, cardinality(p_attempt_ids), cardinality(p_tokens),
        cardinality(p_delays), cardinality(p_codes), cardinality(p_refs), cardinality(p_counted), cardinality(p_lost));
    if exists (select from unnest(p_delays) as d (delay)
               where delay is null or delay not between interval '0' and interval '30 days')
       or exists (select from unnest(p_codes) as c (code) where code is null or code not in (
           'dependency_unavailable', 'timeout', 'capacity_protected', 'owner_unreadable', 'revision_gap',
           'fence_unbindable', 'ack_invalid', 'worker_stopped')) then
        raise exception using errcode = 'SP013', message = 'p_delays must be 0 to 30 days and p_codes retryable error codes';
    end if;
    with given as materialized (
        select * from unnest(p_event_ids, p_attempt_ids, p_tokens, p_delays, p_codes, p_refs, p_counted, p_lost)
            as g (event_id, attempt_id, token, delay, code, ref, counted, lost) order by event_id),
    held as materialized (
        select g.*, l.created_at, l.member_id, l.attempt_count, l.failure_count, l.lost_count, l.company, l.event_digest, l.lane
        from given as g
        cross join lateral (
            select l.created_at, l.member_id, l.attempt_count, l.failure_count, l.lost_count, l.company, l.event_digest, l.lane
            from seapost.delivery_lease as l
            where l.event_id = g.event_id and l.destination = p_destination
              and l.attempt_id = g.attempt_id and l.token = g.token
            for update) as l),
    moved as (
        delete from seapost.delivery_lease as l
        where l.event_id = any (array(select h.event_id from held as h)) and l.destination = p_destination
        returning l.attempt_id),
    finished as (
        insert into seapost.delivery_attempt_finish (event_id, attempt_id, finished_at, outcome, error_code, error_ref)
        select h.event_id, h.attempt_id, v_moment, 2, h.code, h.ref from held as h),
    waiting as (
        insert into seapost.delivery_ready (event_id, available_at, created_at, member_id, attempt_count,
            failure_count, lost_count, event_digest, destination, lane)
        select h.event_id, v_moment + h.delay, h.created_at, h.member_id, h.attempt_count,
            h.failure_count + (h.counted and (not h.lost or h.company = 1))::int,
            case when h.lost then h.lost_count + 1 else 0 end, h.event_digest, p_destination, h.lane
        from held as h)
    select array_agg(m.attempt_id), (select count(*) from held) into v_done, v_held from moved as m;
    if coalesce(cardinality(v_done), 0) <> v_held then
        raise exception using errcode = 'SP011', message = 'a lease moved twice', detail = 'destination ' || p_destination;
    end if;
    if v_held < cardinality(p_event_ids) then
        return query select * from seapost.delivery_refused(p_destination, p_event_ids, p_attempt_ids, p_tokens, v_done);
    end if;
end $$;
