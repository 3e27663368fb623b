-- Purpose: every limit of a destination with the state of its gate. closed_for is zero when the gate is open; credit is
-- how many deliveries may be appended before somebody counts again; waiting is what the last closure saw, null when open.
-- Locks: none.
-- Errors: none.
create or replace function seapost.backpressure_show_v1()
returns table (
    destination text, watermark int, action text, wait_seconds int, changed_at timestamptz,
    closed_for interval, credit int, waiting int
)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select b.destination, b.watermark, b.action, b.wait_seconds, b.changed_at, g.closed_for, greatest(g.value, 0)::int,
           case when g.closed_for > interval '0' then seapost.backpressure_seen(g.value) end
    from seapost.backpressure_limit as b
    cross join lateral (select pg_sequence_last_value(b.gate) as value,
                               seapost.backpressure_closed_for(pg_sequence_last_value(b.gate)) as closed_for) as g
    order by b.destination
$$;
