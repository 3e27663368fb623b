-- Purpose: what providers reported, and the contiguous chain of statements about it, each with its event (REF-22, TX-15).

create table gateway.evidence (
    gateway_evidence_ref text collate "C" primary key,
    execution_attempt_id text collate "C" not null,
    gateway_deployment_id text collate "C" not null,
    provider_evidence_kind text collate "C" not null check (provider_evidence_kind in ('provider_usage', 'provider_cost')),
    evidence_dimension_key text collate "C" not null,
    value numeric not null,
    digest text collate "C" not null,
    document bytea not null,  -- GatewayEvidence@1
    check (provider_evidence_kind <> 'provider_usage' or value >= 0)
);

create table gateway.evidence_conflict_fact (  -- as content of a conflicting statement, or declared by the gateway itself
    gateway_evidence_conflict_fact_ref text collate "C" primary key,
    execution_attempt_id text collate "C" not null,
    gateway_deployment_id text collate "C" not null,
    provider_evidence_kind text collate "C" not null,
    evidence_dimension_key text collate "C" not null,
    digest text collate "C" not null,
    document bytea not null,  -- GatewayEvidenceConflictFact@1
    unique (gateway_evidence_conflict_fact_ref, execution_attempt_id, gateway_deployment_id, provider_evidence_kind,
        evidence_dimension_key)
);

create table gateway.availability_snapshot (
    gateway_evidence_availability_snapshot_ref text collate "C" primary key,
    execution_attempt_id text collate "C" not null,
    gateway_deployment_id text collate "C" not null,
    provider_evidence_kind text collate "C" not null check (provider_evidence_kind in ('provider_usage', 'provider_cost')),
    evidence_dimension_key text collate "C" not null,
    state_version bigint not null,
    predecessor_state_version bigint check (predecessor_state_version >= 1),
    attempt_route_binding_ref text collate "C" not null references gateway.route_binding,
    attempt_execution_manifest_ref text collate "C" not null,
    state text collate "C" not null
        check (state in ('available', 'pending', 'not_reported', 'unavailable', 'conflicting')),
    gateway_evidence_ref text collate "C" references gateway.evidence,
    gateway_evidence_conflict_fact_ref text collate "C" references gateway.evidence_conflict_fact,
    digest text collate "C" not null,
    document bytea not null,  -- GatewayEvidenceAvailabilitySnapshot@1
    current_changed_event_id uuid not null unique references seapost.event (event_id) deferrable initially deferred,
    unique (execution_attempt_id, gateway_deployment_id, provider_evidence_kind, evidence_dimension_key, state_version),
    foreign key (execution_attempt_id, gateway_deployment_id, provider_evidence_kind, evidence_dimension_key,
        predecessor_state_version)
        references gateway.availability_snapshot (execution_attempt_id, gateway_deployment_id, provider_evidence_kind,
            evidence_dimension_key, state_version),
    check (coalesce(predecessor_state_version, 0) = state_version - 1),
    check ((state = 'available') = (gateway_evidence_ref is not null)),
    check ((state = 'conflicting') = (gateway_evidence_conflict_fact_ref is not null))
);

create table gateway.availability_pointer (  -- the current statement of each chain
    execution_attempt_id text collate "C" not null,
    gateway_deployment_id text collate "C" not null,
    provider_evidence_kind text collate "C" not null,
    evidence_dimension_key text collate "C" not null,
    state_version bigint not null,
    gateway_evidence_availability_snapshot_ref text collate "C" not null references gateway.availability_snapshot,
    primary key (execution_attempt_id, gateway_deployment_id, provider_evidence_kind, evidence_dimension_key)
);

create table gateway.pre_binding_snapshot (  -- before any attempt is bound: nothing here can name an event (APP-17)
    pre_binding_snapshot_id text collate "C" primary key,
    gateway_deployment_id text collate "C" not null,
    route_id text collate "C" not null,
    provider_evidence_kind text collate "C" not null check (provider_evidence_kind in ('provider_usage', 'provider_cost')),
    evidence_dimension_key text collate "C" not null,
    state text collate "C" not null check (state in ('available', 'pending', 'not_reported', 'unavailable')),
    recorded_at timestamptz not null default clock_timestamp()
);

create trigger evidence_immutable before update or delete on gateway.evidence
    for each row execute function gateway.guard_reject_change();
create trigger evidence_conflict_fact_immutable before update or delete on gateway.evidence_conflict_fact
    for each row execute function gateway.guard_reject_change();
create trigger availability_snapshot_immutable before update or delete on gateway.availability_snapshot
    for each row execute function gateway.guard_reject_change();
create trigger availability_pointer_forward before update on gateway.availability_pointer
    for each row execute function gateway.guard_pointer();
create trigger availability_pointer_no_delete before delete on gateway.availability_pointer
    for each row execute function gateway.guard_reject_change();
create trigger pre_binding_snapshot_immutable before update or delete on gateway.pre_binding_snapshot
    for each row execute function gateway.guard_reject_change();
