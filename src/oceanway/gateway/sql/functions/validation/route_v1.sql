-- Purpose: the bindings of attempts, and the conflict under which each stands, in the order asked (REF-30).
-- Locks: none.
-- Errors: none; an attempt that is not bound gives a row of nulls.
create or replace function gateway.validation_route_v1(p_attempts text[], p_deployments text[])
returns table (binding bytea, route_snapshot bytea, conflict bytea)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select b.document, s.document, c.document
    from unnest(p_attempts, p_deployments) with ordinality as i (attempt, deployment, position)
    left join gateway.route_binding as b
        on (b.execution_attempt_id, b.gateway_deployment_id) = (i.attempt, i.deployment)
    left join gateway.route_snapshot as s on s.gateway_route_snapshot_ref = b.gateway_route_snapshot_ref
    left join gateway.binding_conflict as c on c.repaired_at is null
        and (c.execution_attempt_id, c.gateway_deployment_id) = (i.attempt, i.deployment)
    order by i.position;
$$;
