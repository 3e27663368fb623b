-- Purpose: who may do what, current truth. Runtime roles hold EXECUTE on functions, never a right on a table; the auditor
-- reads every table. PUBLIC holds nothing. The settlement part of billing has a file of its own, which runs after this one.
revoke all on schema billing from public;
revoke all on all tables in schema billing
    from public, oceanway_billing_service, oceanway_billing_consumer, oceanway_billing_reader, oceanway_auditor;
revoke all on all sequences in schema billing
    from public, oceanway_billing_service, oceanway_billing_consumer, oceanway_billing_reader, oceanway_auditor;
revoke all on all functions in schema billing
    from public, oceanway_billing_service, oceanway_billing_consumer, oceanway_billing_reader, oceanway_auditor;
grant usage on schema billing
    to oceanway_billing_service, oceanway_billing_consumer, oceanway_billing_reader, oceanway_auditor;
grant select on all tables in schema billing to oceanway_auditor;
grant select on billing.schema_versions
    to oceanway_billing_service, oceanway_billing_consumer, oceanway_billing_reader;

grant execute on function
    billing.account_open_v1, billing.account_deposit_v1, billing.account_read_v1, billing.account_price_v1,
    billing.account_price_read_v1, billing.admission_admit_v1,
    billing.finalization_work_claim_v1, billing.finalization_work_finish_v1, billing.finalization_work_retry_v1,
    billing.finalization_fence_hold_v1,
    billing.finalization_commit_v1, billing.reconciliation_require_v1, billing.reconciliation_gate_v1
    to oceanway_billing_service;

grant execute on function
    billing.finalization_fence_hold_v1, billing.finalization_fence_lock_v1, billing.coordinator_lock_v1,
    billing.coordinator_closure_v1, billing.coordinator_resolution_v1
    to oceanway_billing_consumer;

-- A command comes in where billing is served, or by the process of the application that drives billing.
grant execute on function billing.resolution_apply_v1, billing.resolution_read_v1, billing.resolution_case_v1
    to oceanway_billing_service, oceanway_billing_consumer;

grant execute on function
    billing.finalization_decision_read_v1, billing.resolution_read_v1
    to oceanway_billing_reader;
