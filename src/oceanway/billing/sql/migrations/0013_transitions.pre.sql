-- Purpose: what changed a dimension after its finalization, with the events, the input it consumed and what the exposure came
--   to (TX-11, REF-48, REF-50, AMB-41).

create table billing.transition (
    settlement_transition_ref text collate "C" primary key,
    logical_operation_id text collate "C" not null unique,
    validation_operation_id text collate "C" not null unique,  -- never for two revisions (CASE-33)
    validation_receipt_ref text collate "C" not null,
    receipt_purpose text collate "C" not null default 'post_finalization_transition'
        check (receipt_purpose = 'post_finalization_transition'),  -- no other receipt books money (CAT-18)
    settlement_dimension_id text collate "C" not null,
    kind text collate "C" not null check (kind in ('adjust', 'request_open', 'resolve')),
    from_revision bigint not null check (from_revision >= 0),
    to_revision bigint not null check (to_revision = from_revision + 1),
    ledger_delta numeric not null check (scale(ledger_delta) <= 9),
    exposure_amount numeric not null check (exposure_amount >= 0 and scale(exposure_amount) <= 9),  -- after it
    case_ref text collate "C",
    transition_committed_event_id uuid not null unique
        references seapost.event (event_id) deferrable initially deferred,
    case_requested_event_id uuid unique references seapost.event (event_id) deferrable initially deferred,
    case_resolution_event_id uuid unique references seapost.event (event_id) deferrable initially deferred,
    digest text collate "C" not null,
    document bytea not null,  -- SettlementTransition@1
    exposure bytea,  -- LateSettlementExposure@1, where an exposure was touched
    check ((kind = 'request_open') = (case_requested_event_id is not null)),
    check ((kind = 'resolve') = (case_resolution_event_id is not null)),
    check (kind = 'adjust' or case_ref is not null),
    check ((case_ref is null) = (exposure is null)),
    unique (settlement_dimension_id, to_revision),
    foreign key (validation_receipt_ref, receipt_purpose)
        references billing.validation_receipt (current_validation_receipt_ref, purpose),
    foreign key (settlement_dimension_id, to_revision)
        references billing.dimension_revision (settlement_dimension_id, revision) deferrable initially deferred
);
create index transition_case_idx on billing.transition (case_ref) where case_ref is not null;

create table billing.consumption (  -- an input is consumed once by a consumer
    settlement_consumption_ref text collate "C" primary key,
    consumer text collate "C" not null default 'settlement_transition' check (consumer = 'settlement_transition'),
    settlement_input_snapshot_ref text collate "C" not null,
    settlement_input_snapshot_schema_version text collate "C" not null,
    settlement_input_snapshot_digest_algorithm_version text collate "C" not null,
    settlement_input_snapshot_digest text collate "C" not null,
    settlement_input_state_version bigint not null,
    settlement_transition_ref text collate "C" not null unique
        references billing.transition (settlement_transition_ref),
    digest text collate "C" not null,
    document bytea not null,  -- SettlementConsumption@1
    unique (settlement_input_snapshot_ref, settlement_input_snapshot_schema_version,
        settlement_input_snapshot_digest_algorithm_version, settlement_input_snapshot_digest,
        settlement_input_state_version, consumer)
);

create trigger transition_immutable before update or delete on billing.transition
    for each row execute function billing.guard_reject_change();
create trigger consumption_immutable before update or delete on billing.consumption
    for each row execute function billing.guard_reject_change();
