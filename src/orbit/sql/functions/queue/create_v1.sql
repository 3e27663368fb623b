-- Purpose: makes a queue in an existing namespace (OPS-04); null limits are the usual ones. Returns its body as JSON.
-- Locks: the unique key of the queue.
-- Errors: OB026 no such namespace, the name is taken, or a value is out of range.
create or replace function orbit.queue_create_v1(
    p_namespace text, p_name text, p_max_running integer default null, p_lease_seconds integer default null
)
returns text
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_namespace_id text := (select n.namespace_id from orbit.namespaces as n where n.name = p_namespace);
    v_made record;
begin
    if v_namespace_id is null then
        raise exception using errcode = 'OB026', message = 'there is no namespace of this name';
    end if;
    v_made := orbit.queue_ensure(v_namespace_id, p_name, p_max_running, p_lease_seconds);
    if not v_made.made then
        raise exception using errcode = 'OB026', message = 'the namespace has a queue of this name already';
    end if;
    return (
        select row_to_json(b)::text
        from (select q.namespace_id, q.queue_id, q.name, q.enabled, q.max_running, q.lease_seconds
              from orbit.queues as q where q.queue_id = v_made.queue_id) as b);
end $$;
