-- Purpose: the part that identifiers made at one moment share: kind, 48 bits of Unix milliseconds and the version of a
--   UUIDv7. With 19 hexadecimal digits of a random UUIDv4 behind it, variant included, the identifier is complete
--   (GEN-07). Statements that make many identifiers compute it once. Not immutable, since
--   extract is not: callers could not inline it then.
-- Locks: none
-- Errors: none
create or replace function orbit.id_prefix(p_kind text, p_time timestamptz)
returns text
language sql
stable
as $$
    select p_kind || '_' || lpad(to_hex(trunc(extract(epoch from p_time) * 1000)::bigint), 12, '0') || '7'
$$;
