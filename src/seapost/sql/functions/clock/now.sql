-- Purpose: the one clock of leases and due times; only test databases replace it.
-- Locks: none.
-- Errors: none.
create or replace function seapost.clock_now()
returns timestamptz
language sql
volatile
as $$ select pg_catalog.clock_timestamp() $$;
