-- Purpose: how many events of the source a version has to fold in all, for the progress of a rebuild.
-- Locks: none.
-- Errors: none.
create or replace function seapost.projection_expected_v1(p_name text, p_version text)
returns bigint
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select count(*) from seapost.source_events as s
    where exists (select from seapost.projection_support as u where u.projection_name = p_name
        and u.projection_version = p_version and u.event_type = s.event_type and u.schema_version = s.schema_version)
$$;
