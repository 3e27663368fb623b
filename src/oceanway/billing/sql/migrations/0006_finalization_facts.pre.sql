-- Purpose: the decision of a work and the fact that a reservation is finalized, with its event (TX-10, AMB-41).

create table billing.finalization_decision (
    billing_finalization_decision_ref text collate "C" primary key,
    billing_finalization_work_ref text collate "C" not null unique
        references billing.finalization_work (billing_finalization_work_ref),
    billing_finalization_fence_id text collate "C" not null,
    outcome text collate "C" not null check (outcome in ('finalize', 'reconciliation_required')),
    digest text collate "C" not null,
    document bytea not null  -- BillingFinalizationDecision@1
);

create table billing.finalization_fact (
    billing_finalization_fact_ref text collate "C" primary key,
    billing_finalization_fence_id text collate "C" not null unique
        references billing.finalization_fence (billing_finalization_fence_id),
    billing_reservation_id text collate "C" not null unique references billing.reservation (billing_reservation_id),
    billing_finalization_decision_ref text collate "C" not null unique
        references billing.finalization_decision (billing_finalization_decision_ref),
    closure_event_id uuid not null,  -- of execution, another database (FIN-05)
    finalization_committed_event_id uuid not null unique
        references seapost.event (event_id) deferrable initially deferred,
    digest text collate "C" not null,
    document bytea not null  -- BillingFinalizationFact@1
);

create trigger finalization_decision_immutable before update or delete on billing.finalization_decision
    for each row execute function billing.guard_reject_change();
create trigger finalization_fact_immutable before update or delete on billing.finalization_fact
    for each row execute function billing.guard_reject_change();
