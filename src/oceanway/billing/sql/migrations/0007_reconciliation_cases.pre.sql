-- Purpose: each entry of a fence into a case, with the identity that operations reserved for it (TX-26, CASE-01..05).

create table billing.reconciliation (
    billing_finalization_fence_id text collate "C" not null
        references billing.finalization_fence (billing_finalization_fence_id),
    reconciliation_generation bigint not null check (reconciliation_generation >= 1),
    reconciliation_case_ref text collate "C" not null unique,
    finalization_case_identity_reservation_ref text collate "C" not null unique,
    finalization_case_identity_reservation_digest text collate "C" not null,
    billing_finalization_decision_ref text collate "C" not null unique
        references billing.finalization_decision (billing_finalization_decision_ref),
    entered_at_fence_revision bigint not null,
    case_requested_event_id uuid not null unique references seapost.event (event_id) deferrable initially deferred,
    case_identity bytea not null,  -- FinalizationReconciliationCaseIdentityReservation@1, as operations keeps it
    primary key (billing_finalization_fence_id, reconciliation_generation)
);

create trigger reconciliation_immutable before update or delete on billing.reconciliation
    for each row execute function billing.guard_reject_change();
