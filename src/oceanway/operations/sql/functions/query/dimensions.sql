-- Purpose: the charge dimensions of one operation, in order of their identity.
-- Locks: none.
-- Errors: none.
create or replace function operations.query_dimensions(p_version text, p_operation_id text)
returns jsonb
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
    select coalesce(jsonb_agg(jsonb_build_object(
            'settlementDimensionId', d.settlement_dimension_id, 'runStepId', d.run_step_id,
            'executionAttemptId', d.execution_attempt_id, 'chargeDimensionKey', d.charge_dimension_key,
            'finalizedAmount', operations.query_amount(d.finalized_amount),
            'adjustedAmount', operations.query_amount(d.adjusted_amount),
            'waivedAmount', operations.query_amount(d.waived_amount), 'stateRevision', d.state_revision,
            'exposureState', d.exposure_state, 'exposureAmount', operations.query_amount(d.exposure_amount),
            'exposureCaseRef', d.exposure_case_ref)
        order by d.run_step_id, d.execution_attempt_id, d.charge_dimension_key), '[]')
    from operations.settlement_dimension as d
    where d.operation_id = p_operation_id and d.projection_version = p_version
$$;
