-- Purpose: who may do what, current truth. Runtime roles hold EXECUTE on functions, the auditor SELECT; PUBLIC holds
-- nothing. Run after every change of functions or views.
revoke all on schema core from public;
revoke all on all tables in schema core
    from public, oceanway_core_service, oceanway_core_consumer, oceanway_core_reader, oceanway_auditor;
revoke all on all functions in schema core
    from public, oceanway_core_service, oceanway_core_consumer, oceanway_core_reader, oceanway_auditor;
grant usage on schema core
    to oceanway_core_service, oceanway_core_consumer, oceanway_core_reader, oceanway_auditor;
grant select on core.schema_versions to oceanway_core_service, oceanway_core_consumer, oceanway_core_reader;

grant execute on function core.run_admit_v1 to oceanway_core_service;

grant select on all tables in schema core to oceanway_auditor;
