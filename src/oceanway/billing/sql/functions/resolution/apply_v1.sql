-- Purpose: applies the resolution of one case (TX-27, CASE-15, CASE-21): consumes the grant, and writes the fact, the audit
--   and the event. Nothing of the finalization is decided here. The same operation with the same content returns the first
--   fact, without another look at the grant.
-- Locks: the fence; the primary key of the grant.
-- Errors: OW001 the operation was applied with other content; OW002 the case is not the one the fence is in; OW003 documents
--   that do not belong together; OW004 there is no such case; OW007 the grant was consumed by another command.
-- Returns: the stored fact.
create or replace function billing.resolution_apply_v1(p_fact bytea, p_envelope bytea)
returns bytea
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_fact constant jsonb := convert_from(p_fact, 'UTF8')::jsonb;
    v_payload constant jsonb := convert_from(p_envelope, 'UTF8')::jsonb -> 'payload';
    v_ref constant text := v_fact ->> 'finalizationReconciliationResolutionAppliedRef';
    v_digest constant text := v_fact ->> 'finalizationReconciliationResolutionAppliedDigest';
    v_operation constant text := v_fact ->> 'resolutionOperationId';
    v_fence billing.finalization_fence;
    v_first billing.resolution_applied;
begin
    select * into v_fence from billing.finalization_fence as f
    where f.billing_finalization_fence_id = v_fact ->> 'billingFinalizationFenceId' for no key update;
    select * into v_first from billing.resolution_applied as r where r.resolution_operation_id = v_operation;
    if found then
        if v_first.digest = v_digest then
            return v_first.document;
        end if;
        raise exception using errcode = 'OW001', message = 'the operation was applied with other content';
    end if;
    perform from billing.reconciliation as c
    where c.billing_finalization_fence_id = v_fact ->> 'billingFinalizationFenceId'
      and c.reconciliation_generation = (v_fact ->> 'reconciliationGeneration')::bigint
      and c.reconciliation_case_ref = v_fact ->> 'reconciliationCaseRef'
      and convert_from(c.case_identity, 'UTF8')::jsonb @> jsonb_build_object(
        'finalizationCaseIdentityReservationRef', v_fact -> 'finalizationCaseIdentityReservationRef',
        'finalizationCaseIdentityReservationDigest', v_fact -> 'finalizationCaseIdentityReservationDigest',
        'tenantKind', v_fact -> 'tenantKind', 'tenantId', v_fact -> 'tenantId', 'workspaceId', v_fact -> 'workspaceId',
        'billingAccountId', v_fact -> 'billingAccountId', 'billingReservationId', v_fact -> 'billingReservationId',
        'runId', v_fact -> 'runId')
      and convert_from(c.case_identity, 'UTF8')::jsonb -> 'projectId' is not distinct from v_fact -> 'projectId';
    if not found then
        raise exception using errcode = 'OW004', message = 'there is no such case with this identity';
    end if;
    if v_fence.state <> 'reconciliation_required'
        or v_fence.reconciliation_generation <> (v_fact ->> 'reconciliationGeneration')::bigint then
        raise exception using errcode = 'OW002', message = 'the fence is not in this case';
    end if;
    if not v_payload @> jsonb_build_object('finalizationReconciliationResolutionAppliedRef', v_ref,
            'finalizationReconciliationResolutionAppliedDigest', v_digest, 'resolutionOperationId', v_operation,
            'reconciliationCaseRef', v_fact -> 'reconciliationCaseRef', 'action', 'reevaluate_current_owner_state') then
        raise exception using errcode = 'OW003', message = 'the event does not name this fact';
    end if;
    insert into billing.grant_consumed (grant_jti, operation_id, action)
    values (v_fact ->> 'grantJti', v_operation, 'reevaluate_current_owner_state')
    on conflict (grant_jti) do nothing;
    if not found then
        raise exception using errcode = 'OW007', message = 'the grant was consumed by another command';
    end if;
    insert into billing.resolution_applied (finalization_reconciliation_resolution_applied_ref,
        billing_finalization_fence_id, reconciliation_generation, reconciliation_case_ref, resolution_revision,
        resolution_operation_id, grant_jti, actor_workforce_principal_id, resolution_applied_event_id, digest, document)
    values (v_ref, v_fence.billing_finalization_fence_id, (v_fact ->> 'reconciliationGeneration')::bigint,
        v_fact ->> 'reconciliationCaseRef', (v_fact ->> 'resolutionRevision')::bigint, v_operation,
        v_fact ->> 'grantJti', v_fact ->> 'actorWorkforcePrincipalId',
        billing.event_bind(p_envelope, 'billing.finalization-reconciliation-resolution.applied@1', v_ref),
        v_digest, p_fact);
    perform seapost.outbox_append_v1(array[p_envelope]);
    insert into billing.audit_record (actor, action, subject_ref, object_digest)
    values (v_fact ->> 'actorWorkforcePrincipalId', 'reconciliation.resolution_applied',
        v_fact ->> 'reconciliationCaseRef', v_digest);
    return p_fact;
end $$;
