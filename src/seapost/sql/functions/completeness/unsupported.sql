-- Purpose: events of the source that some registered definition routes to the projection and that this version does not fold
-- (ORD-05 d).
-- Locks: none.
-- Errors: none.
create or replace function seapost.completeness_unsupported(p_name text, p_version text)
returns bigint
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_types text[];
    v_versions text[];
begin
    select array_agg(p.event_type), array_agg(p.schema_version) into v_types, v_versions
    from (select distinct m.event_type, m.schema_version from seapost.delivery_set_member as m
          where m.projection_name = p_name and m.mandatory
          except
          select u.event_type, u.schema_version from seapost.projection_support as u
          where u.projection_name = p_name and u.projection_version = p_version) as p;
    if v_types is null then
        return 0;
    end if;
    return (select count(*) from seapost.source_events as s
            join unnest(v_types, v_versions) as p (event_type, schema_version)
              on p.event_type = s.event_type and p.schema_version = s.schema_version);
end $$;
