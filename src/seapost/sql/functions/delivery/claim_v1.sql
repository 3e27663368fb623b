-- Purpose: leases due deliveries of one destination, oldest first, and starts an attempt for each, in one statement
-- (CLM-01..03). The caller commits before it calls anybody (CLM-04).
-- p_low is the caller's low-water hint: where its last claim ended. It only skips dead index entries; what commits below
-- it is found by the next sweep with '-infinity', and it is never proof of anything (AMB-48).
-- p_suspects claims deliveries whose last attempts ended without an answer about them, in batches that shrink eight-fold
-- with each such end, so that one event that kills its worker ends up alone and exhausts nobody else's attempts.
-- Locks: the chosen delivery_ready rows, SKIP LOCKED.
-- Errors: SP013 argument.
create or replace function seapost.delivery_claim_v1(
    p_destination text, p_limit int, p_owner text, p_lease interval,
    p_low timestamptz default '-infinity', p_suspects boolean default false
)
returns table (
    event_id uuid, attempt_id bigint, token uuid, attempt_number int, failure_count int, lost_count int, company int,
    member_id int, event_digest bytea, envelope bytea, available_at timestamptz
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set timezone = 'UTC'  -- so that an interval of a day is 24 hours, whatever zone the session lives in
as $$
#variable_conflict use_column
declare
    v_moment timestamptz := seapost.clock_now();
    v_token uuid := gen_random_uuid();  -- random: a restored or promoted database must not reissue an old worker's token
    v_limit int := p_limit;
begin
    if p_destination is null or p_limit is null or p_limit not between 1 and 10000 or p_owner is null
       or p_lease is null or p_lease not between interval '100 milliseconds' and interval '1 day' then
        raise exception using errcode = 'SP013',
            message = 'p_limit must be 1 to 10000, p_lease 100 ms to 1 day, p_destination and p_owner not null';
    end if;
    if p_suspects then
        select greatest(1, p_limit >> least(3 * r.lost_count, 30)) into v_limit
        from seapost.delivery_ready as r
        where r.destination = p_destination and r.suspect and r.available_at <= v_moment
        order by r.available_at, r.created_at, r.event_id
        limit 1;
        if not found then
            return;
        end if;
    end if;
    return query
    with chosen as materialized (  -- materialized: the limit is applied once, whatever the plan
        select r.ctid as place
        from seapost.delivery_ready as r
        where r.destination = p_destination and r.suspect = p_suspects
          and r.available_at <= v_moment and r.available_at >= p_low
        order by r.available_at, r.created_at, r.event_id
        limit v_limit
        for update skip locked),
    taken as (  -- by ctid: rows of delivery_ready are never updated, and these are locked by us
        delete from seapost.delivery_ready as r using chosen as c where r.ctid = c.place
        returning r.event_id, r.available_at, r.created_at, r.member_id, r.attempt_count + 1 as attempt_number,
            r.failure_count, r.lost_count, r.event_digest, nextval('seapost.attempt_id') as attempt_id),
    leased as (
        insert into seapost.delivery_lease (event_id, attempt_id, token, expires_at, created_at, member_id,
            attempt_count, failure_count, lost_count, company, event_digest, destination)
        select t.event_id, t.attempt_id, v_token, v_moment + p_lease, t.created_at, t.member_id,
            t.attempt_number, t.failure_count, t.lost_count, (select count(*)::int from chosen), t.event_digest, p_destination
        from taken as t),
    started as (
        insert into seapost.delivery_attempt_start (event_id, attempt_id, token, started_at, attempt_number, destination, owner)
        select t.event_id, t.attempt_id, v_token, v_moment, t.attempt_number, p_destination, p_owner from taken as t)
    select t.event_id, t.attempt_id, v_token, t.attempt_number, t.failure_count, t.lost_count,
        (select count(*)::int from chosen), t.member_id, t.event_digest, e.envelope, t.available_at
    from taken as t
    cross join lateral (  -- limit: keeps one probe per row, where a join planned on an empty table would read every event
        select e.envelope from seapost.event as e where e.event_id = t.event_id limit 1) as e
    order by t.available_at, t.created_at, t.event_id;
end $$;
