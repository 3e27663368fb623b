-- Purpose: what the data lacks for the service to be ready: namespaces without a stream row, at most ten of them, one line
-- each (JRN-16, OPS-05).
-- Locks: none.
-- Errors: none.
create or replace function orbit.readiness_v1()
returns setof text
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select format('namespace %s has no stream row', n.namespace_id)
    from orbit.namespaces as n
    where not exists (select from orbit.event_stream_locks as l where l.namespace_id = n.namespace_id)
    order by n.namespace_id
    limit 10
$$;
