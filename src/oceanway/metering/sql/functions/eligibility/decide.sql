-- Purpose: writes the decision of a work and its meter events.
-- Locks: none beyond the rows; the caller holds the lane.
-- Errors: OW001 other content under the same identity, with the stage as detail; OW003 a meter event of another decision.
create or replace function metering.eligibility_decide(
    p_work_ref text, p_attempt text, p_decision bytea, p_meter_events bytea[]
)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_decision constant jsonb := convert_from(p_decision, 'UTF8')::jsonb;
    v_document bytea;
    v_event jsonb;
begin
    insert into metering.eligibility_decision (eligibility_decision_ref, metering_input_work_ref, basis_digest, state,
        reason_code, digest, document)
    values (v_decision ->> 'eligibilityDecisionRef', p_work_ref, v_decision ->> 'basisDigest',
        v_decision #>> '{decision,state}', v_decision #>> '{decision,reasonCode}',
        v_decision ->> 'eligibilityDecisionDigest', p_decision)
    on conflict do nothing;
    if not found then
        raise exception using errcode = 'OW001', message = 'another decision is there', detail = 'eligibility_decision';
    end if;
    foreach v_document in array p_meter_events loop
        v_event := convert_from(v_document, 'UTF8')::jsonb;
        if v_event ->> 'eligibilityDecisionDigest' <> v_decision ->> 'eligibilityDecisionDigest'
            or v_event ->> 'executionAttemptId' <> p_attempt or v_decision #>> '{decision,state}' <> 'billable' then
            raise exception using errcode = 'OW003', message = 'the meter event does not follow from the decision';
        end if;
        insert into metering.meter_event (meter_event_ref, eligibility_decision_ref, execution_attempt_id,
            charge_dimension_key, quantity, unit, digest, document)
        values (v_event ->> 'meterEventRef', v_event ->> 'eligibilityDecisionRef', p_attempt,
            v_event ->> 'chargeDimensionKey', (v_event ->> 'quantity')::numeric, v_event ->> 'unit',
            v_event ->> 'meterEventDigest', v_document)
        on conflict do nothing;
        if not found then
            raise exception using errcode = 'OW001', message = 'another meter event is there', detail = 'meter_event';
        end if;
    end loop;
end $$;
