-- Purpose: what is reserved for a run, and every booking of it (REF-16, REF-17, REF-50).

create table billing.reservation (
    billing_reservation_id text collate "C" primary key,
    billing_account_id text collate "C" not null references billing.account (billing_account_id),
    run_id text collate "C" not null unique,
    tenant_kind text collate "C" not null,
    tenant_id text collate "C" not null,
    workspace_id text collate "C" not null,
    project_id text collate "C",
    currency text collate "C" not null check (currency ~ '^[A-Z]{3}$'),
    reserved_amount numeric not null check (reserved_amount >= 0 and scale(reserved_amount) <= 9),
    state text collate "C" not null default 'open' check (state in ('open', 'finalized')),
    settled numeric not null default 0,
    released numeric not null default 0,
    exposure_open numeric not null default 0 check (exposure_open >= 0),
    run_admission_manifest_ref text collate "C" not null unique,
    run_admission_manifest_digest text collate "C" not null,
    run_admission_manifest bytea not null,  -- RunAdmissionManifest@1
    admitted_at timestamptz not null default clock_timestamp(),
    -- what was reserved is always completely accounted for, so each booking changes both sides in one statement
    check (case state when 'open' then settled = 0 and released = 0 and exposure_open = 0
                      else reserved_amount = settled + released + exposure_open end)
);
create index reservation_account_idx on billing.reservation (billing_account_id);

create table billing.ledger_entry (  -- of one reservation: sum(reserve) = sum(settle) + sum(release) + sum(exposure)
    entry_id bigint generated always as identity primary key,
    billing_reservation_id text collate "C" not null references billing.reservation (billing_reservation_id),
    billing_account_id text collate "C" not null,
    settlement_dimension_id text collate "C",
    kind text collate "C" not null check (kind in ('reserve', 'settle', 'release', 'exposure')),
    amount numeric not null check (scale(amount) <= 9),
    source_ref text collate "C" not null,  -- the fact that booked it
    booked_at timestamptz not null default clock_timestamp(),
    check (kind in ('reserve', 'release') or settlement_dimension_id is not null)
);
create index ledger_entry_reservation_idx on billing.ledger_entry (billing_reservation_id);
create unique index ledger_entry_reserve_idx on billing.ledger_entry (billing_reservation_id) where kind = 'reserve';

create trigger ledger_entry_immutable before update or delete on billing.ledger_entry
    for each row execute function billing.guard_reject_change();
create trigger reservation_no_delete before delete on billing.reservation
    for each row execute function billing.guard_reject_change();
