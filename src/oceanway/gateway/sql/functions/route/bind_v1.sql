-- Purpose: binds attempts to routes of deployments, each with the route as it is now (REF-23). Items are parallel arrays;
--   snapshot or binding known with the same content are left alone.
-- Locks: the primary keys in order of snapshot and attempt.
-- Errors: OW001 a snapshot or a binding of this attempt and deployment with other content; OW003 a binding that does not
--   name its snapshot.
-- Returns: how many bindings are new.
create or replace function gateway.route_bind_v1(p_snapshots bytea[], p_bindings bytea[])
returns integer
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_item record;
    v_new integer := 0;
begin
    for v_item in
        select i.snapshot as document, s.value, i.binding as binding_document, b.value as binding
        from unnest(p_snapshots, p_bindings) as i (snapshot, binding)
        cross join lateral (select convert_from(i.snapshot, 'UTF8')::jsonb) as s (value)
        cross join lateral (select convert_from(i.binding, 'UTF8')::jsonb) as b (value)
        order by s.value ->> 'gatewayRouteSnapshotRef', b.value ->> 'executionAttemptId', b.value ->> 'gatewayDeploymentId'
    loop
        perform gateway.route_keep_snapshot(v_item.value, v_item.document);
        if exists (
            select from unnest(array['gatewayRouteSnapshotRef', 'gatewayRouteSnapshotSchemaVersion',
                'gatewayRouteSnapshotDigestAlgorithmVersion', 'gatewayRouteSnapshotDigest', 'routeId']) as f (field)
            where v_item.binding -> f.field is distinct from v_item.value -> f.field) then
            raise exception using errcode = 'OW003', message = 'the binding names another route snapshot';
        end if;
        insert into gateway.route_binding (attempt_route_binding_ref, execution_attempt_id, gateway_deployment_id,
            gateway_route_snapshot_ref, digest, document)
        values (v_item.binding ->> 'attemptRouteBindingRef', v_item.binding ->> 'executionAttemptId',
            v_item.binding ->> 'gatewayDeploymentId', v_item.binding ->> 'gatewayRouteSnapshotRef',
            v_item.binding ->> 'attemptRouteBindingDigest', v_item.binding_document)
        on conflict do nothing;
        if found then
            v_new := v_new + 1;
        elsif not exists (
            select from gateway.route_binding as r
            where r.attempt_route_binding_ref = v_item.binding ->> 'attemptRouteBindingRef'
              and r.digest = v_item.binding ->> 'attemptRouteBindingDigest') then
            raise exception using errcode = 'OW001', message = 'the attempt is bound to another route of the deployment';
        end if;
    end loop;
    return v_new;
end $$;
