-- Purpose: the committed_at that receipts written by this transaction carry.
-- Locks: none.
-- Errors: none.
create or replace function seapost.inbox_committed_at_v1()
returns timestamptz
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$ select now() $$;
