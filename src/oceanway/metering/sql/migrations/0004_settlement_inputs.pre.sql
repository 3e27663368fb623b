-- Purpose: what billing settles from: a contiguous chain of snapshots for each dimension, and which one is current (REF-32).

create table metering.settlement_input_snapshot (
    settlement_input_snapshot_ref text collate "C" primary key,
    settlement_dimension_id text collate "C" not null,
    settlement_input_state_version bigint not null,
    predecessor_state_version bigint,
    execution_attempt_id text collate "C" not null,
    charge_dimension_key text collate "C" not null,
    eligibility_decision_ref text collate "C" not null references metering.eligibility_decision,
    quantity numeric not null check (quantity >= 0),
    digest text collate "C" not null,
    document bytea not null,  -- SettlementInputSnapshot@1
    current_changed_event_id uuid not null unique references seapost.event (event_id) deferrable initially deferred,
    unique (settlement_dimension_id, settlement_input_state_version),
    unique (settlement_dimension_id, settlement_input_state_version, settlement_input_snapshot_ref),
    foreign key (settlement_dimension_id, predecessor_state_version)
        references metering.settlement_input_snapshot (settlement_dimension_id, settlement_input_state_version),
    check (coalesce(predecessor_state_version, 0) = settlement_input_state_version - 1),
    check (predecessor_state_version >= 1)
);

create table metering.settlement_pointer (  -- the current snapshot of each dimension
    settlement_dimension_id text collate "C" primary key,
    execution_attempt_id text collate "C" not null,
    charge_dimension_key text collate "C" not null,
    settlement_input_state_version bigint not null,
    settlement_input_snapshot_ref text collate "C" not null,
    unique (execution_attempt_id, charge_dimension_key),
    foreign key (settlement_dimension_id, settlement_input_state_version, settlement_input_snapshot_ref)
        references metering.settlement_input_snapshot (settlement_dimension_id, settlement_input_state_version,
            settlement_input_snapshot_ref)
);

create table metering.settlement_input_conflict (  -- while one is not repaired, the dimension is answered as conflicting
    settlement_input_conflict_fact_ref text collate "C" primary key,
    settlement_dimension_id text collate "C" not null references metering.settlement_pointer,
    digest text collate "C" not null,
    document bytea not null,  -- SettlementInputConflictFact@1
    declared_at timestamptz not null default clock_timestamp(),
    repaired_at timestamptz
);
create unique index settlement_input_conflict_open_idx on metering.settlement_input_conflict (settlement_dimension_id)
    where repaired_at is null;

create trigger settlement_input_snapshot_immutable before update or delete on metering.settlement_input_snapshot
    for each row execute function metering.guard_reject_change();
create trigger settlement_pointer_forward before update on metering.settlement_pointer
    for each row execute function metering.guard_pointer();
create trigger settlement_pointer_no_delete before delete on metering.settlement_pointer
    for each row execute function metering.guard_reject_change();
create trigger settlement_input_conflict_kept before update on metering.settlement_input_conflict
    for each row execute function metering.guard_conflict();
create trigger settlement_input_conflict_no_delete before delete on metering.settlement_input_conflict
    for each row execute function metering.guard_reject_change();
