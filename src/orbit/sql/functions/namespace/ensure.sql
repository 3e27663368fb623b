-- Purpose: the namespace of this name, made if it is missing, together with its stream row (JRN-16).
-- Locks: the unique key of a namespace being made.
-- Errors: OB026 the name.
create or replace function orbit.namespace_ensure(p_name text)
returns text
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    v_id text;
begin
    perform orbit.access_check_name('namespace', p_name);
    insert into orbit.namespaces (namespace_id, name) values (orbit.id_new('ns'), p_name)
    on conflict (name) do nothing
    returning namespace_id into v_id;
    if v_id is null then
        return (select n.namespace_id from orbit.namespaces as n where n.name = p_name);
    end if;
    insert into orbit.event_stream_locks (namespace_id) values (v_id);
    return v_id;
end $$;
