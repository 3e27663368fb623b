-- Purpose: the newest settlement input that billing knows of each charge dimension (REF-45, CAT-02). A watermark may be older
--   than its reservation, so nothing is referenced (CAT-07).

create table billing.settlement_inbox (
    settlement_dimension_id text collate "C" primary key,
    billing_reservation_id text collate "C" not null,
    billing_account_id text collate "C" not null,
    run_id text collate "C" not null,
    run_step_id text collate "C" not null,
    execution_attempt_id text collate "C" not null,
    charge_dimension_key text collate "C" not null,
    inbox_revision bigint not null check (inbox_revision >= 1),
    settlement_input_snapshot_ref text collate "C" not null,
    settlement_input_snapshot_schema_version text collate "C" not null,
    settlement_input_snapshot_digest_algorithm_version text collate "C" not null,
    settlement_input_snapshot_digest text collate "C" not null,
    settlement_input_state_version bigint not null check (settlement_input_state_version >= 1),
    settlement_economic_identity jsonb not null,
    updated_at timestamptz not null default clock_timestamp(),
    unique (billing_reservation_id, run_step_id, execution_attempt_id, charge_dimension_key)
);

create trigger settlement_inbox_forward before update on billing.settlement_inbox
    for each row execute function billing.guard_watermark();
create trigger settlement_inbox_no_delete before delete on billing.settlement_inbox
    for each row execute function billing.guard_reject_change();
