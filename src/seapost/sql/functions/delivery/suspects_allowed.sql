-- Purpose: how many suspects of a destination a claim may take now; 0: none is due, or some are out already.
-- The size shrinks eight-fold with each attempt in a row that ended without an answer, so that one event that kills its
-- worker ends up alone; and of one destination one such batch is out at a time, across all processes, because of two
-- deliveries that are each alone in a call, but at once, both would be blamed.
-- A holder that died blocks no longer than its lease.
-- Locks: the advisory lock "suspects" of the destination, to the end of the caller's transaction; tried, never waited for.
-- Errors: SP012 isolation: with an older snapshot the lock would prove nothing.
create or replace function seapost.delivery_suspects_allowed(p_destination text, p_limit int, p_lanes int, p_moment timestamptz)
returns int
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set plan_cache_mode = force_generic_plan  -- one plan, not a new one for each number of lanes
as $$
declare
    v_limit int;
begin
    select greatest(1, p_limit >> least(3 * h.lost_count, 30)) into v_limit
    from generate_series(0, p_lanes - 1) as l (lane)
    cross join lateral (
        select r.lost_count, r.available_at, r.created_at, r.event_id
        from seapost.delivery_ready as r
        where r.destination = p_destination and r.suspect and r.lane = l.lane and r.available_at <= p_moment
        order by r.available_at, r.created_at, r.event_id
        limit 1) as h
    order by h.available_at, h.created_at, h.event_id
    limit 1;
    if not found then
        return 0;
    end if;
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception using errcode = 'SP012', message = 'suspects are claimed in READ COMMITTED transactions only';
    end if;
    if not pg_try_advisory_xact_lock(hashtextextended('seapost.suspects/' || p_destination, 0)) then
        return 0;
    end if;
    -- A statement of its own: its snapshot is taken after the lock and shows what the last holder committed.
    perform from seapost.delivery_lease as l
    where l.destination = p_destination and l.lost_count > 0 and l.expires_at > p_moment limit 1;
    return case when found then 0 else v_limit end;
end $$;
