-- Purpose: keeps a route snapshot, once (REF-23).
-- Locks: the primary key.
-- Errors: OW001 the reference is known with other content.
create or replace function gateway.route_keep_snapshot(p_snapshot jsonb, p_document bytea)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    if exists (
        select from gateway.route_snapshot as r
        where r.gateway_route_snapshot_ref = p_snapshot ->> 'gatewayRouteSnapshotRef'
          and r.digest = p_snapshot ->> 'gatewayRouteSnapshotDigest') then
        return;
    end if;
    insert into gateway.route_snapshot (gateway_route_snapshot_ref, route_id, digest, document)
    values (p_snapshot ->> 'gatewayRouteSnapshotRef', p_snapshot ->> 'routeId',
        p_snapshot ->> 'gatewayRouteSnapshotDigest', p_document)
    on conflict do nothing;
    if not found and not exists (
        select from gateway.route_snapshot as r
        where r.gateway_route_snapshot_ref = p_snapshot ->> 'gatewayRouteSnapshotRef'
          and r.digest = p_snapshot ->> 'gatewayRouteSnapshotDigest') then
        raise exception using errcode = 'OW001', message = 'the route snapshot is known with other content';
    end if;
end $$;
