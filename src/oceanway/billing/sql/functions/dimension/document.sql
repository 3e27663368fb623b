-- Purpose: the state of a dimension as a decision reads it, amounts as decimal texts.
-- Locks: none.
-- Errors: none.
create or replace function billing.dimension_document(p_state billing.dimension_state)
returns jsonb
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
    select jsonb_build_object(
        'settlementDimensionId', (p_state).settlement_dimension_id, 'stateRevision', (p_state).state_revision,
        'settledAmount', trim_scale((p_state).settled_amount)::text,
        'waivedAmount', trim_scale((p_state).waived_amount)::text,
        'exposureState', (p_state).exposure_state, 'exposureAmount', trim_scale((p_state).exposure_amount)::text,
        'exposureCaseRef', (p_state).exposure_case_ref,
        'exposureOpeningRevision', (select t.to_revision from billing.transition as t
            where t.case_ref = (p_state).exposure_case_ref and t.kind = 'request_open'),
        'lastEvaluatedInput', (p_state).last_evaluated,
        'lastEventId', (p_state).last_event_id)
$$;
