-- Purpose: the application of this name in a namespace, made if it is missing, together with its quota row (TSK-07).
-- Locks: the unique key of an application being made.
-- Errors: OB026 the name.
create or replace function orbit.application_ensure(p_namespace_id text, p_name text)
returns text
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    v_id text;
begin
    perform orbit.access_check_name('application', p_name);
    insert into orbit.applications (application_id, namespace_id, name) values (orbit.id_new('app'), p_namespace_id, p_name)
    on conflict (namespace_id, name) do nothing
    returning application_id into v_id;
    if v_id is null then
        return (select a.application_id from orbit.applications as a
                where a.namespace_id = p_namespace_id and a.name = p_name);
    end if;
    insert into orbit.application_quotas (application_id) values (v_id);
    return v_id;
end $$;
