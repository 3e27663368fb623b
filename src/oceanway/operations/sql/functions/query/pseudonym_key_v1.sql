-- Purpose: the key under which names of tenants are replaced for audiences that may not see them.
-- Locks: none.
-- Errors: none.
create or replace function operations.query_pseudonym_key_v1()
returns bytea
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$ select k.key from operations.pseudonym_key as k $$;
