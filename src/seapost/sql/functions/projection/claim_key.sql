-- Purpose: the key of the advisory lock "projection claim" of a version: shared by every transaction that applies events to it,
-- exclusive for whoever drains them.
-- Locks: none.
-- Errors: none.
create or replace function seapost.projection_claim_key(p_name text, p_version text)
returns bigint
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
    select hashtextextended('seapost.projection.claim/' || p_name || '@' || p_version, 0)
$$;
