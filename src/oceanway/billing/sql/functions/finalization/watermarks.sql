-- Purpose: the settlement watermarks of a reservation: its newest known inputs, sorted by step, attempt and dimension.
-- Locks: none of its own.
-- Errors: none.
create or replace function billing.finalization_watermarks(p_reservation text)
returns jsonb
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
    select coalesce(jsonb_agg(jsonb_build_object(
            'settlementDimensionId', i.settlement_dimension_id, 'runStepId', i.run_step_id,
            'executionAttemptId', i.execution_attempt_id, 'chargeDimensionKey', i.charge_dimension_key,
            'ref', i.settlement_input_snapshot_ref, 'schemaVersion', i.settlement_input_snapshot_schema_version,
            'digestAlgorithmVersion', i.settlement_input_snapshot_digest_algorithm_version,
            'digest', i.settlement_input_snapshot_digest, 'stateVersion', i.settlement_input_state_version)
        order by i.run_step_id, i.execution_attempt_id, i.charge_dimension_key), '[]')
    from billing.settlement_inbox as i where i.billing_reservation_id = p_reservation
$$;
