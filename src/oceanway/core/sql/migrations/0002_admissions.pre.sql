-- Purpose: the runs that core admitted and what was reserved for each, both with their event (REF-15, REF-17, TX-09).

create table core.run (
    run_id text collate "C" primary key,
    billing_reservation_id text collate "C" not null unique,
    billing_account_id text collate "C" not null,
    tenant_kind text collate "C" not null check (tenant_kind in ('organization', 'user')),
    tenant_id text collate "C" not null,
    workspace_id text collate "C" not null,
    project_id text collate "C",
    run_admission_manifest_ref text collate "C" not null unique,
    digest text collate "C" not null,
    document bytea not null,  -- RunAdmissionManifest@1
    run_created_event_id uuid not null unique references seapost.event (event_id) deferrable initially deferred,
    unique (run_id, billing_reservation_id)
);

create table core.wallet_reservation (
    billing_reservation_id text collate "C" primary key,
    run_id text collate "C" not null unique,
    reserved_amount numeric not null check (reserved_amount > 0),
    currency text collate "C" not null check (currency ~ '^[A-Z]{3}$'),
    reservation_state_version bigint not null check (reservation_state_version = 1),
    wallet_reserved_event_id uuid not null unique references seapost.event (event_id) deferrable initially deferred,
    foreign key (run_id, billing_reservation_id) references core.run (run_id, billing_reservation_id)
);

create trigger run_immutable before update or delete on core.run
    for each row execute function core.guard_reject_change();
create trigger wallet_reservation_immutable before update or delete on core.wallet_reservation
    for each row execute function core.guard_reject_change();
