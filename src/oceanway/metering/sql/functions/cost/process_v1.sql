-- Purpose: commits how a cost work ended: with the cost fact and both receipts where evidence is available, with the
--   processing fact alone otherwise; finish and lane in the same transaction (TX-19, TX-20, MTR-31 to MTR-34).
-- Locks: the lane row.
-- Errors: OW001 other content under an identity; OW002 the lease is lost; OW003 documents that do not belong together;
--   OW009 a receipt or the fact is missing; 23514 an outcome that the availability does not have.
create or replace function metering.cost_process_v1(
    p_fencing_token bigint, p_processing bytea, p_fact bytea, p_receipts bytea[], p_finish bytea, p_state bytea
)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_processing constant jsonb := convert_from(p_processing, 'UTF8')::jsonb;
    v_outcome constant jsonb := convert_from(p_processing, 'UTF8')::jsonb -> 'outcome';
    v_finish constant jsonb := convert_from(p_finish, 'UTF8')::jsonb;
    v_state constant jsonb := convert_from(p_state, 'UTF8')::jsonb;
    v_lane metering.lane;
begin
    v_lane := metering.lane_hold(v_finish ->> 'meteringInputWorkRef', p_fencing_token);
    if v_processing ->> 'meteringInputWorkRef' is distinct from v_lane.active_work_ref
        or v_finish #>> '{outcome,providerCostAvailabilityProcessingDigest}'
            is distinct from v_processing ->> 'providerCostAvailabilityProcessingDigest'
        or v_state ->> 'providerCostAvailabilityProcessingDigest'
            is distinct from v_processing ->> 'providerCostAvailabilityProcessingDigest'
        or v_state ->> 'processingOutcome' is distinct from v_outcome ->> 'state'
        or (p_fact is null) <> (v_outcome ->> 'state' <> 'available_applied') then
        raise exception using errcode = 'OW003', message = 'processing, finish and lane do not belong together';
    end if;
    perform metering.validation_insert(p_receipts);
    insert into metering.cost_processing (provider_cost_availability_processing_ref, metering_input_work_ref, lane_kind,
        gateway_deployment_id, source_evidence_dimension_key, outcome, availability_state, state_reason_code,
        provider_cost_fact_ref, availability_validation_receipt_ref, route_validation_receipt_ref, digest, document)
    values (v_processing ->> 'providerCostAvailabilityProcessingRef', v_lane.active_work_ref, v_lane.lane_kind,
        v_processing ->> 'gatewayDeploymentId', v_processing ->> 'sourceEvidenceDimensionKey', v_outcome ->> 'state',
        v_outcome ->> 'availabilityState', v_outcome ->> 'stateReasonCode', v_outcome ->> 'providerCostFactRef',
        v_outcome ->> 'availabilityValidationReceiptRef', v_outcome ->> 'routeValidationReceiptRef',
        v_processing ->> 'providerCostAvailabilityProcessingDigest', p_processing);
    if p_fact is not null then
        perform metering.cost_fact_insert(v_processing, p_fact);
    end if;
    perform metering.lane_close(p_fencing_token, p_finish, p_state);
end $$;
