-- Purpose: a new identifier: kind, underscore, 32 hexadecimal digits of a UUIDv7 (GEN-07): 48 bits of Unix milliseconds,
-- the version, and the random part of a UUIDv4, variant included. One expression, so that callers inline it.
-- Locks: none.
-- Errors: none.
create or replace function orbit.id_new(p_prefix text)
returns text
language sql
volatile
as $$
    select p_prefix || '_' || lpad(to_hex((extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0') || '7'
        || substr(replace(gen_random_uuid()::text, '-', ''), 14)
$$;
