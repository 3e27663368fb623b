-- Purpose: the queue of this name in a namespace, made if it is missing (audited then), with these limits or the usual
-- ones (null). An existing queue stays as it is.
-- Locks: the unique key of a queue being made.
-- Errors: OB026 the name or a limit.
create or replace function orbit.queue_ensure(
    p_namespace_id text, p_name text, p_max_running integer, p_lease_seconds integer, out queue_id text, out made boolean
)
returns record
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    v_max_running integer := coalesce(p_max_running, 100);
    v_lease_seconds integer := coalesce(p_lease_seconds, 60);
    v_id text;
begin
    perform orbit.access_check_name('queue', p_name);
    if v_max_running < 1 or v_lease_seconds not between 5 and 3600 then
        raise exception using errcode = 'OB026', message = 'max_running must be above 0, lease_seconds 5 to 3600';
    end if;
    insert into orbit.queues (queue_id, namespace_id, name, max_running, lease_seconds)
    values (orbit.id_new('q'), p_namespace_id, p_name, v_max_running, v_lease_seconds)
    on conflict (namespace_id, name) do nothing
    returning queue_id into v_id;
    made := v_id is not null;
    if made then
        perform orbit.audit_write(p_namespace_id, null, 'queue.created', 'queue', v_id,
            json_build_object('name', p_name, 'max_running', v_max_running, 'lease_seconds', v_lease_seconds));
    else
        v_id := (select q.queue_id from orbit.queues as q where q.namespace_id = p_namespace_id and q.name = p_name);
    end if;
    queue_id := v_id;
end $$;
