-- Purpose: the application that an operator names; the namespace may be left out (null) while only one has such an
-- application.
-- Locks: none.
-- Errors: OB026 there is none, or more than one.
create or replace function orbit.application_named(p_namespace text, p_application text)
returns orbit.applications
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_ids text[] := array(
        select a.application_id
        from orbit.applications as a
        join orbit.namespaces as n on n.namespace_id = a.namespace_id
        where a.name = p_application and (p_namespace is null or n.name = p_namespace));
    v_application orbit.applications;
begin
    if cardinality(v_ids) = 0 then
        raise exception using errcode = 'OB026', message = 'there is no application of this name';
    end if;
    if cardinality(v_ids) > 1 then
        raise exception using errcode = 'OB026',
            message = 'more than one namespace has an application of this name; name the namespace too';
    end if;
    select a.* into v_application from orbit.applications as a where a.application_id = v_ids[1];
    return v_application;
end $$;
