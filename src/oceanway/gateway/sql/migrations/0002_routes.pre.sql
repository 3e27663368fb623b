-- Purpose: the routes that attempts took, as they were at that moment (REF-23).

create table gateway.route_snapshot (
    gateway_route_snapshot_ref text collate "C" primary key,
    route_id text collate "C" not null,
    digest text collate "C" not null,
    document bytea not null  -- GatewayRouteSnapshot@1
);

create table gateway.route_binding (
    attempt_route_binding_ref text collate "C" primary key,
    execution_attempt_id text collate "C" not null,
    gateway_deployment_id text collate "C" not null,
    gateway_route_snapshot_ref text collate "C" not null references gateway.route_snapshot,
    digest text collate "C" not null,
    document bytea not null,  -- AttemptRouteBinding@1
    unique (execution_attempt_id, gateway_deployment_id)
);

create trigger route_snapshot_immutable before update or delete on gateway.route_snapshot
    for each row execute function gateway.guard_reject_change();
create trigger route_binding_immutable before update or delete on gateway.route_binding
    for each row execute function gateway.guard_reject_change();
