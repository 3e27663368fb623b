-- Purpose: what was ordered, each lease of it, and what became of it (REF-36, AMB-45, AMB-46).

create table billing.finalization_trigger (
    billing_finalization_trigger_snapshot_ref text collate "C" primary key,
    billing_finalization_fence_id text collate "C" not null
        references billing.finalization_fence (billing_finalization_fence_id),
    work_generation bigint not null,
    digest text collate "C" not null,
    document bytea not null,  -- BillingFinalizationTriggerSnapshot@1
    unique (billing_finalization_fence_id, work_generation)
);

create table billing.finalization_work (
    billing_finalization_work_ref text collate "C" primary key,
    billing_finalization_operation_id text collate "C" not null unique,
    billing_finalization_fence_id text collate "C" not null
        references billing.finalization_fence (billing_finalization_fence_id),
    work_generation bigint not null,
    billing_finalization_trigger_snapshot_ref text collate "C" not null unique
        references billing.finalization_trigger (billing_finalization_trigger_snapshot_ref),
    digest text collate "C" not null,
    document bytea not null,  -- BillingFinalizationWork@1
    unique (billing_finalization_fence_id, work_generation)
);

create table billing.finalization_work_start (  -- one for each lease
    billing_finalization_work_ref text collate "C" not null
        references billing.finalization_work (billing_finalization_work_ref),
    attempt_number integer not null check (attempt_number >= 1),
    fencing_token bigint not null unique,
    lease_owner text collate "C" not null,
    started_at timestamptz not null default clock_timestamp(),
    primary key (billing_finalization_work_ref, attempt_number)
);

create table billing.finalization_work_finish (  -- at most one for each work
    billing_finalization_work_ref text collate "C" primary key
        references billing.finalization_work (billing_finalization_work_ref),
    outcome text collate "C" not null check (outcome in
        ('closure_event_not_applied', 'settlement_input_not_applied', 'superseded', 'reconciliation_required', 'finalized')),
    digest text collate "C" not null,
    document bytea not null  -- BillingFinalizationWorkAttemptFinished@1
);

create trigger finalization_trigger_immutable before update or delete on billing.finalization_trigger
    for each row execute function billing.guard_reject_change();
create trigger finalization_work_immutable before update or delete on billing.finalization_work
    for each row execute function billing.guard_reject_change();
create trigger finalization_work_start_immutable before update or delete on billing.finalization_work_start
    for each row execute function billing.guard_reject_change();
create trigger finalization_work_finish_immutable before update or delete on billing.finalization_work_finish
    for each row execute function billing.guard_reject_change();
