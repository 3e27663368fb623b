-- Purpose: leases the latest works of fences that are due, longest waiting first, with one Start each (AMB-45). An expired
--   lease is claimed anew with the next attempt number.
-- Locks: the fences claimed; those that others hold are skipped.
-- Errors: OW003 a limit or a lease that is not positive.
create or replace function billing.finalization_work_claim_v1(p_owner text, p_limit integer, p_lease interval)
returns table (
    work bytea, trigger bytea, subject jsonb, run_admission_manifest bytea, currency text, fence_revision bigint,
    attempt_number integer, fencing_token bigint, reconciliation_generation bigint, previous_identity bytea
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    if not coalesce(p_limit between 1 and 1000 and p_lease > interval '0', false) then
        raise exception using errcode = 'OW003', message = 'a claim needs a limit of 1 to 1000 and a lease above zero';
    end if;
    return query
    with due as materialized (
        select f.billing_finalization_fence_id from billing.finalization_fence as f
        where f.state = 'pending' and f.available_at <= clock_timestamp()
        order by f.available_at limit p_limit for no key update skip locked),
    leased as (
        update billing.finalization_fence as f
        set lease_owner = p_owner, fencing_token = nextval('billing.fencing_token'),
            lease_expires_at = clock_timestamp() + p_lease, available_at = clock_timestamp() + p_lease,
            attempt_number = f.attempt_number + 1
        from due as d where f.billing_finalization_fence_id = d.billing_finalization_fence_id
        returning f.*),
    started as (
        insert into billing.finalization_work_start (billing_finalization_work_ref, attempt_number, fencing_token,
            lease_owner)
        select l.active_work_ref, l.attempt_number, l.fencing_token, l.lease_owner from leased as l)
    select w.document, t.document,
        jsonb_strip_nulls(jsonb_build_object('tenantKind', r.tenant_kind, 'tenantId', r.tenant_id,
            'workspaceId', r.workspace_id, 'projectId', r.project_id, 'billingAccountId', r.billing_account_id,
            'billingReservationId', r.billing_reservation_id, 'runId', r.run_id,
            'reservedAmount', trim_scale(r.reserved_amount)::text, 'coordinatorReceipt', l.coordinator_receipt)),
        r.run_admission_manifest, r.currency, l.fence_revision, l.attempt_number, l.fencing_token,
        l.reconciliation_generation, c.case_identity
    from leased as l
    join billing.finalization_work as w on w.billing_finalization_work_ref = l.active_work_ref
    join billing.finalization_trigger as t
      on t.billing_finalization_trigger_snapshot_ref = w.billing_finalization_trigger_snapshot_ref
    join billing.reservation as r on r.billing_reservation_id = l.billing_reservation_id
    left join billing.reconciliation as c on c.billing_finalization_fence_id = l.billing_finalization_fence_id
     and c.reconciliation_generation = l.reconciliation_generation;
end $$;
