-- Purpose: one step of a settlement dimension, a transition or a late result: it follows exactly the event that made the
--   state before (CASE-31), and closes or confirms the late case it belongs to (TX-32). `p_change` is what the verified
--   payload says; the room has made sure that the revision before has been applied.
-- Locks: advisory on the projection version.
-- Errors: OW001 another identity, another revision or cause than the direct predecessor, or a late case that says otherwise.
create or replace function operations.settlement_advance_v1(p_version text, p_envelope bytea, p_change jsonb)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_event constant jsonb := convert_from(p_envelope, 'UTF8')::jsonb;
    v_payload constant jsonb := v_event -> 'payload';
    v_operation_id constant text := operations.event_enter(p_version, v_payload);
    v_event_id constant uuid := (v_event ->> 'eventId')::uuid;
    v_cause constant uuid := (v_event #>> '{correlation,causationId}')::uuid;
    v_dimension constant text := p_change ->> 'dimensionId';
    v_from constant bigint := (p_change ->> 'fromRevision')::bigint;
    v_to constant bigint := (p_change ->> 'toRevision')::bigint;
    v_opens constant boolean := p_change ->> 'kind' = 'request_open';
    v_closes constant boolean := p_change ->> 'kind' in ('resolve', 'charge', 'waive');
begin
    insert into operations.settlement_dimension (projection_version, settlement_dimension_id, operation_id, run_step_id,
        execution_attempt_id, charge_dimension_key)
    values (p_version, v_dimension, v_operation_id, v_payload ->> 'runStepId', v_payload ->> 'executionAttemptId',
        v_payload ->> 'chargeDimensionKey')
    on conflict do nothing;
    update operations.settlement_dimension as d
    set state_revision = v_to, last_event_id = v_event_id, first_causation_id = coalesce(d.first_causation_id, v_cause),
        adjusted_amount = d.adjusted_amount + (p_change ->> 'ledgerDelta')::numeric,
        waived_amount = d.waived_amount + (p_change ->> 'waivedDelta')::numeric,
        exposure_state = case when v_opens then 'open' when v_closes then 'resolved' else d.exposure_state end,
        exposure_amount = (p_change ->> 'exposureAmount')::numeric,
        exposure_case_ref = coalesce(p_change ->> 'caseRef', d.exposure_case_ref)
    where d.projection_version = p_version and d.settlement_dimension_id = v_dimension
      and d.state_revision = v_from and v_to = v_from + 1 and v_cause is not null
      and (v_from = 0 or d.last_event_id = v_cause)
      and (case when v_opens then d.exposure_state <> 'open'
           when p_change ->> 'caseRef' is null then d.exposure_state <> 'open'
           else d.exposure_state = 'open' and d.exposure_case_ref = p_change ->> 'caseRef' end)
      and (v_from > 0 or not exists (
          select from operations.finalization as f
          where f.projection_version = p_version and f.operation_id = v_operation_id and f.event_id <> v_cause));
    if not found then
        raise exception using errcode = 'OW001', message = 'the event does not follow from the state of its dimension';
    end if;
    insert into operations.dimension_revision (projection_version, settlement_dimension_id, revision, event_id, kind,
        fact_ref, fact_digest, case_ref)
    values (p_version, v_dimension, v_to, v_event_id, p_change ->> 'kind', p_change ->> 'factRef',
        p_change ->> 'factDigest', p_change ->> 'caseRef');
    if v_opens or v_closes then
        perform operations.late_meet(p_version, v_dimension, v_to);
    end if;
    perform operations.event_keep(p_version, v_event, p_envelope,
        p_change - 'dimensionId' || jsonb_build_object('runStepId', v_payload ->> 'runStepId',
            'executionAttemptId', v_payload ->> 'executionAttemptId',
            'chargeDimensionKey', v_payload ->> 'chargeDimensionKey'),
        array['dimension', 'attempt'], array[v_dimension, v_payload ->> 'executionAttemptId']);
end $$;
