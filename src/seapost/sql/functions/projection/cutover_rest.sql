-- Purpose: how many members of a frozen candidate still have no receipt of its version.
-- Locks: none.
-- Errors: none.
create or replace function seapost.projection_cutover_rest(p_name text, p_version text)
returns bigint
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
    select count(*) from seapost.projection_candidate_rest as r
    join seapost.projection_version as v on v.projection_name = p_name and v.projection_version = p_version
    where r.projection_name = p_name
      and not exists (select from seapost.inbox_receipt as i where i.consumer = v.receipt_key and i.event_id = r.event_id)
$$;
