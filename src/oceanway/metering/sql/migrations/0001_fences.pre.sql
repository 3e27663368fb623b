-- Purpose: what metering has seen of each attempt and what it has to do about it (REF-26, AMB-45).

create table metering.event_source (  -- one event of a type for one fact, for life (AMB-41)
    event_type text collate "C" not null check (event_type = 'metering.settlement-input.current-changed@1'),
    source_fact_key text collate "C" not null,
    event_id uuid not null unique references seapost.event (event_id) deferrable initially deferred,
    primary key (event_type, source_fact_key)
);

create table metering.attempt_input_fence (  -- one for each attempt; its row lock orders everything about the attempt
    execution_attempt_id text collate "C" primary key,
    attempt_execution_manifest_ref text collate "C" not null,
    attempt_execution_manifest_digest text collate "C" not null,
    manifest bytea not null  -- AttemptExecutionManifest@1 as execution answered; what it is compared with never changes
);

create table metering.watermark (  -- the newest event of each source of an attempt (AMB-36)
    execution_attempt_id text collate "C" not null references metering.attempt_input_fence (execution_attempt_id),
    source_kind text collate "C" not null,
    gateway_deployment_id text collate "C" not null,
    dimension_key text collate "C" not null,
    state_version bigint not null,
    source_ref text collate "C" not null,
    source_schema_version text collate "C" not null,
    source_digest_algorithm_version text collate "C" not null,
    source_digest text collate "C" not null,
    source_event_id uuid not null,
    envelope bytea not null,  -- the accepted event: what a bootstrap read is bound to (MTR-27)
    primary key (execution_attempt_id, source_kind, gateway_deployment_id, dimension_key),
    check (source_kind in ('execution_eligibility', 'provider_usage', 'provider_cost')),
    check ((source_kind = 'execution_eligibility') = (gateway_deployment_id = '' and dimension_key = '')),
    check (source_kind = 'execution_eligibility' or (gateway_deployment_id <> '' and dimension_key <> '')),
    check (state_version >= 1)
);

create table metering.lane (
    execution_attempt_id text collate "C" not null references metering.attempt_input_fence (execution_attempt_id),
    lane_kind text collate "C" not null,
    gateway_deployment_id text collate "C" not null,
    source_evidence_dimension_key text collate "C" not null,
    fence_revision bigint not null,
    latest_work_generation bigint not null,
    trigger_algorithm text collate "C" not null,
    trigger_digest text collate "C" not null,
    state text collate "C" not null,
    coordination_state jsonb not null,  -- as receipts freeze it (RCP-22)
    active_work_ref text collate "C",
    available_at timestamptz not null,  -- while leased: when the lease ends
    lease_owner text collate "C",
    fencing_token bigint,
    lease_expires_at timestamptz,
    attempt_number integer not null,  -- of the active work
    retry_count integer not null,
    primary key (execution_attempt_id, lane_kind, gateway_deployment_id, source_evidence_dimension_key),
    check (lane_kind in ('eligibility_and_settlement_input', 'provider_cost')),
    check ((lane_kind = 'provider_cost') = (gateway_deployment_id <> '')),
    check ((lane_kind = 'provider_cost') = (source_evidence_dimension_key <> '')),
    check (state in ('pending', 'waiting_for_execution', 'waiting_for_gateway_usage', 'applied',
        'blocked_on_owner_conflict', 'availability_processed', 'waiting_for_evidence', 'no_cost_evidence',
        'blocked_on_processing_conflict', 'reconciliation_required')),
    check (state = 'pending' or (lane_kind = 'provider_cost') = (state in ('availability_processed',
        'waiting_for_evidence', 'no_cost_evidence', 'blocked_on_processing_conflict', 'reconciliation_required'))),
    check ((state in ('pending', 'blocked_on_owner_conflict', 'blocked_on_processing_conflict'))
        = (active_work_ref is not null)),
    check (coordination_state ->> 'state' = state),
    check (coordination_state #>> '{activeWork,meteringInputWorkRef}' is not distinct from active_work_ref),
    check (num_nulls(lease_owner, lease_expires_at) in (0, 2)),
    check (lease_owner is null or (active_work_ref is not null and fencing_token is not null)),
    check (fence_revision >= 1 and latest_work_generation >= 1 and attempt_number >= 0 and retry_count >= 0)
);
create index lane_claim_idx on metering.lane (lane_kind, available_at) where active_work_ref is not null;

create sequence metering.fencing_token_seq as bigint;

create trigger event_source_immutable before update or delete on metering.event_source
    for each row execute function metering.guard_reject_change();
create trigger attempt_input_fence_immutable before update or delete on metering.attempt_input_fence
    for each row execute function metering.guard_reject_change();
create trigger watermark_forward before update on metering.watermark
    for each row execute function metering.guard_watermark();
create trigger watermark_no_delete before delete on metering.watermark
    for each row execute function metering.guard_reject_change();
create trigger lane_forward before update on metering.lane
    for each row execute function metering.guard_lane();
create trigger lane_no_delete before delete on metering.lane
    for each row execute function metering.guard_reject_change();
