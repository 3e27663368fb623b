-- Purpose: what a late command starts from (CASE-20): what the same operation came to before; the dimension of the case with
--   its money, whose it is and what it means.
-- Locks: none.
-- Errors: none; one row of nulls for an unknown case.
create or replace function billing.late_command_read_v1(p_case_ref text, p_operation text)
returns table (subject jsonb, dimension jsonb, economic_identity jsonb, applied bytea)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
    select jsonb_strip_nulls(jsonb_build_object('tenantKind', r.tenant_kind, 'tenantId', r.tenant_id,
            'workspaceId', r.workspace_id, 'projectId', r.project_id, 'billingAccountId', r.billing_account_id,
            'billingReservationId', r.billing_reservation_id, 'runId', r.run_id, 'runStepId', s.run_step_id,
            'executionAttemptId', s.execution_attempt_id, 'chargeDimensionKey', s.charge_dimension_key)),
        billing.dimension_document(s), i.settlement_economic_identity,
        (select c.document from billing.late_command_result as c where c.operation_id = p_operation)
    from (values (p_case_ref)) as k (case_ref)
    left join billing.transition as t on t.case_ref = k.case_ref and t.kind = 'request_open'
    left join billing.dimension_state as s on s.settlement_dimension_id = t.settlement_dimension_id
    left join billing.settlement_inbox as i on i.settlement_dimension_id = s.settlement_dimension_id
    left join billing.reservation as r on r.billing_reservation_id = s.billing_reservation_id
$$;
