-- Purpose: closes an open exposure by hand (TX-12, APP-11): consumes the grant; the result, the closed exposure, every booking,
--   the audit and both events. The same operation with the same content returns the first result, without another look at the
--   grant.
-- Locks: the state of the dimension, the reservation, the account; the primary key of the grant.
-- Errors: OW001 the operation was carried out with other content; OW002 the dimension or its exposure has moved on; OW003
--   documents that do not belong together; OW004 there is no such dimension; OW007 the grant was consumed by another command;
--   OW009 an event is missing.
-- Returns: the stored result.
create or replace function billing.late_command_commit_v1(p_result bytea, p_exposure bytea, p_envelopes bytea[])
returns bytea
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_fact constant jsonb := convert_from(p_result, 'UTF8')::jsonb;
    v_ref constant text := v_fact ->> 'lateSettlementCommandResultRef';
    v_digest constant text := v_fact ->> 'lateSettlementCommandResultDigest';
    v_operation constant text := v_fact ->> 'logicalOperationId';
    v_action constant text := v_fact ->> 'action';
    v_dimension constant text := v_fact #>> '{settlementEconomicIdentity,settlementDimensionId}';
    v_from constant bigint := (v_fact ->> 'fromRevision')::bigint;
    v_booked constant numeric := (v_fact ->> 'ledgerDelta')::numeric;
    v_waived constant numeric := (v_fact ->> 'waivedDelta')::numeric;
    v_state billing.dimension_state;
    v_first billing.late_command_result;
    v_event uuid;
    v_second_event uuid;
begin
    select * into v_state from billing.dimension_state as d
    where d.settlement_dimension_id = v_dimension for no key update;
    if not found then
        raise exception using errcode = 'OW004', message = 'there is no such dimension';
    end if;
    select * into v_first from billing.late_command_result as c where c.operation_id = v_operation;
    if found then
        if v_first.digest = v_digest then
            return v_first.document;
        end if;
        raise exception using errcode = 'OW001', message = 'the operation was carried out with other content';
    end if;
    if (v_state.state_revision, v_state.exposure_state, v_state.exposure_case_ref, to_jsonb(v_state.last_event_id))
        is distinct from (v_from, 'open', v_fact ->> 'caseRef', v_fact -> 'causationEventId') then
        raise exception using errcode = 'OW002', message = 'the exposure of the case is not open at this revision';
    end if;
    if (v_booked, v_waived, v_fact ->> 'billingReservationId') is distinct from (
            case v_action when 'charge' then v_state.exposure_amount else 0 end,
            case v_action when 'waive' then v_state.exposure_amount else 0 end, v_state.billing_reservation_id)
        or p_exposure is null then
        raise exception using errcode = 'OW003', message = 'a command closes exactly the amount that is open';
    end if;
    if cardinality(p_envelopes) <> 2 then
        raise exception using errcode = 'OW009', message = 'a command has the event of its result and that of its case';
    end if;
    insert into billing.grant_consumed (grant_jti, operation_id, action) values (v_fact ->> 'grantJti', v_operation, v_action)
    on conflict (grant_jti) do nothing;
    if not found then
        raise exception using errcode = 'OW007', message = 'the grant was consumed by another command';
    end if;
    perform billing.exposure_check(p_exposure, v_fact, v_dimension, v_from + 1);
    v_event := billing.event_bind(p_envelopes[1], 'billing.late-settlement-command-result.committed@1', v_ref);
    v_second_event := billing.event_bind(p_envelopes[2], 'billing.case-resolution.applied@1',
        convert_from(p_exposure, 'UTF8')::jsonb ->> 'lateSettlementExposureRef');
    perform billing.dimension_event_check(p_envelopes[1], v_fact, 'lateSettlementCommandResult');
    perform billing.dimension_event_check(p_envelopes[2], v_fact, null);
    perform billing.dimension_advance(v_dimension, v_from, v_state.last_event_id, v_event, 'late_command_result', v_ref,
        v_booked, v_state.waived_amount + v_waived, 0, v_fact ->> 'caseRef', null, 0);
    insert into billing.late_command_result (late_settlement_command_result_ref, operation_id, settlement_dimension_id,
        case_ref, action, amount, from_revision, to_revision, grant_jti, actor_workforce_principal_id,
        result_committed_event_id, case_resolution_event_id, digest, document, exposure)
    values (v_ref, v_operation, v_dimension, v_fact ->> 'caseRef', v_action, v_state.exposure_amount, v_from, v_from + 1,
        v_fact ->> 'grantJti', v_fact ->> 'actorWorkforcePrincipalId', v_event, v_second_event, v_digest, p_result,
        p_exposure);
    insert into billing.audit_record (actor, action, subject_ref, object_digest)
    values (v_fact ->> 'actorWorkforcePrincipalId', 'settlement.late_' || v_action, v_fact ->> 'caseRef', v_digest);
    perform seapost.outbox_append_v1(p_envelopes);
    return p_result;
end $$;
