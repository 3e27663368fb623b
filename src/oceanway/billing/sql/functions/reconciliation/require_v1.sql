-- Purpose: a finalization that meets a conflict enters a case (TX-26, CASE-04): decision, Finish, the identity that
--   operations reserved for this generation, the fence, the audit and the event. The same decision again returns the first one.
-- Locks: the gate, shared; the fence.
-- Errors: OW001 the decision has an event; OW002 lease or revision is no longer current, or the generation is not the next;
--   OW003 documents that do not belong together; OW006 the producer is not enabled (CASE-25).
-- Returns: the stored decision.
create or replace function billing.reconciliation_require_v1(
    p_decision bytea, p_identity bytea, p_finish bytea, p_envelope bytea, p_fencing_token bigint,
    p_expected_revision bigint
)
returns bytea
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_decision constant jsonb := convert_from(p_decision, 'UTF8')::jsonb;
    v_identity constant jsonb := convert_from(p_identity, 'UTF8')::jsonb;
    v_finish constant jsonb := convert_from(p_finish, 'UTF8')::jsonb;
    v_payload constant jsonb := convert_from(p_envelope, 'UTF8')::jsonb -> 'payload';
    v_decision_ref constant text := v_decision ->> 'billingFinalizationDecisionRef';
    v_generation constant bigint := (v_identity ->> 'reconciliationGeneration')::bigint;
    v_fence billing.finalization_fence;
    v_first bytea;
begin
    select d.document into v_first from billing.finalization_decision as d
    where d.billing_finalization_decision_ref = v_decision_ref
      and d.digest = v_decision ->> 'billingFinalizationDecisionDigest';
    if found then
        return v_first;
    end if;
    perform from billing.reconciliation_gate as g where g.finalization_reconciliation_producer_enabled for share;
    if not found then
        raise exception using errcode = 'OW006', message = 'the producer of reconciliation cases is not enabled';
    end if;
    v_fence := billing.finalization_hold(v_decision ->> 'billingFinalizationWorkRef', p_fencing_token,
        p_expected_revision);
    if v_generation is distinct from v_fence.reconciliation_generation + 1 then
        raise exception using errcode = 'OW002', message = 'the case is not the next generation of this fence';
    end if;
    if v_fence.closure_watermark ->> 'state' = 'none'
        or not v_payload @> (v_identity - '{finalizationCaseIdentityReservationRef,predecessor,reservedAt}'::text[])
        or not v_payload @> jsonb_build_object('billingFinalizationDecisionRef', v_decision_ref,
            'billingFinalizationDecisionDigest', v_decision -> 'billingFinalizationDecisionDigest',
            'finalizationCaseIdentityReservationRef', v_identity -> 'finalizationCaseIdentityReservationRef')
        or (v_identity ->> 'billingFinalizationFenceId', v_decision #>> '{outcome,state}', v_finish #>> '{outcome,state}',
            v_finish -> 'billingFinalizationWorkRef', v_finish #>> '{outcome,billingFinalizationDecisionRef}')
           is distinct from (v_fence.billing_finalization_fence_id, 'reconciliation_required', 'reconciliation_required',
            v_decision -> 'billingFinalizationWorkRef', v_decision_ref) then
        raise exception using errcode = 'OW003', message = 'decision, identity, Finish and event are not of this fence';
    end if;
    insert into billing.finalization_decision (billing_finalization_decision_ref, billing_finalization_work_ref,
        billing_finalization_fence_id, outcome, digest, document)
    values (v_decision_ref, v_fence.active_work_ref, v_fence.billing_finalization_fence_id, 'reconciliation_required',
        v_decision ->> 'billingFinalizationDecisionDigest', p_decision);
    insert into billing.reconciliation (billing_finalization_fence_id, reconciliation_generation, reconciliation_case_ref,
        finalization_case_identity_reservation_ref, finalization_case_identity_reservation_digest,
        billing_finalization_decision_ref, entered_at_fence_revision, case_requested_event_id, case_identity)
    values (v_fence.billing_finalization_fence_id, v_generation, v_identity ->> 'reconciliationCaseRef',
        v_identity ->> 'finalizationCaseIdentityReservationRef',
        v_identity ->> 'finalizationCaseIdentityReservationDigest', v_decision_ref, v_fence.fence_revision + 1,
        billing.event_bind(p_envelope, 'billing.finalization-reconciliation.case-requested@1', v_decision_ref), p_identity);
    perform seapost.outbox_append_v1(array[p_envelope]);
    perform billing.finalization_finish_write(p_finish);
    update billing.finalization_fence as f
    set state = 'reconciliation_required', fence_revision = f.fence_revision + 1,
        reconciliation_generation = v_generation, active_work_ref = null,
        lease_owner = null, fencing_token = null, lease_expires_at = null
    where f.billing_finalization_fence_id = v_fence.billing_finalization_fence_id;
    insert into billing.audit_record (actor, action, subject_ref, object_digest)
    values ('billing', 'reconciliation.required', v_identity ->> 'reconciliationCaseRef',
        v_decision ->> 'billingFinalizationDecisionDigest');
    return p_decision;
end $$;
