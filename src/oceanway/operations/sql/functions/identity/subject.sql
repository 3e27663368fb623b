-- Purpose: whose and which finalization an identity or an event is about, complete, to be compared as one value (CASE-02).
-- Locks: none.
-- Errors: none.
create or replace function operations.identity_subject(p_document jsonb)
returns jsonb
language sql
immutable
as $$
    select jsonb_build_object('runId', p_document -> 'runId', 'tenantKind', p_document -> 'tenantKind',
        'tenantId', p_document -> 'tenantId', 'workspaceId', p_document -> 'workspaceId',
        'projectId', p_document -> 'projectId', 'billingAccountId', p_document -> 'billingAccountId',
        'billingReservationId', p_document -> 'billingReservationId',
        'billingFinalizationFenceId', p_document -> 'billingFinalizationFenceId')
$$;
