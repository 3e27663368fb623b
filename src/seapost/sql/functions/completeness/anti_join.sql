-- Purpose: how many events a version has to fold and has no receipt of (ORD-05 b); asked only where the two sets differ.
-- Locks: none.
-- Errors: none.
create or replace function seapost.completeness_anti_join(p_name text, p_version text, p_key text)
returns bigint
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if exists (select from seapost.projection_cutover as k where k.projection_name = p_name and k.to_version = p_version
               and k.candidate is not null and k.phase <> 'switched') then
        return (select count(*) from seapost.projection_candidate_rest as r
                where r.projection_name = p_name
                  and not exists (select from seapost.inbox_receipt as i where i.consumer = p_key and i.event_id = r.event_id));
    end if;
    return (select count(*)
            from seapost.source_events as s
            join seapost.projection_support as u on u.projection_name = p_name and u.projection_version = p_version
             and u.event_type = s.event_type and u.schema_version = s.schema_version
            where not exists (select from seapost.inbox_receipt as i where i.consumer = p_key and i.event_id = s.event_id));
end $$;
