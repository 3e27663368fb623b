-- Purpose: the advisory lock between appends (shared) and the activation of a delivery set (exclusive).
-- Locks: none.
-- Errors: none.
create or replace function seapost.delivery_set_lock_key()
returns bigint
language sql
immutable
as $$ select pg_catalog.hashtextextended('seapost.delivery_set', 0) $$;
