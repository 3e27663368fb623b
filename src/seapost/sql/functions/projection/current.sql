-- Purpose: the version of a projection that is read now; null when it is not known. Cheap enough for every query of a reader.
-- Locks: none.
-- Errors: none.
create or replace function seapost.projection_current(p_name text)
returns text
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select p.projection_version from seapost.projection_pointer as p where p.projection_name = p_name
$$;
