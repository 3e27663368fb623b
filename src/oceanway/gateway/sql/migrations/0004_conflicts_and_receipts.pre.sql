-- Purpose: that the gateway's own claims exclude each other, until the repair (REF-24); and the receipts that something was
--   current (REF-30).

create table gateway.evidence_conflict (  -- while one is not repaired, its chain is answered as conflicting
    gateway_evidence_conflict_fact_ref text collate "C" primary key references gateway.evidence_conflict_fact,
    execution_attempt_id text collate "C" not null,
    gateway_deployment_id text collate "C" not null,
    provider_evidence_kind text collate "C" not null,
    evidence_dimension_key text collate "C" not null,
    declared_at timestamptz not null default clock_timestamp(),
    repaired_at timestamptz,
    foreign key (gateway_evidence_conflict_fact_ref, execution_attempt_id, gateway_deployment_id, provider_evidence_kind,
        evidence_dimension_key)
        references gateway.evidence_conflict_fact (gateway_evidence_conflict_fact_ref, execution_attempt_id,
            gateway_deployment_id, provider_evidence_kind, evidence_dimension_key),
    foreign key (execution_attempt_id, gateway_deployment_id, provider_evidence_kind, evidence_dimension_key)
        references gateway.availability_pointer
);
create unique index evidence_conflict_open_idx on gateway.evidence_conflict (execution_attempt_id, gateway_deployment_id,
    provider_evidence_kind, evidence_dimension_key) where repaired_at is null;

create table gateway.binding_conflict (  -- while one is not repaired, the route of the attempt is answered as conflicting
    gateway_binding_conflict_fact_ref text collate "C" primary key,
    execution_attempt_id text collate "C" not null,
    gateway_deployment_id text collate "C" not null,
    digest text collate "C" not null,
    document bytea not null,  -- GatewayBindingConflictFact@1
    declared_at timestamptz not null default clock_timestamp(),
    repaired_at timestamptz,
    foreign key (execution_attempt_id, gateway_deployment_id)
        references gateway.route_binding (execution_attempt_id, gateway_deployment_id)
);
create unique index binding_conflict_open_idx on gateway.binding_conflict (execution_attempt_id, gateway_deployment_id)
    where repaired_at is null;

create table gateway.validation_receipt (
    current_validation_receipt_ref text collate "C" primary key,
    purpose text collate "C" not null check (purpose in ('metering_availability_validation', 'metering_route_validation')),
    validation_operation_id text collate "C" not null,
    digest text collate "C" not null,
    document bytea not null,  -- CurrentValidationReceipt@1
    unique (purpose, validation_operation_id)
);

create trigger evidence_conflict_kept before update on gateway.evidence_conflict
    for each row execute function gateway.guard_conflict();
create trigger evidence_conflict_no_delete before delete on gateway.evidence_conflict
    for each row execute function gateway.guard_reject_change();
create trigger binding_conflict_kept before update on gateway.binding_conflict
    for each row execute function gateway.guard_conflict();
create trigger binding_conflict_no_delete before delete on gateway.binding_conflict
    for each row execute function gateway.guard_reject_change();
create trigger validation_receipt_immutable before update or delete on gateway.validation_receipt
    for each row execute function gateway.guard_reject_change();
