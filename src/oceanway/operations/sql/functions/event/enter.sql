-- Purpose: opens the application of one event of a run, which must agree with all before it whose run this is (OPS-14,
--   CASE-28). Edges cross aggregates, so one transaction at a time changes a projection version: locks of single runs
--   would be taken in the order of events, and two batches could wait for each other.
-- Locks: an advisory lock on the version, to the end of the transaction; the room has locked all aggregates before.
-- Errors: OW001 another tenant, account or reservation than an earlier event of this run said.
create or replace function operations.event_enter(p_version text, p_payload jsonb)
returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    v_operation_id constant text := p_payload ->> 'runId';
begin
    perform operations.event_lock(p_version);
    perform from operations.operation_identity as i
    where i.projection_version = p_version and i.operation_id = v_operation_id
      and operations.event_same_identity(i, p_payload);
    if found then
        return v_operation_id;
    end if;
    insert into operations.operation_identity (projection_version, operation_id, billing_reservation_id,
        billing_account_id, tenant_kind, tenant_id, workspace_id, project_id)
    values (p_version, v_operation_id, p_payload ->> 'billingReservationId', p_payload ->> 'billingAccountId',
        p_payload ->> 'tenantKind', p_payload ->> 'tenantId', p_payload ->> 'workspaceId', p_payload ->> 'projectId')
    on conflict do nothing;
    if not found then
        raise exception using errcode = 'OW001', message = 'another identity than an earlier event of this run';
    end if;
    return v_operation_id;
end $$;
