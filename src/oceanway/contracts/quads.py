"""The four fields of each quad, under the name by which other objects carry it (section 0.2).

A content-addressed class inherits its own quad from here too, so that a name is written once.
"""

from __future__ import annotations

from oceanway.contracts.base import Contract
from seapost.contracts.fields import Algorithm, Digest, Identifier, Version


class RunAdmissionManifestQuad(Contract):
    """The identity of one run admission manifest."""

    run_admission_manifest_ref: Identifier
    run_admission_manifest_schema_version: Version
    run_admission_manifest_digest_algorithm_version: Algorithm
    run_admission_manifest_digest: Digest


class AttemptExecutionManifestQuad(Contract):
    """The identity of one attempt execution manifest."""

    attempt_execution_manifest_ref: Identifier
    attempt_execution_manifest_schema_version: Version
    attempt_execution_manifest_digest_algorithm_version: Algorithm
    attempt_execution_manifest_digest: Digest


class ExecutionEligibilityFactQuad(Contract):
    """The identity of one execution eligibility fact."""

    execution_eligibility_fact_ref: Identifier
    execution_eligibility_fact_schema_version: Version
    execution_eligibility_fact_digest_algorithm_version: Algorithm
    execution_eligibility_fact_digest: Digest


class ExecutionEligibilityConflictFactQuad(Contract):
    """The identity of one execution eligibility conflict fact."""

    execution_eligibility_conflict_fact_ref: Identifier
    execution_eligibility_conflict_fact_schema_version: Version
    execution_eligibility_conflict_fact_digest_algorithm_version: Algorithm
    execution_eligibility_conflict_fact_digest: Digest


class AttemptSetManifestQuad(Contract):
    """The identity of one attempt set manifest."""

    attempt_set_manifest_ref: Identifier
    attempt_set_manifest_schema_version: Version
    attempt_set_manifest_digest_algorithm_version: Algorithm
    attempt_set_manifest_digest: Digest


class RunExecutionFinalizationQuad(Contract):
    """The identity of one run execution finalization."""

    run_execution_finalization_ref: Identifier
    run_execution_finalization_schema_version: Version
    run_execution_finalization_digest_algorithm_version: Algorithm
    run_execution_finalization_digest: Digest


class RunExecutionFinalizationConflictFactQuad(Contract):
    """The identity of one run execution finalization conflict fact."""

    run_execution_finalization_conflict_fact_ref: Identifier
    run_execution_finalization_conflict_fact_schema_version: Version
    run_execution_finalization_conflict_fact_digest_algorithm_version: Algorithm
    run_execution_finalization_conflict_fact_digest: Digest


class AttemptRouteBindingQuad(Contract):
    """The identity of one attempt route binding."""

    attempt_route_binding_ref: Identifier
    attempt_route_binding_schema_version: Version
    attempt_route_binding_digest_algorithm_version: Algorithm
    attempt_route_binding_digest: Digest


class GatewayRouteSnapshotQuad(Contract):
    """The identity of one gateway route snapshot."""

    gateway_route_snapshot_ref: Identifier
    gateway_route_snapshot_schema_version: Version
    gateway_route_snapshot_digest_algorithm_version: Algorithm
    gateway_route_snapshot_digest: Digest


class GatewayEvidenceQuad(Contract):
    """The identity of one gateway evidence."""

    gateway_evidence_ref: Identifier
    gateway_evidence_schema_version: Version
    gateway_evidence_digest_algorithm_version: Algorithm
    gateway_evidence_digest: Digest


class GatewayEvidenceConflictFactQuad(Contract):
    """The identity of one gateway evidence conflict fact."""

    gateway_evidence_conflict_fact_ref: Identifier
    gateway_evidence_conflict_fact_schema_version: Version
    gateway_evidence_conflict_fact_digest_algorithm_version: Algorithm
    gateway_evidence_conflict_fact_digest: Digest


class GatewayBindingConflictFactQuad(Contract):
    """The identity of one gateway binding conflict fact."""

    gateway_binding_conflict_fact_ref: Identifier
    gateway_binding_conflict_fact_schema_version: Version
    gateway_binding_conflict_fact_digest_algorithm_version: Algorithm
    gateway_binding_conflict_fact_digest: Digest


class CurrentAvailabilityQuad(Contract):
    """The identity of one current availability."""

    current_availability_ref: Identifier
    current_availability_schema_version: Version
    current_availability_digest_algorithm_version: Algorithm
    current_availability_digest: Digest


class CostAvailabilityQuad(Contract):
    """The identity of one cost availability."""

    cost_availability_ref: Identifier
    cost_availability_schema_version: Version
    cost_availability_digest_algorithm_version: Algorithm
    cost_availability_digest: Digest


class MeteringInputWorkQuad(Contract):
    """The identity of one metering input work."""

    metering_input_work_ref: Identifier
    metering_input_work_schema_version: Version
    metering_input_work_digest_algorithm_version: Algorithm
    metering_input_work_digest: Digest


class MeteringInputWorkAttemptFinishedQuad(Contract):
    """The identity of one metering input work attempt finished."""

    metering_input_work_attempt_finished_ref: Identifier
    metering_input_work_attempt_finished_schema_version: Version
    metering_input_work_attempt_finished_digest_algorithm_version: Algorithm
    metering_input_work_attempt_finished_digest: Digest


class MeteringInputWorkAttemptBlockedQuad(Contract):
    """The identity of one metering input work attempt blocked."""

    metering_input_work_attempt_blocked_ref: Identifier
    metering_input_work_attempt_blocked_schema_version: Version
    metering_input_work_attempt_blocked_digest_algorithm_version: Algorithm
    metering_input_work_attempt_blocked_digest: Digest


class EligibilityProcessingConflictEvidenceQuad(Contract):
    """The identity of one eligibility processing conflict evidence."""

    eligibility_processing_conflict_evidence_ref: Identifier
    eligibility_processing_conflict_evidence_schema_version: Version
    eligibility_processing_conflict_evidence_digest_algorithm_version: Algorithm
    eligibility_processing_conflict_evidence_digest: Digest


class ProviderCostProcessingConflictEvidenceQuad(Contract):
    """The identity of one provider cost processing conflict evidence."""

    provider_cost_processing_conflict_evidence_ref: Identifier
    provider_cost_processing_conflict_evidence_schema_version: Version
    provider_cost_processing_conflict_evidence_digest_algorithm_version: Algorithm
    provider_cost_processing_conflict_evidence_digest: Digest


class EligibilityDecisionQuad(Contract):
    """The identity of one eligibility decision."""

    eligibility_decision_ref: Identifier
    eligibility_decision_schema_version: Version
    eligibility_decision_digest_algorithm_version: Algorithm
    eligibility_decision_digest: Digest


class MeterEventQuad(Contract):
    """The identity of one meter event."""

    meter_event_ref: Identifier
    meter_event_schema_version: Version
    meter_event_digest_algorithm_version: Algorithm
    meter_event_digest: Digest


class ProviderCostFactQuad(Contract):
    """The identity of one provider cost fact."""

    provider_cost_fact_ref: Identifier
    provider_cost_fact_schema_version: Version
    provider_cost_fact_digest_algorithm_version: Algorithm
    provider_cost_fact_digest: Digest


class ProviderCostAvailabilityProcessingQuad(Contract):
    """The identity of one provider cost availability processing."""

    provider_cost_availability_processing_ref: Identifier
    provider_cost_availability_processing_schema_version: Version
    provider_cost_availability_processing_digest_algorithm_version: Algorithm
    provider_cost_availability_processing_digest: Digest


class AvailabilityValidationReceiptQuad(Contract):
    """The identity of one availability validation receipt."""

    availability_validation_receipt_ref: Identifier
    availability_validation_receipt_schema_version: Version
    availability_validation_receipt_digest_algorithm_version: Algorithm
    availability_validation_receipt_digest: Digest


class RouteValidationReceiptQuad(Contract):
    """The identity of one route validation receipt."""

    route_validation_receipt_ref: Identifier
    route_validation_receipt_schema_version: Version
    route_validation_receipt_digest_algorithm_version: Algorithm
    route_validation_receipt_digest: Digest


class CurrentValidationReceiptQuad(Contract):
    """The identity of one current validation receipt."""

    current_validation_receipt_ref: Identifier
    current_validation_receipt_schema_version: Version
    current_validation_receipt_digest_algorithm_version: Algorithm
    current_validation_receipt_digest: Digest


class SettlementInputSnapshotQuad(Contract):
    """The identity of one settlement input snapshot."""

    settlement_input_snapshot_ref: Identifier
    settlement_input_snapshot_schema_version: Version
    settlement_input_snapshot_digest_algorithm_version: Algorithm
    settlement_input_snapshot_digest: Digest


class SettlementInputConflictFactQuad(Contract):
    """The identity of one settlement input conflict fact."""

    settlement_input_conflict_fact_ref: Identifier
    settlement_input_conflict_fact_schema_version: Version
    settlement_input_conflict_fact_digest_algorithm_version: Algorithm
    settlement_input_conflict_fact_digest: Digest


class GatewayEvidenceAvailabilitySnapshotQuad(Contract):
    """The identity of one gateway evidence availability snapshot."""

    gateway_evidence_availability_snapshot_ref: Identifier
    gateway_evidence_availability_snapshot_schema_version: Version
    gateway_evidence_availability_snapshot_digest_algorithm_version: Algorithm
    gateway_evidence_availability_snapshot_digest: Digest
