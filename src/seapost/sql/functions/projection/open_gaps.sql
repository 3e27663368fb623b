-- Purpose: how many revisions a version of a projection waits for, up to 10000 (MET-04). Without sorts no plan, whatever it
-- was made on, reads the gaps that were resolved.
-- Locks: none.
-- Errors: none.
create or replace function seapost.projection_open_gaps(p_name text, p_version text)
returns bigint
language sql
stable
set search_path = pg_catalog, pg_temp
set enable_sort = off
as $$
    select count(*) from (
        select from seapost.projection_gap as g
        where g.projection_name = p_name and g.projection_version = p_version and g.resolved_at is null
        order by g.first_seen_at limit 10000) as o  -- only the index of open gaps has this order
$$;
