-- Purpose: who may do what in the settlement part of billing, current truth. Runs after the grants of the whole schema, which
-- take everything back first.
grant execute on function
    billing.catch_up_claim_v1, billing.catch_up_finish_v1, billing.catch_up_block_v1, billing.catch_up_retry_v1,
    billing.transition_commit_v1
    to oceanway_billing_service;

grant execute on function
    billing.settlement_hold_v1, billing.settlement_lock_v1, billing.settlement_advance_v1
    to oceanway_billing_consumer;

-- A command comes in where billing is served, or by the process of the application that drives billing.
grant execute on function billing.late_command_read_v1, billing.late_command_commit_v1
    to oceanway_billing_service, oceanway_billing_consumer;

grant execute on function billing.exposure_chain_read_v1 to oceanway_billing_reader;

-- The auditor's own rights stand behind the proof of the settlement chain (ORD-08).
grant execute on function billing.settlement_quint to oceanway_auditor;
