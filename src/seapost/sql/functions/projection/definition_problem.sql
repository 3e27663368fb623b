-- Purpose: why a delivery set cannot be the one that a switch to this version activates; null when it can: it must be registered
-- under exactly this digest and not in use, and every event it sends to the projection must name this version and be folded by it.
-- Locks: none.
-- Errors: none.
create or replace function seapost.projection_definition_problem(
    p_name text, p_version text, p_delivery_set_version text, p_definition_digest bytea
)
returns text
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_set seapost.delivery_set_version;
begin
    select v.* into v_set from seapost.delivery_set_version as v
    where v.delivery_set_version = p_delivery_set_version and v.definition_digest = p_definition_digest;
    if not found then
        return format('delivery set version %s is not registered with this digest', p_delivery_set_version);
    end if;
    if v_set.status <> 'registered' then
        return format('delivery set version %s is %s; a switch needs a new one', p_delivery_set_version, v_set.status);
    end if;
    if not exists (select from seapost.delivery_set_member as m where m.definition_id = v_set.definition_id and m.projection_name = p_name) then
        return format('delivery set version %s sends nothing to the projection', p_delivery_set_version);
    end if;
    if exists (select from seapost.delivery_set_member as m
               where m.definition_id = v_set.definition_id and m.projection_name = p_name and m.projection_version <> p_version) then
        return format('delivery set version %s names another version of the projection', p_delivery_set_version);
    end if;
    if exists (select m.event_type, m.schema_version from seapost.delivery_set_member as m
               where m.definition_id = v_set.definition_id and m.projection_name = p_name
               except select u.event_type, u.schema_version from seapost.projection_support as u
               where u.projection_name = p_name and u.projection_version = p_version) then
        return format('delivery set version %s sends events that the version does not fold', p_delivery_set_version);
    end if;
    return null;
end $$;
