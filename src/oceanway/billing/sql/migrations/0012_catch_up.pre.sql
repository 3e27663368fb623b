-- Purpose: the catch-up fence of each dimension with the lease of its latest work, and what became of every work
--   (Annex A.6, REF-46, REF-47, AMB-45).

create table billing.catch_up_fence (
    settlement_dimension_id text collate "C" primary key,
    billing_reservation_id text collate "C" not null references billing.reservation (billing_reservation_id),
    fence_revision bigint not null default 1 check (fence_revision >= 1),
    latest_work_generation bigint not null default 0 check (latest_work_generation >= 0),
    state text collate "C" not null default 'awaiting_finalization' check (state in
        ('awaiting_finalization', 'pending_verification', 'blocked_on_owner_conflict', 'caught_up')),
    active_work_ref text collate "C",  -- the work of the latest generation, while it is not finished
    blocked_ref text collate "C",  -- what blocked the latest attempt of that work
    validation_receipt_ref text collate "C",  -- what let it be caught up (CAT-20)
    available_at timestamptz not null default clock_timestamp(),
    lease_owner text collate "C",
    fencing_token bigint,
    lease_expires_at timestamptz,
    attempt_number integer not null default 0 check (attempt_number >= 0),
    retry_count integer not null default 0 check (retry_count >= 0),
    check ((state in ('pending_verification', 'blocked_on_owner_conflict')) = (active_work_ref is not null)),
    check ((state = 'blocked_on_owner_conflict') = (blocked_ref is not null)),
    check ((state = 'caught_up') = (validation_receipt_ref is not null)),
    check ((state = 'awaiting_finalization') = (latest_work_generation = 0)),
    check (num_nulls(lease_owner, fencing_token, lease_expires_at) in (0, 3)),
    check (active_work_ref is not null or lease_owner is null)
);
create index catch_up_fence_ready_idx on billing.catch_up_fence (available_at) where active_work_ref is not null;

create table billing.catch_up_work (
    billing_settlement_catch_up_work_ref text collate "C" primary key,
    billing_catch_up_validation_operation_id text collate "C" not null unique,
    settlement_dimension_id text collate "C" not null references billing.catch_up_fence (settlement_dimension_id),
    work_generation bigint not null check (work_generation >= 1),
    digest text collate "C" not null,
    document bytea not null,  -- BillingSettlementCatchUpWork@1
    unique (settlement_dimension_id, work_generation)
);

create table billing.catch_up_work_start (  -- one for each lease
    billing_settlement_catch_up_work_ref text collate "C" not null
        references billing.catch_up_work (billing_settlement_catch_up_work_ref),
    attempt_number integer not null check (attempt_number >= 1),
    fencing_token bigint not null unique,
    lease_owner text collate "C" not null,
    started_at timestamptz not null default clock_timestamp(),
    primary key (billing_settlement_catch_up_work_ref, attempt_number)
);

create table billing.catch_up_work_finish (  -- at most one for each work
    billing_settlement_catch_up_work_ref text collate "C" primary key
        references billing.catch_up_work (billing_settlement_catch_up_work_ref),
    outcome text collate "C" not null check (outcome in
        ('caught_up', 'transition_applied', 'already_evaluated', 'superseded')),
    digest text collate "C" not null,
    document bytea not null  -- BillingSettlementCatchUpWorkAttemptFinished@1
);

create table billing.settlement_input_conflict (  -- as metering states it (AMB-30)
    settlement_input_conflict_fact_ref text collate "C" primary key,
    settlement_dimension_id text collate "C" not null,
    digest text collate "C" not null,
    document bytea not null  -- SettlementInputConflictFact@1
);
create index settlement_input_conflict_dimension_idx on billing.settlement_input_conflict (settlement_dimension_id);

create table billing.catch_up_work_blocked (  -- at most one for each lease; never a Finish (CAT-16)
    billing_settlement_catch_up_work_attempt_blocked_ref text collate "C" primary key,
    billing_settlement_catch_up_work_ref text collate "C" not null,
    attempt_number integer not null,
    settlement_input_conflict_fact_ref text collate "C" not null
        references billing.settlement_input_conflict (settlement_input_conflict_fact_ref),
    digest text collate "C" not null,
    document bytea not null,  -- BillingSettlementCatchUpWorkAttemptBlocked@1
    unique (billing_settlement_catch_up_work_ref, attempt_number),
    foreign key (billing_settlement_catch_up_work_ref, attempt_number)
        references billing.catch_up_work_start (billing_settlement_catch_up_work_ref, attempt_number)
);

create table billing.validation_receipt (  -- metering's word that an input is current, for one operation (REF-48)
    current_validation_receipt_ref text collate "C" primary key,
    purpose text collate "C" not null check (purpose in ('billing_catch_up_fence', 'post_finalization_transition')),
    validation_operation_id text collate "C" not null unique,
    settlement_dimension_id text collate "C" not null,
    digest text collate "C" not null,
    document bytea not null,  -- CurrentValidationReceipt@1
    unique (current_validation_receipt_ref, purpose)
);

create trigger catch_up_fence_no_delete before delete on billing.catch_up_fence
    for each row execute function billing.guard_reject_change();
create trigger catch_up_work_immutable before update or delete on billing.catch_up_work
    for each row execute function billing.guard_reject_change();
create trigger catch_up_work_start_immutable before update or delete on billing.catch_up_work_start
    for each row execute function billing.guard_reject_change();
create trigger catch_up_work_finish_immutable before update or delete on billing.catch_up_work_finish
    for each row execute function billing.guard_reject_change();
create trigger settlement_input_conflict_immutable before update or delete on billing.settlement_input_conflict
    for each row execute function billing.guard_reject_change();
create trigger catch_up_work_blocked_immutable before update or delete on billing.catch_up_work_blocked
    for each row execute function billing.guard_reject_change();
create trigger validation_receipt_immutable before update or delete on billing.validation_receipt
    for each row execute function billing.guard_reject_change();
