-- Purpose: leases due deliveries of one destination, oldest first, and starts an attempt for each (CLM-01..03). The caller
-- commits before it calls anybody (CLM-04). Where the destination has fair lanes, each lane with something due gets an
-- equal share of the claim (F23); p_first_lane says which of them come first when there is less to give than lanes.
-- p_low is the caller's low-water hint, one moment for each lane from 0 on: where its last claim ended. It only skips dead
-- index entries; what commits below it is found by the next sweep without it, and it is never proof of anything (AMB-48).
-- p_suspects claims deliveries whose last attempts ended without an answer about them; see delivery_suspects_allowed.
-- Locks: for suspects, the advisory lock "suspects" of the destination; the chosen delivery_ready rows, SKIP LOCKED.
-- Errors: SP012 isolation (suspects), SP013 argument.
create or replace function seapost.delivery_claim_v1(
    p_destination text, p_limit int, p_owner text, p_lease interval,
    p_low timestamptz[] default null, p_suspects boolean default false, p_first_lane int default 0
)
returns table (
    event_id uuid, attempt_id bigint, token uuid, attempt_number int, failure_count int, lost_count int, company int,
    member_id int, event_digest bytea, envelope bytea, available_at timestamptz, lane smallint
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set plan_cache_mode = force_generic_plan  -- arrays of any length would have each call planned anew
set timezone = 'UTC'  -- so that an interval of a day is 24 hours, whatever zone the session lives in
as $$
#variable_conflict use_column
declare
    v_moment timestamptz := seapost.clock_now();
    v_token uuid := gen_random_uuid();  -- random: a restored or promoted database must not reissue an old worker's token
    v_lanes int := coalesce((select s.lanes_claimed from seapost.destination_setting as s where s.destination = p_destination), 1);
    v_low timestamptz := coalesce(p_low[1], '-infinity');
    v_limit int := p_limit;
    v_places tid[] := '{}';
begin
    if p_destination is null or p_limit is null or p_limit not between 1 and 10000 or p_owner is null
       or p_lease is null or p_lease not between interval '100 milliseconds' and interval '1 day'
       or p_suspects is null or p_first_lane is null or p_first_lane not between 0 and 10000 then
        raise exception using errcode = 'SP013',
            message = 'p_limit must be 1 to 10000, p_lease 100 ms to 1 day, p_first_lane 0 to 10000, '
                'p_destination, p_owner and p_suspects not null';
    end if;
    if p_suspects then
        v_limit := seapost.delivery_suspects_allowed(p_destination, p_limit, v_lanes, v_moment);
        if v_limit = 0 then
            return;
        end if;
    end if;
    if v_lanes > 1 then
        v_places := seapost.delivery_choose_fairly(p_destination, v_limit, p_suspects, v_lanes, p_first_lane, p_low, v_moment);
        v_limit := 0;
    end if;
    return query
    with chosen as materialized (  -- materialized: the limit is applied once, whatever the plan
        select c.place
        from (select r.ctid as place
              from seapost.delivery_ready as r
              where r.destination = p_destination and r.suspect = p_suspects and r.lane = 0
                and r.available_at <= v_moment and r.available_at >= v_low
              order by r.available_at, r.created_at, r.event_id
              limit v_limit
              for update skip locked) as c
        union all select u.place from unnest(v_places) as u (place)),
    taken as (  -- by ctid: rows of delivery_ready are never updated, and these are locked by us
        delete from seapost.delivery_ready as r using chosen as c where r.ctid = c.place
        returning r.event_id, r.available_at, r.created_at, r.member_id, r.attempt_count + 1 as attempt_number,
            r.failure_count, r.lost_count, r.event_digest, r.lane, nextval('seapost.attempt_id') as attempt_id),
    leased as (
        insert into seapost.delivery_lease (event_id, attempt_id, token, expires_at, created_at, member_id,
            attempt_count, failure_count, lost_count, company, event_digest, destination, lane)
        select t.event_id, t.attempt_id, v_token, v_moment + p_lease, t.created_at, t.member_id,
            t.attempt_number, t.failure_count, t.lost_count, (select count(*)::int from chosen), t.event_digest, p_destination, t.lane
        from taken as t),
    started as (
        insert into seapost.delivery_attempt_start (event_id, attempt_id, token, started_at, attempt_number, destination, owner)
        select t.event_id, t.attempt_id, v_token, v_moment, t.attempt_number, p_destination, p_owner from taken as t)
    select t.event_id, t.attempt_id, v_token, t.attempt_number, t.failure_count, t.lost_count,
        (select count(*)::int from chosen), t.member_id, t.event_digest, e.envelope, t.available_at, t.lane
    from taken as t
    cross join lateral (  -- limit: keeps one probe per row, where a join planned on an empty table would read every event
        select e.envelope from seapost.event as e where e.event_id = t.event_id limit 1) as e
    order by t.available_at, t.created_at, t.event_id;
end $$;
