-- Purpose: how much waits for a destination and since when, as destination_status shows it: at most the first 100,000
-- deliveries in the order of the claim index. A function, because a view cannot tell the planner to follow that index, and
-- statistics of an often empty table would let it read the whole backlog first (F83).
-- Locks: none.
-- Errors: none.
create or replace function seapost.destination_waiting(
    p_destination text, out pending bigint, out due bigint, out oldest_created_at timestamptz, out next_available_at timestamptz
)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
as $$
    select count(*), count(*) filter (where c.available_at <= seapost.clock_now()), min(c.created_at), min(c.available_at)
    from (select r.available_at, r.created_at from seapost.delivery_ready as r
          where r.destination = p_destination
          order by r.suspect, r.lane, r.available_at limit 100000) as c
$$;
