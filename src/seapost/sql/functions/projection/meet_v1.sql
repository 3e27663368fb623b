-- Purpose: projection_meet_v2 as the release before knew it, for deliveries of a process that has not been upgraded yet (F65).
-- It cannot say which events it applies, so it waits while a switch has frozen its version.
-- Locks: those of projection_meet_v2.
-- Errors: those of projection_meet_v2.
create or replace function seapost.projection_meet_v1(
    p_name text, p_version text, p_producers text[], p_kinds text[], p_ids text[]
)
returns table (place bigint, revision bigint)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    return query select m.place, m.revision
    from seapost.projection_meet_v2(p_name, p_version, null, null, p_producers, p_kinds, p_ids) as m;
end $$;
