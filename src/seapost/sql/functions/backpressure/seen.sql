-- Purpose: how many deliveries waited when a gate was closed with this value.
-- Locks: none.
-- Errors: none.
create or replace function seapost.backpressure_seen(p_value bigint)
returns int
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$ select (-p_value & 2097151)::int $$;
