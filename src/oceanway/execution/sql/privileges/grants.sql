-- Purpose: who may do what, current truth. Runtime roles hold EXECUTE on functions, the auditor SELECT; PUBLIC holds
-- nothing. Run after every change of functions or views.
revoke all on schema execution from public;
revoke all on all tables in schema execution from public, oceanway_execution_service, oceanway_execution_consumer,
    oceanway_execution_reader, oceanway_auditor;
revoke all on all functions in schema execution from public, oceanway_execution_service, oceanway_execution_consumer,
    oceanway_execution_reader, oceanway_auditor;
grant usage on schema execution to oceanway_execution_service, oceanway_execution_consumer, oceanway_execution_reader,
    oceanway_auditor;
grant select on execution.schema_versions to oceanway_execution_service, oceanway_execution_consumer,
    oceanway_execution_reader;

grant execute on function
    execution.run_open_v1, execution.attempt_register_v1, execution.attempt_start_v1, execution.eligibility_finalize_v1,
    execution.run_closing_v1, execution.run_close_v1, execution.eligibility_declare_conflict_v1,
    execution.eligibility_repair_v1, execution.closure_declare_conflict_v1, execution.closure_repair_v1
    to oceanway_execution_service;

grant execute on function execution.attempt_read_v1, execution.eligibility_read_v1, execution.run_finalization_v1
    to oceanway_execution_reader;

grant select on all tables in schema execution to oceanway_auditor;
