-- Purpose: whether a payload names the tenant, account and reservation of an identity, item by item.
-- Locks: none.
-- Errors: none.
create or replace function operations.event_same_identity(p_identity operations.operation_identity, p_payload jsonb)
returns boolean
language sql
immutable
as $$
    select (p_identity.operation_id, p_identity.billing_reservation_id, p_identity.billing_account_id,
            p_identity.tenant_kind, p_identity.tenant_id, p_identity.workspace_id, p_identity.project_id)
        is not distinct from (p_payload ->> 'runId', p_payload ->> 'billingReservationId', p_payload ->> 'billingAccountId',
            p_payload ->> 'tenantKind', p_payload ->> 'tenantId', p_payload ->> 'workspaceId', p_payload ->> 'projectId')
$$;
