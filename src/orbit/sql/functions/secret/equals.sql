-- Purpose: whether two digests of secrets are the same, in a time that tells nothing about where they differ: what is
-- compared are the digests of both behind a fresh random value (LSE-09). False when one is missing.
-- Locks: none.
-- Errors: none.
create or replace function orbit.secret_equals(p_left bytea, p_right bytea)
returns boolean
language plpgsql
volatile
as $$
declare
    v_blind bytea := uuid_send(gen_random_uuid());
begin
    return coalesce(sha256(v_blind || p_left) = sha256(v_blind || p_right), false);
end $$;
