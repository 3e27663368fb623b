-- Purpose: what the projector makes of events, each table once per projection version (REF-51).

create table operations.operation_identity (  -- whose a run is; every event of the run must agree (OPS-14, CASE-28)
    projection_version text collate "C" not null,
    operation_id text collate "C" not null,  -- the identifier of the run
    billing_reservation_id text collate "C" not null,
    billing_account_id text collate "C" not null,
    tenant_kind text collate "C" not null,
    tenant_id text collate "C" not null,
    workspace_id text collate "C" not null,
    project_id text collate "C",
    primary key (projection_version, operation_id),
    unique (projection_version, billing_reservation_id)
);

create table operations.operation_summary (  -- exists once the run event is there; the reservation may still be missing
    projection_version text collate "C" not null,
    operation_id text collate "C" not null,
    run_event_id uuid not null,
    run_step_ids text[] not null,
    run_admission_manifest_ref text collate "C" not null,
    run_admission_manifest_digest text collate "C" not null,
    admitted_at timestamptz not null,
    wallet_event_id uuid,
    reserved_amount numeric,
    currency text collate "C",
    reservation_state_version bigint,
    primary key (projection_version, operation_id),
    foreign key (projection_version, operation_id) references operations.operation_identity,
    check (num_nulls(wallet_event_id, reserved_amount, currency, reservation_state_version) in (0, 4))
);

create table operations.pending_unlinked_reservations (  -- a wallet event whose run event has not come (OPS-14)
    projection_version text collate "C" not null,
    billing_reservation_id text collate "C" not null,
    run_id text collate "C" not null,
    event_id uuid not null,
    envelope bytea not null,
    primary key (projection_version, billing_reservation_id),
    unique (projection_version, run_id)
);

create table operations.exact_identifier_index (  -- the only way to an operation: a complete identifier (OPS-05)
    projection_version text collate "C" not null,
    kind text collate "C" not null,
    value_digest bytea not null,
    operation_id text collate "C" not null,
    primary key (projection_version, kind, value_digest, operation_id),
    check (kind in ('run', 'reservation', 'account', 'step', 'attempt', 'dimension', 'fence', 'case')),
    check (octet_length(value_digest) = 32)
);

create table operations.timeline_entry (  -- one for each applied event
    projection_version text collate "C" not null,
    event_id uuid not null,
    operation_id text collate "C" not null,
    event_type text collate "C" not null,
    producer text collate "C" not null,
    aggregate_kind text collate "C" not null,
    aggregate_id text collate "C" not null,
    aggregate_revision bigint not null,
    causation_id uuid,
    logical_operation_id text collate "C",
    occurred_at timestamptz not null,
    envelope_sha256 bytea not null,
    detail jsonb not null,
    applied_at timestamptz not null default clock_timestamp(),
    primary key (event_id, projection_version)
);
create index timeline_entry_operation_idx on operations.timeline_entry (operation_id, projection_version);

create table operations.finalization (
    projection_version text collate "C" not null,
    operation_id text collate "C" not null,
    event_id uuid not null,
    billing_finalization_fence_id text collate "C" not null,
    finalization_fence_revision bigint not null,
    settled_amount numeric not null,
    released_amount numeric not null,
    currency text collate "C" not null,
    primary key (projection_version, operation_id)
);

create table operations.settlement_dimension (  -- what one charge dimension has come to
    projection_version text collate "C" not null,
    settlement_dimension_id text collate "C" not null,
    operation_id text collate "C" not null,
    run_step_id text collate "C" not null,
    execution_attempt_id text collate "C" not null,
    charge_dimension_key text collate "C" not null,
    finalized_amount numeric,  -- null until the finalization is there, or when it had nothing of this dimension
    adjusted_amount numeric not null default 0,
    waived_amount numeric not null default 0,
    state_revision bigint not null default 0,
    last_event_id uuid,
    first_causation_id uuid,  -- what the first transition names as its cause; compared with the finalization (AMB-50)
    exposure_state text collate "C" not null default 'none',
    exposure_amount numeric not null default 0,
    exposure_case_ref text collate "C",
    primary key (projection_version, settlement_dimension_id),
    check (exposure_state in ('none', 'open', 'resolved')),
    check ((state_revision = 0) = (last_event_id is null) and (state_revision = 0) = (first_causation_id is null)),
    check ((exposure_state = 'none') = (exposure_case_ref is null)),
    check (exposure_state = 'open' or exposure_amount = 0)
);
create index settlement_dimension_operation_idx on operations.settlement_dimension (operation_id, projection_version);

create table operations.dimension_revision (  -- which event made which state of a dimension (CASE-31)
    projection_version text collate "C" not null,
    settlement_dimension_id text collate "C" not null,
    revision bigint not null,
    event_id uuid not null,
    kind text collate "C" not null,
    fact_ref text collate "C" not null,
    fact_digest text collate "C" not null,
    case_ref text collate "C",
    primary key (projection_version, settlement_dimension_id, revision),
    check (kind in ('adjust', 'request_open', 'resolve', 'charge', 'waive')),
    check (kind = 'adjust' or case_ref is not null)
);

create table operations.late_case (  -- a function of what is known: request, resolution, and the event that caused it
    projection_version text collate "C" not null,
    case_ref text collate "C" not null,
    operation_id text collate "C" not null,
    settlement_dimension_id text collate "C" not null,
    state text collate "C" not null,
    request_event_id uuid,
    request_causation_id uuid,
    opened_revision bigint,
    exposure_amount numeric,
    resolution_event_id uuid,
    resolution_causation_id uuid,
    resolved_revision bigint,
    resolution_kind text collate "C",
    resolution_fact_ref text collate "C",
    resolution_fact_digest text collate "C",
    effect_event_id uuid,
    primary key (projection_version, case_ref),
    check (num_nulls(request_event_id, request_causation_id, opened_revision, exposure_amount) in (0, 4)),
    check (num_nulls(resolution_event_id, resolution_causation_id, resolved_revision, resolution_kind,
        resolution_fact_ref, resolution_fact_digest) in (0, 6)),
    check (num_nonnulls(request_event_id, resolution_event_id) > 0),
    check (effect_event_id is null or resolution_event_id is not null),
    check (state = case
        when resolution_event_id is null and request_event_id is not null then 'open'
        when resolution_event_id is not null and request_event_id is not null and effect_event_id is not null then 'resolved'
        when resolution_event_id is not null then 'pending_resolution' end)
);
create index late_case_operation_idx on operations.late_case (operation_id, projection_version);
create index late_case_dimension_idx on operations.late_case (settlement_dimension_id, projection_version);
