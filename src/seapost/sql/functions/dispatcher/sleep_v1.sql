-- Purpose: declares on this session that a dispatcher of the destination sleeps, so that appends notify it.
-- The declaration dies with the connection. The answer must be read: false means not declared, claim again.
-- Locks: a session advisory lock on the destination, tried once.
-- Errors: none.
create or replace function seapost.dispatcher_sleep_v1(p_destination text)
returns boolean
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$ select pg_catalog.pg_try_advisory_lock(seapost.dispatcher_sleep_key(p_destination)) $$;
