-- Purpose: what metering decided, and on which confirmed state of the gateway (REF-29 to REF-31).

create table metering.validation_receipt (  -- that something was current: issued by the gateway, or by metering itself
    current_validation_receipt_ref text collate "C" primary key,
    purpose text collate "C" not null,
    validation_operation_id text collate "C" not null,
    validated_ref text collate "C" not null,
    validated_digest text collate "C" not null,
    digest text collate "C" not null,
    document bytea not null,  -- CurrentValidationReceipt@1
    unique (purpose, validation_operation_id),
    check (purpose in ('metering_availability_validation', 'metering_route_validation', 'billing_catch_up_fence',
        'post_finalization_transition'))
);

create table metering.eligibility_decision (
    eligibility_decision_ref text collate "C" primary key,
    metering_input_work_ref text collate "C" not null unique references metering.work (metering_input_work_ref),
    basis_digest text collate "C" not null,
    state text collate "C" not null check (state in ('billable', 'not_billable')),
    reason_code text collate "C",
    digest text collate "C" not null,
    document bytea not null,  -- EligibilityDecision@1
    check ((state = 'not_billable') = (reason_code is not null))
);

create table metering.meter_event (
    meter_event_ref text collate "C" primary key,
    eligibility_decision_ref text collate "C" not null references metering.eligibility_decision,
    execution_attempt_id text collate "C" not null,
    charge_dimension_key text collate "C" not null,
    quantity numeric not null check (quantity >= 0),
    unit text collate "C" not null,
    digest text collate "C" not null,
    document bytea not null,  -- MeterEvent@1
    unique (eligibility_decision_ref, charge_dimension_key)
);

create table metering.cost_processing (  -- how a cost availability was dealt with, whatever its state (MTR-30 to MTR-35)
    provider_cost_availability_processing_ref text collate "C" primary key,
    metering_input_work_ref text collate "C" not null unique,
    lane_kind text collate "C" not null check (lane_kind = 'provider_cost'),
    gateway_deployment_id text collate "C" not null,
    source_evidence_dimension_key text collate "C" not null,
    outcome text collate "C" not null,
    availability_state text collate "C" not null,
    state_reason_code text collate "C",
    provider_cost_fact_ref text collate "C",
    availability_validation_receipt_ref text collate "C" references metering.validation_receipt,
    route_validation_receipt_ref text collate "C" references metering.validation_receipt,
    digest text collate "C" not null,
    document bytea not null,  -- ProviderCostAvailabilityProcessingFact@1
    unique (provider_cost_availability_processing_ref, outcome),
    foreign key (metering_input_work_ref, lane_kind, gateway_deployment_id, source_evidence_dimension_key)
        references metering.work (metering_input_work_ref, lane_kind, gateway_deployment_id,
            source_evidence_dimension_key),
    check ((outcome, availability_state) in (('available_applied', 'available'), ('waiting_for_evidence', 'pending'),
        ('no_cost_evidence', 'not_reported'), ('no_cost_evidence', 'unavailable'),
        ('reconciliation_required', 'conflicting'))),
    check ((state_reason_code is not null) = (outcome = 'reconciliation_required')),
    check (num_nulls(provider_cost_fact_ref, availability_validation_receipt_ref, route_validation_receipt_ref)
        = case outcome when 'available_applied' then 0 else 3 end)
);

create table metering.provider_cost_fact (  -- exists only through a processing of available evidence (MTR-31, MTR-33)
    provider_cost_fact_ref text collate "C" primary key,
    first_processing_ref text collate "C" not null,
    first_processing_outcome text collate "C" not null check (first_processing_outcome = 'available_applied'),
    execution_attempt_id text collate "C" not null,
    gateway_deployment_id text collate "C" not null,
    source_evidence_dimension_key text collate "C" not null,
    amount numeric not null,
    currency text collate "C" not null,
    gateway_evidence_ref text collate "C" not null,
    digest text collate "C" not null,
    document bytea not null,  -- ProviderCostFact@1
    unique (execution_attempt_id, gateway_deployment_id, source_evidence_dimension_key, gateway_evidence_ref),
    foreign key (first_processing_ref, first_processing_outcome)
        references metering.cost_processing (provider_cost_availability_processing_ref, outcome)
);
alter table metering.cost_processing add foreign key (provider_cost_fact_ref)
    references metering.provider_cost_fact deferrable initially deferred;

create trigger validation_receipt_immutable before update or delete on metering.validation_receipt
    for each row execute function metering.guard_reject_change();
create trigger eligibility_decision_immutable before update or delete on metering.eligibility_decision
    for each row execute function metering.guard_reject_change();
create trigger meter_event_immutable before update or delete on metering.meter_event
    for each row execute function metering.guard_reject_change();
create trigger cost_processing_immutable before update or delete on metering.cost_processing
    for each row execute function metering.guard_reject_change();
create trigger provider_cost_fact_immutable before update or delete on metering.provider_cost_fact
    for each row execute function metering.guard_reject_change();
