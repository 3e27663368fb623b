-- Purpose: what was ordered, each lease of it, and what became of it (REF-27, MTR-10 to MTR-25).

create table metering.work (
    metering_input_work_ref text collate "C" primary key,
    metering_input_work_operation_id text collate "C" not null unique,
    execution_attempt_id text collate "C" not null,
    lane_kind text collate "C" not null,
    gateway_deployment_id text collate "C" not null,
    source_evidence_dimension_key text collate "C" not null,
    work_generation bigint not null,
    trigger_digest text collate "C" not null,
    digest text collate "C" not null,
    document bytea not null,  -- MeteringInputWork@1
    unique (execution_attempt_id, lane_kind, gateway_deployment_id, source_evidence_dimension_key, work_generation),
    unique (metering_input_work_ref, lane_kind, gateway_deployment_id, source_evidence_dimension_key),
    foreign key (execution_attempt_id, lane_kind, gateway_deployment_id, source_evidence_dimension_key)
        references metering.lane deferrable initially deferred
);
alter table metering.lane add foreign key (active_work_ref) references metering.work (metering_input_work_ref);

create table metering.work_start (  -- one for each lease
    metering_input_work_ref text collate "C" not null references metering.work (metering_input_work_ref),
    attempt_number integer not null check (attempt_number >= 1),
    fencing_token bigint not null unique,
    lease_owner text collate "C" not null,
    started_at timestamptz not null default clock_timestamp(),
    primary key (metering_input_work_ref, attempt_number),
    unique (metering_input_work_ref, attempt_number, fencing_token)
);

create table metering.work_finish (  -- at most one for each work
    metering_input_work_ref text collate "C" primary key,
    metering_input_work_attempt_finished_ref text collate "C" not null unique,
    lane_kind text collate "C" not null,
    attempt_number integer not null,
    fencing_token bigint not null,
    outcome text collate "C" not null,
    digest text collate "C" not null,
    document bytea not null,  -- MeteringInputWorkAttemptFinished@1
    foreign key (metering_input_work_ref, attempt_number, fencing_token)
        references metering.work_start (metering_input_work_ref, attempt_number, fencing_token),
    check (outcome = 'superseded' or (lane_kind = 'provider_cost') = (outcome = 'availability_processed')),
    check (outcome in ('superseded', 'availability_processed', 'waiting_for_counterpart', 'applied'))
);

create table metering.eligibility_conflict_evidence (
    eligibility_processing_conflict_evidence_ref text collate "C" primary key,
    metering_input_work_ref text collate "C" not null references metering.work (metering_input_work_ref),
    validation_stage text collate "C" not null,
    conflicting_candidate_digest text collate "C" not null,
    digest text collate "C" not null,
    document bytea not null,  -- EligibilityProcessingConflictEvidence@1
    check (validation_stage in ('eligibility_basis', 'availability_validation_receipt', 'eligibility_decision',
        'meter_event', 'settlement_input'))
);

create table metering.cost_conflict_evidence (  -- MTR-22 to MTR-24
    provider_cost_processing_conflict_evidence_ref text collate "C" primary key,
    metering_input_work_ref text collate "C" not null,
    lane_kind text collate "C" not null check (lane_kind = 'provider_cost'),
    gateway_deployment_id text collate "C" not null check (gateway_deployment_id <> ''),
    source_evidence_dimension_key text collate "C" not null check (source_evidence_dimension_key <> ''),
    cause_kind text collate "C" not null,
    owner_conflict_fact_ref text collate "C",
    validation_stage text collate "C",
    conflicting_candidate_digest_algorithm_version text collate "C",
    conflicting_candidate_digest text collate "C",
    digest text collate "C" not null,
    document bytea not null,  -- ProviderCostProcessingConflictEvidence@1
    foreign key (metering_input_work_ref, lane_kind, gateway_deployment_id, source_evidence_dimension_key)
        references metering.work (metering_input_work_ref, lane_kind, gateway_deployment_id,
            source_evidence_dimension_key),
    check (cause_kind in ('gateway_owner_conflict', 'gateway_binding_owner_conflict',
        'metering_deterministic_validation')),
    check (validation_stage in ('source_schema', 'source_identity', 'provider_cost_mapping',
        'provider_cost_normalization', 'availability_validation_receipt', 'route_validation_receipt',
        'provider_cost_repository')),
    check (num_nulls(validation_stage, conflicting_candidate_digest_algorithm_version, conflicting_candidate_digest)
        = case cause_kind when 'metering_deterministic_validation' then 0 else 3 end),
    check ((owner_conflict_fact_ref is null) = (cause_kind = 'metering_deterministic_validation'))
);

create table metering.work_blocked (  -- an audit record of one attempt, never a finish (MTR-15, MTR-25)
    metering_input_work_attempt_blocked_ref text collate "C" primary key,
    metering_input_work_ref text collate "C" not null,
    attempt_number integer not null,
    fencing_token bigint not null,
    lane_kind text collate "C" not null,
    gateway_deployment_id text collate "C" not null,
    source_evidence_dimension_key text collate "C" not null,
    cause_kind text collate "C" not null,
    owner_conflict_fact_ref text collate "C",
    eligibility_processing_conflict_evidence_ref text collate "C" references metering.eligibility_conflict_evidence,
    provider_cost_processing_conflict_evidence_ref text collate "C" references metering.cost_conflict_evidence,
    digest text collate "C" not null,
    document bytea not null,  -- MeteringInputWorkAttemptBlocked@1
    unique (metering_input_work_ref, attempt_number),
    foreign key (metering_input_work_ref, attempt_number, fencing_token)
        references metering.work_start (metering_input_work_ref, attempt_number, fencing_token),
    foreign key (metering_input_work_ref, lane_kind, gateway_deployment_id, source_evidence_dimension_key)
        references metering.work (metering_input_work_ref, lane_kind, gateway_deployment_id,
            source_evidence_dimension_key),
    check (cause_kind in ('execution_eligibility_owner_conflict', 'gateway_usage_owner_conflict',
        'gateway_binding_owner_conflict', 'eligibility_processing_conflict', 'provider_cost_processing_conflict')),
    check ((lane_kind = 'provider_cost') = (cause_kind = 'provider_cost_processing_conflict')),  -- MTR-21, MTR-22
    check ((eligibility_processing_conflict_evidence_ref is not null) = (cause_kind = 'eligibility_processing_conflict')),
    check ((provider_cost_processing_conflict_evidence_ref is not null)
        = (cause_kind = 'provider_cost_processing_conflict')),
    check ((owner_conflict_fact_ref is not null) = (cause_kind in ('execution_eligibility_owner_conflict',
        'gateway_usage_owner_conflict', 'gateway_binding_owner_conflict')))
);

create trigger work_immutable before update or delete on metering.work
    for each row execute function metering.guard_reject_change();
create trigger work_start_immutable before update or delete on metering.work_start
    for each row execute function metering.guard_reject_change();
create trigger work_finish_immutable before update or delete on metering.work_finish
    for each row execute function metering.guard_reject_change();
create trigger eligibility_conflict_evidence_immutable before update or delete on metering.eligibility_conflict_evidence
    for each row execute function metering.guard_reject_change();
create trigger cost_conflict_evidence_immutable before update or delete on metering.cost_conflict_evidence
    for each row execute function metering.guard_reject_change();
create trigger work_blocked_immutable before update or delete on metering.work_blocked
    for each row execute function metering.guard_reject_change();
