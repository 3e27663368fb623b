-- Purpose: what ends a case at billing: a controlled command, once for each case (TX-27, CASE-15, REF-41).

create table billing.resolution_applied (
    finalization_reconciliation_resolution_applied_ref text collate "C" primary key,
    billing_finalization_fence_id text collate "C" not null,
    reconciliation_generation bigint not null,
    reconciliation_case_ref text collate "C" not null,
    resolution_revision bigint not null check (resolution_revision = 1),
    resolution_operation_id text collate "C" not null unique,
    grant_jti text collate "C" not null unique references billing.grant_consumed (grant_jti),
    actor_workforce_principal_id text collate "C" not null,
    resolution_applied_event_id uuid not null unique
        references seapost.event (event_id) deferrable initially deferred,
    digest text collate "C" not null,
    document bytea not null,  -- FinalizationReconciliationResolutionApplied@1
    unique (reconciliation_case_ref, reconciliation_generation, resolution_revision),
    foreign key (billing_finalization_fence_id, reconciliation_generation)
        references billing.reconciliation (billing_finalization_fence_id, reconciliation_generation)
);

create trigger resolution_applied_immutable before update or delete on billing.resolution_applied
    for each row execute function billing.guard_reject_change();
