-- Purpose: everything that decides about a fence, as one document; the caller holds its lock.
-- Locks: none of its own.
-- Errors: none; null when there is no such reservation.
create or replace function billing.finalization_fence_state(p_reservation text)
returns jsonb
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
    select jsonb_build_object(
        'subject', jsonb_strip_nulls(jsonb_build_object('tenantKind', r.tenant_kind, 'tenantId', r.tenant_id,
            'workspaceId', r.workspace_id, 'projectId', r.project_id, 'billingAccountId', r.billing_account_id,
            'billingReservationId', r.billing_reservation_id, 'runId', r.run_id)),
        'currency', r.currency, 'runAdmissionManifestRef', r.run_admission_manifest_ref,
        'runAdmissionManifestDigest', r.run_admission_manifest_digest,
        'billingFinalizationFenceId', f.billing_finalization_fence_id, 'fenceRevision', f.fence_revision,
        'latestWorkGeneration', f.latest_work_generation, 'state', f.state,
        'closureWatermark', f.closure_watermark, 'resolutionWatermark', f.resolution_watermark,
        'settlementWatermarks', billing.finalization_watermarks(r.billing_reservation_id),
        'startedWork', (
            select jsonb_build_object('work', convert_from(w.document, 'UTF8')::jsonb,
                'attemptNumber', s.attempt_number, 'fencingToken', s.fencing_token::text)
            from billing.finalization_work as w
            join billing.finalization_work_start as s
              on s.billing_finalization_work_ref = w.billing_finalization_work_ref
            where w.billing_finalization_work_ref = f.active_work_ref
            order by s.attempt_number desc limit 1),
        'reconciliation', (
            select jsonb_build_object('generation', c.reconciliation_generation, 'caseRef', c.reconciliation_case_ref,
                'identity', convert_from(c.case_identity, 'UTF8')::jsonb)
            from billing.reconciliation as c
            where c.billing_finalization_fence_id = f.billing_finalization_fence_id
              and c.reconciliation_generation = f.reconciliation_generation))
    from billing.reservation as r
    join billing.finalization_fence as f on f.billing_reservation_id = r.billing_reservation_id
    where r.billing_reservation_id = p_reservation
$$;
