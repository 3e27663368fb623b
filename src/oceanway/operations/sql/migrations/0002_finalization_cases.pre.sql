-- Purpose: the cases of a finalization fence, a function of the known requests and resolutions (Annex A.7, AMB-13).

create table operations.case_identity_reservation (  -- a generation of a fence has one identity, for life (REF-39)
    billing_finalization_fence_id text collate "C" not null,
    reconciliation_generation bigint not null,
    identity_ref text collate "C" not null unique,
    identity_digest text collate "C" not null,
    billing_reservation_id text collate "C" not null,
    subject jsonb not null,  -- tenant, account, reservation, run and fence: the same in every generation
    document bytea not null,
    primary key (billing_finalization_fence_id, reconciliation_generation),
    check (reconciliation_generation >= 1)
);
create index case_identity_reservation_idx on operations.case_identity_reservation (billing_reservation_id);

create table operations.finalization_case_request (
    projection_version text collate "C" not null,
    fence_id text collate "C" not null,
    generation bigint not null,
    operation_id text collate "C" not null,
    case_ref text collate "C" not null,
    event_id uuid not null,
    identity_ref text collate "C" not null,
    identity_digest text collate "C" not null,
    primary key (projection_version, fence_id, generation)
);
create index finalization_case_request_operation_idx
    on operations.finalization_case_request (operation_id, projection_version);

create table operations.finalization_case_resolution (  -- kept even before its own request is there (AMB-13)
    projection_version text collate "C" not null,
    fence_id text collate "C" not null,
    generation bigint not null,
    operation_id text collate "C" not null,
    case_ref text collate "C" not null,
    event_id uuid not null,
    identity_ref text collate "C" not null,
    identity_digest text collate "C" not null,
    fact_ref text collate "C" not null,
    fact_schema_version text collate "C" not null,
    fact_digest_algorithm_version text collate "C" not null,
    fact_digest text collate "C" not null,
    actor_workforce_principal_id text collate "C" not null,
    primary key (projection_version, fence_id, generation)
);

create table operations.finalization_case (
    projection_version text collate "C" not null,
    fence_id text collate "C" not null,
    generation bigint not null,
    operation_id text collate "C" not null,
    case_ref text collate "C" not null,
    state text collate "C" not null,
    request_event_id uuid not null,
    resolution_event_id uuid,
    resolution_fact_ref text collate "C",
    resolution_fact_digest text collate "C",
    primary key (projection_version, fence_id, generation),
    unique (projection_version, case_ref),
    check (state in ('open', 'ended')),
    check (num_nulls(resolution_event_id, resolution_fact_ref, resolution_fact_digest) = case state when 'open' then 3 else 0 end)
);
create unique index finalization_case_open_idx on operations.finalization_case (projection_version, fence_id)
    where state = 'open';  -- never a second open case (CASE-10)

create table operations.pending_case_successors_v1 (  -- what wakes a successor when its predecessor ends (REF-40)
    projection_version text collate "C" not null,
    fence_id text collate "C" not null,
    generation bigint not null,
    successor_identity_ref text collate "C" not null,
    successor_identity_digest text collate "C" not null,
    predecessor_identity_ref text collate "C" not null,
    predecessor_identity_digest text collate "C" not null,
    case_requested_envelope bytea not null,
    case_requested_envelope_sha256 bytea not null,
    case_request_operation_id text collate "C" not null,
    billing_finalization_operation_id text collate "C" not null,
    receipt_ref text collate "C" not null,
    document bytea not null,  -- PendingFinalizationCaseSuccessor@1
    state text collate "C" not null,
    consumed_by_event_id uuid,
    consumed_by_resolution_fact_ref text collate "C",
    consumed_by_resolution_fact_digest text collate "C",
    consumed_at timestamptz,
    primary key (projection_version, fence_id, generation),
    check (generation >= 2),
    check (state in ('pending', 'consumed')),
    check (num_nulls(consumed_by_event_id, consumed_by_resolution_fact_ref, consumed_by_resolution_fact_digest, consumed_at)
        = case state when 'pending' then 4 else 0 end)
);

create trigger case_identity_reservation_immutable before update or delete on operations.case_identity_reservation
    for each row execute function operations.guard_reject_change();
create trigger finalization_case_request_immutable before update or delete on operations.finalization_case_request
    for each row execute function operations.guard_reject_change();
create trigger finalization_case_resolution_immutable before update or delete on operations.finalization_case_resolution
    for each row execute function operations.guard_reject_change();
create trigger finalization_case_kept before update on operations.finalization_case
    for each row execute function operations.guard_case();
create trigger finalization_case_no_delete before delete on operations.finalization_case
    for each row execute function operations.guard_reject_change();
create trigger pending_case_successors_v1_kept before update on operations.pending_case_successors_v1
    for each row execute function operations.guard_successor();
create trigger pending_case_successors_v1_no_delete before delete on operations.pending_case_successors_v1
    for each row execute function operations.guard_reject_change();
