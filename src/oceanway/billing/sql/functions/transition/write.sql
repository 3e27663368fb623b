-- Purpose: books one transition with everything that belongs to it (TX-11): the fact, its consumption and exposure, the
--   dimension's next revision with its ledger entries, the audit, its event and the one that its kind demands.
-- Locks: the state of the dimension, the reservation, the account.
-- Errors: OW001 the operation, the input or the fact has a transition already; OW002, OW008 as dimension_advance; OW003
--   documents that do not belong together; OW009 an event or the exposure is missing.
create or replace function billing.transition_write(
    p_transition bytea, p_consumption bytea, p_exposure bytea, p_envelopes bytea[], p_receipt jsonb, p_target jsonb,
    p_expected_state_revision bigint
)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_fact constant jsonb := convert_from(p_transition, 'UTF8')::jsonb;
    v_consumption constant jsonb := convert_from(p_consumption, 'UTF8')::jsonb;
    v_ref constant text := v_fact ->> 'settlementTransitionRef';
    v_kind constant text := v_fact ->> 'kind';
    v_dimension constant text := v_fact #>> '{settlementEconomicIdentity,settlementDimensionId}';
    v_from constant bigint := (v_fact ->> 'fromRevision')::bigint;
    v_booked constant numeric := (v_fact ->> 'ledgerDelta')::numeric;
    v_amount constant numeric := coalesce((v_fact #>> '{exposure,amount}')::numeric, 0);
    v_case constant text := v_fact #>> '{exposure,caseRef}';
    v_state billing.dimension_state;
    v_second constant text := case v_kind when 'request_open' then 'billing.late-settlement-exposure.case-requested@1'
        when 'resolve' then 'billing.case-resolution.applied@1' end;
    v_second_event uuid;
    v_event uuid;
    v_exposure_ref constant text := convert_from(p_exposure, 'UTF8')::jsonb ->> 'lateSettlementExposureRef';
begin
    if cardinality(p_envelopes) <> (case when v_second is null then 1 else 2 end)
        or (v_case is null) <> (p_exposure is null) then
        raise exception using errcode = 'OW009', message = 'a transition has its event, and one more when a case begins or ends';
    end if;
    select * into v_state from billing.dimension_state as d
    where d.settlement_dimension_id = v_dimension for no key update;
    if v_from is distinct from v_state.state_revision or v_from is distinct from p_expected_state_revision
        or v_fact -> 'causationEventId' is distinct from to_jsonb(v_state.last_event_id) then
        raise exception using errcode = 'OW002', message = 'the dimension has moved on';
    end if;
    if (v_fact ->> 'validationOperationId', v_fact #> '{basis,targetInput}', v_fact #> '{basis,lastEvaluatedInput}',
            v_fact ->> 'billingReservationId', v_consumption #>> '{consumer,settlementTransitionRef}',
            v_consumption -> 'currentValidationReceiptRef', v_consumption -> 'currentValidationReceiptDigest')
        is distinct from (p_receipt ->> 'validationOperationId', p_target, v_state.last_evaluated,
            v_state.billing_reservation_id, v_ref,
            p_receipt -> 'currentValidationReceiptRef', p_receipt -> 'currentValidationReceiptDigest')
        or not v_consumption @> p_target
        or (v_kind = 'request_open' and (v_state.exposure_state = 'open' or v_amount = 0))
        or (v_kind = 'resolve' and v_state.exposure_state <> 'open')
        or (v_kind <> 'request_open' and v_case is distinct from
            case v_state.exposure_state when 'open' then v_state.exposure_case_ref end)
        or (v_kind = 'adjust' and (v_state.exposure_state = 'open') <> (v_amount > 0)) then
        raise exception using errcode = 'OW003', message = 'transition, receipt, consumption and dimension do not belong together';
    end if;
    perform billing.exposure_check(p_exposure, v_fact, v_dimension, v_state.state_revision + 1);
    v_event := billing.event_bind(p_envelopes[1], 'billing.settlement-transition.committed@1', v_ref);
    perform billing.dimension_event_check(p_envelopes[1], v_fact, 'settlementTransition');
    if v_second is not null then
        v_second_event := billing.event_bind(p_envelopes[2], v_second, v_exposure_ref);
        perform billing.dimension_event_check(p_envelopes[2], v_fact, null);
    end if;
    perform billing.dimension_advance(v_dimension, v_from, v_state.last_event_id, v_event, 'transition', v_ref, v_booked,
        v_state.waived_amount + (v_fact ->> 'waivedDelta')::numeric, v_amount, v_case,
        case when v_amount > 0 then false when v_booked > 0 then true end, greatest(v_amount, v_booked));
    insert into billing.transition (settlement_transition_ref, logical_operation_id, validation_operation_id,
        validation_receipt_ref, settlement_dimension_id, kind, from_revision, to_revision, ledger_delta, exposure_amount,
        case_ref, transition_committed_event_id, case_requested_event_id, case_resolution_event_id, digest, document,
        exposure)
    values (v_ref, v_fact ->> 'logicalOperationId', v_fact ->> 'validationOperationId',
        p_receipt ->> 'currentValidationReceiptRef', v_dimension, v_kind, v_from, v_from + 1, v_booked, v_amount, v_case,
        v_event, case v_kind when 'request_open' then v_second_event end,
        case v_kind when 'resolve' then v_second_event end, v_fact ->> 'settlementTransitionDigest', p_transition,
        p_exposure);
    insert into billing.consumption (settlement_consumption_ref, settlement_input_snapshot_ref,
        settlement_input_snapshot_schema_version, settlement_input_snapshot_digest_algorithm_version,
        settlement_input_snapshot_digest, settlement_input_state_version, settlement_transition_ref, digest, document)
    values (v_consumption ->> 'settlementConsumptionRef', p_target ->> 'settlementInputSnapshotRef',
        p_target ->> 'settlementInputSnapshotSchemaVersion', p_target ->> 'settlementInputSnapshotDigestAlgorithmVersion',
        p_target ->> 'settlementInputSnapshotDigest', (p_target ->> 'settlementInputStateVersion')::bigint, v_ref,
        v_consumption ->> 'settlementConsumptionDigest', p_consumption);
    insert into billing.audit_record (actor, action, subject_ref, object_digest)
    values ('billing', 'settlement.' || v_kind, v_dimension, v_fact ->> 'settlementTransitionDigest');
    perform seapost.outbox_append_v1(p_envelopes);
end $$;
