-- Purpose: what each finalized charge dimension has come to, and the unbroken chain of what changed it (REF-50, CASE-31).

create table billing.dimension_state (
    settlement_dimension_id text collate "C" primary key,
    billing_reservation_id text collate "C" not null references billing.reservation (billing_reservation_id),
    run_step_id text collate "C" not null,
    execution_attempt_id text collate "C" not null,
    charge_dimension_key text collate "C" not null,
    state_revision bigint not null default 0 check (state_revision >= 0),
    settled_amount numeric not null default 0 check (scale(settled_amount) <= 9),
    waived_amount numeric not null default 0 check (waived_amount >= 0 and scale(waived_amount) <= 9),
    exposure_state text collate "C" not null default 'none' check (exposure_state in ('none', 'open', 'resolved')),
    exposure_amount numeric not null default 0 check (exposure_amount >= 0 and scale(exposure_amount) <= 9),
    exposure_case_ref text collate "C",  -- the open case, or the last one
    last_evaluated jsonb not null default '{"state": "none"}',  -- the settlement input behind the amounts
    last_event_id uuid not null,  -- the finalization, or the event of this revision: the cause of the next one
    check (run_step_id <> '' and execution_attempt_id <> '' and charge_dimension_key <> ''),
    check ((exposure_state = 'open') = (exposure_amount > 0)),
    check ((exposure_state = 'none') = (exposure_case_ref is null)),
    unique (billing_reservation_id, run_step_id, execution_attempt_id, charge_dimension_key)
);

create table billing.dimension_revision (  -- transitions and late results share one count without gaps (AMB-29)
    settlement_dimension_id text collate "C" not null references billing.dimension_state (settlement_dimension_id),
    revision bigint not null check (revision >= 1),
    fact_kind text collate "C" not null check (fact_kind in ('transition', 'late_command_result')),
    fact_ref text collate "C" not null unique,
    event_id uuid not null unique references seapost.event (event_id) deferrable initially deferred,
    causation_event_id uuid not null,  -- the event of the revision before; of the finalization for the first
    primary key (settlement_dimension_id, revision),
    unique (settlement_dimension_id, causation_event_id)
);

create trigger dimension_state_no_delete before delete on billing.dimension_state
    for each row execute function billing.guard_reject_change();
create trigger dimension_revision_immutable before update or delete on billing.dimension_revision
    for each row execute function billing.guard_reject_change();
