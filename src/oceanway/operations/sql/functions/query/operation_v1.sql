-- Purpose: everything the projection shows of one operation, unredacted: what its sources said, what is still missing
--   (OPS-13), its cases and its timeline.
-- Locks: none.
-- Errors: none.
-- Returns: null for an operation without a summary.
create or replace function operations.query_operation_v1(p_version text, p_operation_id text)
returns jsonb
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select jsonb_build_object(
        'operationId', s.operation_id,
        'tenant', jsonb_strip_nulls(jsonb_build_object('tenantKind', i.tenant_kind, 'tenantId', i.tenant_id,
            'workspaceId', i.workspace_id, 'projectId', i.project_id)),
        'billingAccountId', i.billing_account_id,
        'run', jsonb_build_object('runId', s.operation_id, 'runStepIds', s.run_step_ids,
            'runAdmissionManifestRef', s.run_admission_manifest_ref,
            'runAdmissionManifestDigest', s.run_admission_manifest_digest,
            'admittedAt', operations.query_moment(s.admitted_at)),
        'reservation', case when s.wallet_event_id is not null then jsonb_build_object(
            'billingReservationId', i.billing_reservation_id, 'reservedAmount', operations.query_amount(s.reserved_amount),
            'currency', s.currency, 'reservationStateVersion', s.reservation_state_version) end,
        'sourceDelay', case when s.wallet_event_id is null then jsonb_build_array('wallet.reserved@2.0') else '[]' end,
        'finalization', (select jsonb_build_object('billingFinalizationFenceId', f.billing_finalization_fence_id,
                'finalizationFenceRevision', f.finalization_fence_revision, 'currency', f.currency,
                'settledAmount', operations.query_amount(f.settled_amount),
                'releasedAmount', operations.query_amount(f.released_amount))
            from operations.finalization as f
            where f.projection_version = p_version and f.operation_id = s.operation_id),
        'dimensions', operations.query_dimensions(p_version, s.operation_id),
        'cases', operations.query_cases(p_version, s.operation_id),
        'timeline', operations.query_timeline(p_version, s.operation_id),
        'runtime', operations.query_runtime(p_version, s.operation_id))
    from operations.operation_summary as s
    join operations.operation_identity as i
        on i.projection_version = s.projection_version and i.operation_id = s.operation_id
    where s.projection_version = p_version and s.operation_id = p_operation_id
$$;
