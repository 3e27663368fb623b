-- Purpose: who may do what, current truth. Runtime roles hold EXECUTE on functions, the auditor SELECT; PUBLIC holds
-- nothing. Run after every change of functions or views.
revoke all on schema gateway from public;
revoke all on all tables in schema gateway from public, oceanway_gateway_service, oceanway_gateway_consumer,
    oceanway_gateway_reader, oceanway_auditor;
revoke all on all functions in schema gateway from public, oceanway_gateway_service, oceanway_gateway_consumer,
    oceanway_gateway_reader, oceanway_auditor;
grant usage on schema gateway to oceanway_gateway_service, oceanway_gateway_consumer, oceanway_gateway_reader,
    oceanway_auditor;
grant select on gateway.schema_versions to oceanway_gateway_service, oceanway_gateway_consumer, oceanway_gateway_reader;

grant execute on function
    gateway.route_bind_v1, gateway.availability_record_pre_binding_v1, gateway.availability_advance_v1,
    gateway.availability_current_v1, gateway.evidence_declare_conflict_v1, gateway.evidence_repair_v1,
    gateway.binding_declare_conflict_v1, gateway.binding_repair_v1
    to oceanway_gateway_service;

grant execute on function
    gateway.source_read_v1, gateway.validation_availability_v1, gateway.validation_route_v1, gateway.validation_issue_v1
    to oceanway_gateway_reader;

grant select on all tables in schema gateway to oceanway_auditor;
