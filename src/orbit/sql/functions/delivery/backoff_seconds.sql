-- Purpose: the pause after a lease that ended without an ACK: min(2^(attempts-1), 30) seconds (LSE-13), without ever
--   computing a power that could overflow.
-- Locks: none
-- Errors: none
create or replace function orbit.delivery_backoff_seconds(p_attempts integer)
returns double precision
language sql
immutable
as $$
    select least(power(2, least(p_attempts, 6) - 1), 30)::double precision
$$;
