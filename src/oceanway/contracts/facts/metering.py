"""What metering derives from the facts of execution and the gateway (REF-29 to REF-31)."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from oceanway.contracts.base import Contract
from oceanway.contracts.facts.gateway import CostDimension, EvidenceChain
from oceanway.contracts.facts.settlement import SettlementDimensionFields
from oceanway.contracts.fields import Amount, Currency, Quantity
from oceanway.contracts.identity import det, digest_of
from oceanway.contracts.order import ascending, require, require_equal
from oceanway.contracts.quads import (
    AttemptExecutionManifestQuad,
    AvailabilityValidationReceiptQuad,
    CurrentValidationReceiptQuad,
    EligibilityDecisionQuad,
    ExecutionEligibilityFactQuad,
    GatewayEvidenceQuad,
    MeterEventQuad,
    MeteringInputWorkQuad,
    ProviderCostAvailabilityProcessingQuad,
    ProviderCostFactQuad,
    RouteValidationReceiptQuad,
)
from oceanway.contracts.quints import Absent, CostAvailabilityQuint, CurrentAvailabilityQuint, Validated
from oceanway.contracts.reasons import AvailabilityReason, NotBillableReason
from oceanway.contracts.works.metering import LaneProviderCost, metering_input_work_operation_id
from seapost.contracts.content_addressed import ContentAddressed
from seapost.contracts.fields import Algorithm, Digest, Identifier, Revision, Timestamp


class BasisEvidencePresent(GatewayEvidenceQuad):
    """The evidence that the availability names."""

    state: Literal["present"] = "present"


class BasisUsage(CurrentAvailabilityQuint):
    """One usage chain as it was read, with its evidence where there is one."""

    gateway_deployment_id: Identifier
    evidence_dimension_key: Identifier
    evidence: Annotated[Absent | BasisEvidencePresent, Field(discriminator="state")]


class EligibilityBasis(ExecutionEligibilityFactQuad, AttemptExecutionManifestQuad):
    """Everything a decision about one attempt rests on."""

    usage: Annotated[list[BasisUsage], ascending("gateway_deployment_id", "evidence_dimension_key")]

    def basis_digest(self) -> str:
        """The digest by which the decision and its validations name this basis."""
        return digest_of(self.to_json())


class DecisionBillable(Contract):
    """The attempt is charged for its usage."""

    state: Literal["billable"] = "billable"


class DecisionNotBillable(Contract):
    """The attempt is charged nothing."""

    state: Literal["not_billable"] = "not_billable"
    reason_code: NotBillableReason


class EligibilityDecision(EligibilityDecisionQuad, ContentAddressed, prefix="eligibilityDecision"):
    """Whether an attempt is charged."""

    basis_digest_algorithm_version: Algorithm
    basis_digest: Digest
    decision: Annotated[DecisionBillable | DecisionNotBillable, Field(discriminator="state")]


class MeterEvent(MeterEventQuad, EligibilityDecisionQuad, ContentAddressed, prefix="meterEvent"):
    """A quantity of one charge dimension of one attempt."""

    execution_attempt_id: Identifier
    charge_dimension_key: Identifier
    quantity: Quantity
    unit: Identifier


class ProviderCostFact(
    ProviderCostFactQuad, GatewayEvidenceQuad, ContentAddressed, prefix="providerCostFact", outside=("factedAt",)
):
    """What a provider charged for one cost dimension of one attempt."""

    execution_attempt_id: Identifier
    gateway_deployment_id: Identifier
    source_evidence_dimension_key: Identifier
    amount: Amount
    currency: Currency
    route_cost_binding: CostDimension
    facted_at: Timestamp

    @model_validator(mode="after")
    def _one_dimension(self) -> Self:
        binding = self.route_cost_binding
        stated = (binding.source_evidence_dimension_key, binding.currency)
        expected = (self.source_evidence_dimension_key, self.currency)
        require_equal(stated, expected, "/routeCostBinding", "mixed_branches")
        return self


class ProcessingAvailableApplied(ProviderCostFactQuad, AvailabilityValidationReceiptQuad, RouteValidationReceiptQuad):
    """The cost was booked, and both validations confirmed its sources (MTR-31)."""

    state: Literal["available_applied"] = "available_applied"
    availability_state: Literal["available"] = "available"


class ProcessingWaitingForEvidence(Contract):
    """The provider will report later (MTR-32)."""

    state: Literal["waiting_for_evidence"] = "waiting_for_evidence"
    availability_state: Literal["pending"] = "pending"


class ProcessingNoCostEvidence(Contract):
    """There is no evidence, which is not a cost of zero (MTR-30, MTR-33)."""

    state: Literal["no_cost_evidence"] = "no_cost_evidence"
    availability_state: Literal["not_reported", "unavailable"]


class ProcessingReconciliationRequired(Contract):
    """The provider's reports exclude each other (MTR-34); never a case."""

    state: Literal["reconciliation_required"] = "reconciliation_required"
    availability_state: Literal["conflicting"] = "conflicting"
    state_reason_code: AvailabilityReason


class ProviderCostAvailabilityProcessingFact(
    ProviderCostAvailabilityProcessingQuad,
    MeteringInputWorkQuad,
    CostAvailabilityQuint,
    ContentAddressed,
    prefix="providerCostAvailabilityProcessing",
    outside=("processedAt",),
):
    """What became of one availability of a provider cost."""

    metering_input_work_operation_id: Identifier
    work_generation: Revision
    execution_attempt_id: Identifier
    gateway_deployment_id: Identifier
    source_evidence_dimension_key: Identifier
    outcome: Annotated[
        ProcessingAvailableApplied
        | ProcessingWaitingForEvidence
        | ProcessingNoCostEvidence
        | ProcessingReconciliationRequired,
        Field(discriminator="state"),
    ]
    processed_at: Timestamp

    def operation_for(self, trigger_digest: str) -> str:
        """The operation that this fact must name for a work with this trigger."""
        lane = LaneProviderCost(
            gateway_deployment_id=self.gateway_deployment_id,
            source_evidence_dimension_key=self.source_evidence_dimension_key,
        )
        return metering_input_work_operation_id(self.execution_attempt_id, lane, self.work_generation, trigger_digest)


class SubjectAvailability(EvidenceChain):
    """A chain of the gateway."""

    kind: Literal["gateway_availability"] = "gateway_availability"


class SubjectRoute(Contract):
    """The route of an attempt."""

    kind: Literal["gateway_route"] = "gateway_route"
    execution_attempt_id: Identifier
    gateway_deployment_id: Identifier


class SubjectSettlementDimension(SettlementDimensionFields):
    """A settlement dimension of metering."""

    kind: Literal["settlement_dimension"] = "settlement_dimension"


ValidationSubject = Annotated[
    SubjectAvailability | SubjectRoute | SubjectSettlementDimension, Field(discriminator="kind")
]
ValidationPurpose = Literal[
    "metering_availability_validation",
    "metering_route_validation",
    "billing_catch_up_fence",
    "post_finalization_transition",
]
_SUBJECTS = {
    "metering_availability_validation": "gateway_availability",
    "metering_route_validation": "gateway_route",
    "billing_catch_up_fence": "settlement_dimension",
    "post_finalization_transition": "settlement_dimension",
}


def validation_operation_id(
    purpose: ValidationPurpose, subject: SubjectAvailability | SubjectRoute, basis_digest: str
) -> str:
    """The operation of one validation by metering (REF-30)."""
    return det("validation", purpose, subject.to_json(), basis_digest)


class CurrentValidationReceipt(
    CurrentValidationReceiptQuad, ContentAddressed, prefix="currentValidationReceipt", outside=("issuedAt",)
):
    """An owner confirms to one operation that this is current; no other operation may use it."""

    purpose: ValidationPurpose
    validation_operation_id: Identifier
    subject: ValidationSubject
    validated_quint: Validated
    result: Literal["current"]
    issued_at: Timestamp

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        fits = _SUBJECTS[self.purpose] == self.subject.kind
        require(fits, "The purpose is about another kind of subject", "/subject", "mixed_branches")
        has_version = self.validated_quint.state_version is not None
        fits = has_version == (self.subject.kind != "gateway_route")
        require(fits, "A route has no state version, everything else has", "/validatedQuint", "mixed_branches")
        return self
