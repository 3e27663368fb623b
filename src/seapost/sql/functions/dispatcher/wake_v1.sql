-- Purpose: withdraws the declaration that a dispatcher of the destination sleeps on this session.
-- Locks: releases the session advisory lock on the destination.
-- Errors: none; false (with a server warning) when the session had not declared it.
create or replace function seapost.dispatcher_wake_v1(p_destination text)
returns boolean
language sql
security definer
set search_path = pg_catalog, pg_temp
as $$ select pg_catalog.pg_advisory_unlock(seapost.dispatcher_sleep_key(p_destination)) $$;
