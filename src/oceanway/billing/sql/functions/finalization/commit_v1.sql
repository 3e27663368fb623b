-- Purpose: finalizes a reservation (TX-10, FIN-05, AMB-28): decision, fact with its event, every booking, the states and
--   catch-up fences of all dimensions with their works, the Finish and the end of the fence. The same fact again returns
--   the first one.
-- Locks: the fence; the settlement watermarks in order; the catch-up fences and dimension states in order; the reservation;
--   the account.
-- Errors: OW001 the fact or the decision has an event or exists with other content; OW002 lease, revision or an input is no
--   longer current; OW003 documents that do not belong together; OW009 no closure event or no coordinator receipt.
-- Returns: the stored fact.
create or replace function billing.finalization_commit_v1(
    p_decision bytea, p_fact bytea, p_finish bytea, p_envelope bytea, p_fencing_token bigint,
    p_catch_up_works bytea[], p_dimension_states jsonb
)
returns bytea
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_decision constant jsonb := convert_from(p_decision, 'UTF8')::jsonb;
    v_fact constant jsonb := convert_from(p_fact, 'UTF8')::jsonb;
    v_finish constant jsonb := convert_from(p_finish, 'UTF8')::jsonb;
    v_payload constant jsonb := convert_from(p_envelope, 'UTF8')::jsonb -> 'payload';
    v_dimensions constant jsonb := v_decision #> '{outcome,dimensions}';
    v_fact_ref constant text := v_fact ->> 'billingFinalizationFactRef';
    v_decision_ref constant text := v_decision ->> 'billingFinalizationDecisionRef';
    v_fence billing.finalization_fence;
    v_first bytea;
begin
    select f.document into v_first from billing.finalization_fact as f
    where f.billing_finalization_fact_ref = v_fact_ref and f.digest = v_fact ->> 'billingFinalizationFactDigest';
    if found then
        return v_first;
    end if;
    v_fence := billing.finalization_hold(v_decision ->> 'billingFinalizationWorkRef', p_fencing_token,
        (v_fact ->> 'finalizationFenceRevision')::bigint);
    if v_fence.closure_watermark ->> 'state' = 'none' then
        raise exception using errcode = 'OW009', message = 'nothing is finalized before the closure event is applied';
    end if;
    if not v_fact @> (v_fence.coordinator_receipt || jsonb_build_object(
            'closureEventId', v_fence.closure_watermark -> 'closureEventId',
            'closureEventEnvelopeDigestAlgorithmVersion', v_fence.closure_watermark -> 'eventEnvelopeDigestAlgorithmVersion',
            'closureEventEnvelopeSha256', v_fence.closure_watermark -> 'eventEnvelopeSha256',
            'billingFinalizationFenceId', v_fence.billing_finalization_fence_id,
            'billingReservationId', v_fence.billing_reservation_id,
            'billingFinalizationDecisionRef', v_decision_ref,
            'billingFinalizationDecisionDigest', v_decision -> 'billingFinalizationDecisionDigest',
            'dimensions', v_dimensions))
        or not v_payload @> (v_fact - 'finalizedAt')
        or (v_decision #>> '{outcome,state}', v_finish #>> '{outcome,state}', v_finish -> 'billingFinalizationWorkRef',
            v_finish #>> '{outcome,billingFinalizationDecisionRef}')
           is distinct from ('finalize', 'finalized', v_decision -> 'billingFinalizationWorkRef', v_decision_ref) then
        raise exception using errcode = 'OW003', message = 'decision, fact, Finish and event do not belong to this fence';
    end if;
    perform billing.finalization_compare_inputs(v_fence.billing_reservation_id, v_dimensions);
    insert into billing.finalization_decision (billing_finalization_decision_ref, billing_finalization_work_ref,
        billing_finalization_fence_id, outcome, digest, document)
    values (v_decision_ref, v_fence.active_work_ref, v_fence.billing_finalization_fence_id, 'finalize',
        v_decision ->> 'billingFinalizationDecisionDigest', p_decision);
    insert into billing.finalization_fact (billing_finalization_fact_ref, billing_finalization_fence_id,
        billing_reservation_id, billing_finalization_decision_ref, closure_event_id, finalization_committed_event_id,
        digest, document)
    values (v_fact_ref, v_fence.billing_finalization_fence_id, v_fence.billing_reservation_id, v_decision_ref,
        (v_fence.closure_watermark ->> 'closureEventId')::uuid,
        billing.event_bind(p_envelope, 'billing.finalization.committed@1', v_fact_ref),
        v_fact ->> 'billingFinalizationFactDigest', p_fact);
    perform seapost.outbox_append_v1(array[p_envelope]);
    perform billing.catch_up_open_v1(v_fence.billing_reservation_id, p_catch_up_works, p_dimension_states);
    perform billing.ledger_finalize(v_fact);
    perform billing.finalization_finish_write(p_finish);
    update billing.finalization_fence as f
    set state = 'finalized', finalization_fact_ref = v_fact_ref, active_work_ref = null,
        lease_owner = null, fencing_token = null, lease_expires_at = null
    where f.billing_finalization_fence_id = v_fence.billing_finalization_fence_id;
    insert into billing.audit_record (actor, action, subject_ref, object_digest)
    values ('billing', 'reservation.finalized', v_fence.billing_reservation_id,
        v_fact ->> 'billingFinalizationFactDigest');
    return p_fact;
end $$;
