-- Purpose: chooses and locks due deliveries of a destination that has fair lanes, at most p_limit (F23). Each lane with
-- something due gets an equal share first, oldest first; what is left goes to the lanes that hold more, in further rounds
-- that go on where the last one ended, so that no row is read twice. With less to give than lanes have something due,
-- those from p_first_lane on come first, and the caller moves that on.
-- Locks: the chosen delivery_ready rows, SKIP LOCKED.
-- Errors: none.
create or replace function seapost.delivery_choose_fairly(
    p_destination text, p_limit int, p_suspects boolean, p_lanes int, p_first_lane int, p_low timestamptz[], p_moment timestamptz
)
returns tid[]
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set plan_cache_mode = force_generic_plan  -- arrays of any length would have each call planned anew
as $$
declare
    v_left int := p_limit;
    v_share int;
    v_places tid[] := '{}';
    v_round tid[];
    -- The lanes that may hold more, in their order, and the key after which each is read on.
    v_lanes int[] := array(select (s.step + p_first_lane) % p_lanes from generate_series(0, p_lanes - 1) as s (step) order by s.step);
    v_available timestamptz[] := array(
        select coalesce(p_low[l.lane + 1], '-infinity') from unnest(v_lanes) with ordinality as l (lane, line) order by l.line);
    v_created timestamptz[] := array_fill('-infinity'::timestamptz, array[p_lanes]);
    v_events uuid[] := array_fill('00000000-0000-0000-0000-000000000000'::uuid, array[p_lanes]);
begin
    while v_left > 0 and cardinality(v_lanes) > 0 loop
        v_share := greatest(1, v_left / cardinality(v_lanes));
        with found as materialized (
            select h.line, h.lane, r.place, r.available_at, r.created_at, r.event_id
            from unnest(v_lanes, v_available, v_created, v_events)
                with ordinality as h (lane, available_at, created_at, event_id, line)
            cross join lateral (
                select r.ctid as place, r.available_at, r.created_at, r.event_id
                from seapost.delivery_ready as r
                where r.destination = p_destination and r.suspect = p_suspects and r.lane = h.lane
                  and r.available_at <= p_moment
                  and (r.available_at, r.created_at, r.event_id) > (h.available_at, h.created_at, h.event_id)
                order by r.available_at, r.created_at, r.event_id
                limit v_share
                for update skip locked) as r
            limit v_left),
        ends as (
            select distinct on (f.line) f.line, f.lane, f.available_at, f.created_at, f.event_id,
                count(*) over (partition by f.line) as number
            from found as f
            order by f.line, f.available_at desc, f.created_at desc, f.event_id desc)
        select (select array_agg(f.place) from found as f),
            array_agg(e.lane order by e.line), array_agg(e.available_at order by e.line),
            array_agg(e.created_at order by e.line), array_agg(e.event_id order by e.line)
        into v_round, v_lanes, v_available, v_created, v_events
        from ends as e
        where e.number = v_share;
        v_places := v_places || v_round;
        v_left := p_limit - cardinality(v_places);
    end loop;
    -- In the order of their pages, which is nearly that of time: lane by lane, each index below would be entered all over.
    return array(select u.place from unnest(v_places) as u (place) order by u.place);
end $$;
