-- Purpose: whether finalizations may enter cases at all: off until the whole command chain stands (CASE-25, REF-43).

create table billing.reconciliation_gate (
    singleton boolean primary key default true check (singleton),
    finalization_reconciliation_producer_enabled boolean not null default false,
    command_chain text[] collate "C" not null default '{}',
    changed_at timestamptz not null default clock_timestamp()
);
insert into billing.reconciliation_gate default values;

create trigger reconciliation_gate_no_delete before delete on billing.reconciliation_gate
    for each row execute function billing.guard_reject_change();
