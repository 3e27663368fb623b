-- Purpose: who may do what, current truth. Runtime roles hold EXECUTE on functions, the auditor SELECT; PUBLIC holds
-- nothing. Run after every change of functions or views.
revoke all on schema operations from public;
revoke all on all tables in schema operations from public, oceanway_operations_service, oceanway_operations_consumer,
    oceanway_operations_reader, oceanway_auditor;
revoke all on all sequences in schema operations from public, oceanway_operations_service, oceanway_operations_consumer,
    oceanway_operations_reader, oceanway_auditor;
revoke all on all functions in schema operations from public, oceanway_operations_service, oceanway_operations_consumer,
    oceanway_operations_reader, oceanway_auditor;
grant usage on schema operations to oceanway_operations_service, oceanway_operations_consumer, oceanway_operations_reader,
    oceanway_auditor;
grant select on operations.schema_versions to oceanway_operations_service, oceanway_operations_consumer,
    oceanway_operations_reader, oceanway_auditor;

grant execute on function
    operations.run_created_v1, operations.run_wallet_reserved_v1, operations.finalization_committed_v1,
    operations.settlement_advance_v1, operations.late_requested_v1, operations.late_resolved_v1, operations.case_known_v1,
    operations.case_request_v1, operations.case_resolution_v1
    to oceanway_operations_consumer;
grant execute on function operations.query_read_result_v1, operations.query_accepted_v1 to oceanway_operations_consumer;

grant execute on function operations.identity_reserve_v1, operations.identity_read_v1 to oceanway_operations_reader;

grant execute on function
    operations.decision_record_v1, operations.decision_read_v1, operations.decision_issue_grant_v1,
    operations.query_find_v1, operations.query_operation_v1, operations.query_case_v1, operations.query_late_case_v1,
    operations.query_pseudonym_key_v1
    to oceanway_operations_service;

grant select on all tables in schema operations to oceanway_auditor;
revoke all on operations.pseudonym_key from oceanway_auditor;
