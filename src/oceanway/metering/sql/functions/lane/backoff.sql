-- Purpose: how long a work waits after its nth fruitless attempt (AMB-45).
-- Locks: none.
-- Errors: none.
create or replace function metering.lane_backoff(p_retry_count integer, p_base interval, p_longest interval)
returns interval
language sql
immutable
as $$
    select least(p_base * (2 ^ least(p_retry_count, 30)), p_longest);
$$;
