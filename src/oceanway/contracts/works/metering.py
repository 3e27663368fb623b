"""Metering's works: their lanes and triggers, and how an attempt ends or is blocked (MTR-10 to MTR-24, REF-27)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, model_validator

from oceanway.contracts.base import Contract
from oceanway.contracts.fields import AttemptNumber, FencingToken
from oceanway.contracts.identity import det, digest_of
from oceanway.contracts.order import ascending, require, require_count, require_equal
from oceanway.contracts.quads import (
    AttemptExecutionManifestQuad,
    AttemptRouteBindingQuad,
    EligibilityProcessingConflictEvidenceQuad,
    ExecutionEligibilityConflictFactQuad,
    ExecutionEligibilityFactQuad,
    GatewayBindingConflictFactQuad,
    GatewayEvidenceConflictFactQuad,
    GatewayRouteSnapshotQuad,
    MeteringInputWorkAttemptBlockedQuad,
    MeteringInputWorkAttemptFinishedQuad,
    MeteringInputWorkQuad,
    ProviderCostAvailabilityProcessingQuad,
    ProviderCostProcessingConflictEvidenceQuad,
)
from oceanway.contracts.quints import (
    Absent,
    CostAvailabilityQuint,
    CurrentAvailabilityQuint,
    SettlementInputSnapshotItem,
)
from oceanway.contracts.reasons import ProcessingConflictReason
from oceanway.contracts.subject import AttemptPlace, TenantFields
from seapost.contracts.content_addressed import ContentAddressed
from seapost.contracts.fields import Algorithm, Count, Digest, EventId, Identifier, Revision, Timestamp

if TYPE_CHECKING:
    from seapost.contracts.examination import JSONValue

LaneKind = Literal["eligibility_and_settlement_input", "provider_cost"]


class LaneEligibility(Contract):
    """The lane of an attempt that leads to its settlement inputs."""

    kind: Literal["eligibility_and_settlement_input"] = "eligibility_and_settlement_input"

    def wire(self) -> dict[str, JSONValue]:
        """The document."""
        return {"kind": self.kind}


class LaneProviderCost(Contract):
    """The lane of one cost dimension of one deployment; neither may be dropped (MTR-24)."""

    kind: Literal["provider_cost"] = "provider_cost"
    gateway_deployment_id: Identifier
    source_evidence_dimension_key: Identifier

    def wire(self) -> dict[str, JSONValue]:
        """The document."""
        return {
            "kind": self.kind,
            "gatewayDeploymentId": self.gateway_deployment_id,
            "sourceEvidenceDimensionKey": self.source_evidence_dimension_key,
        }


Lane = Annotated[LaneEligibility | LaneProviderCost, Field(discriminator="kind")]


class TriggerEligibilityPresent(ExecutionEligibilityFactQuad):
    """Execution's fact is known."""

    state: Literal["present"] = "present"
    source_event_id: EventId


class TriggerUsage(CurrentAvailabilityQuint):
    """The newest usage availability of one chain."""

    gateway_deployment_id: Identifier
    evidence_dimension_key: Identifier


class EligibilityTrigger(Contract):
    """Everything the eligibility lane knows when a work is made (REF-28)."""

    eligibility: Annotated[Absent | TriggerEligibilityPresent, Field(discriminator="state")]
    usage: Annotated[list[TriggerUsage], ascending("gateway_deployment_id", "evidence_dimension_key")]

    def trigger_digest(self) -> str:
        """The lane trigger digest."""
        return digest_of(self.to_json())


class ProviderCostTrigger(CostAvailabilityQuint):
    """The availability that a cost work is about (REF-28)."""

    gateway_deployment_id: Identifier
    source_evidence_dimension_key: Identifier
    source_event_id: EventId

    def trigger_digest(self) -> str:
        """The lane trigger digest."""
        return digest_of(self.to_json())


LaneTrigger = Annotated[EligibilityTrigger | ProviderCostTrigger, Field(union_mode="left_to_right")]


def metering_input_work_operation_id(
    execution_attempt_id: str, lane: LaneEligibility | LaneProviderCost, work_generation: int, trigger_digest: str
) -> str:
    """The one operation of a work: the same for whoever derives it (REF-27)."""
    return det("metering_input_work", execution_attempt_id, lane.wire(), work_generation, trigger_digest)


class WorkSubject(Contract):
    """Which generation of which lane of which attempt, and on what trigger."""

    metering_input_work_operation_id: Identifier
    execution_attempt_id: Identifier
    work_generation: Revision
    lane: Lane
    lane_trigger_digest_algorithm_version: Algorithm
    lane_trigger_digest: Digest

    @model_validator(mode="after")
    def _one_operation(self) -> Self:
        expected = metering_input_work_operation_id(
            self.execution_attempt_id, self.lane, self.work_generation, self.lane_trigger_digest
        )
        place = "/meteringInputWorkOperationId"
        require_equal(self.metering_input_work_operation_id, expected, place, "deterministic_id")
        return self


class MeteringInputWork(
    MeteringInputWorkQuad,
    WorkSubject,
    TenantFields,
    ContentAddressed,
    prefix="meteringInputWork",
    outside=("createdAt",),
):
    """One immutable generation of one lane's work."""

    lane_trigger: LaneTrigger
    created_at: Timestamp

    @model_validator(mode="after")
    def _one_lane(self) -> Self:
        lane, trigger = self.lane, self.lane_trigger
        fits = isinstance(trigger, ProviderCostTrigger) == isinstance(lane, LaneProviderCost)
        if isinstance(trigger, ProviderCostTrigger) and isinstance(lane, LaneProviderCost):
            fits = (trigger.gateway_deployment_id, trigger.source_evidence_dimension_key) == (
                lane.gateway_deployment_id,
                lane.source_evidence_dimension_key,
            )
        require(fits, "The trigger belongs to another lane", "/laneTrigger", "mixed_branches")
        return self


class FinishedWaiting(Contract):
    """The other side of the attempt is not known yet."""

    kind: Literal["eligibility_and_settlement_input"] = "eligibility_and_settlement_input"
    state: Literal["waiting_for_counterpart"] = "waiting_for_counterpart"
    waiting_for: Literal["execution_eligibility", "gateway_usage"]


class FinishedApplied(Contract):
    """The settlement inputs of the attempt are current."""

    kind: Literal["eligibility_and_settlement_input"] = "eligibility_and_settlement_input"
    state: Literal["applied"] = "applied"
    settlement_input_snapshot_count: Count
    settlement_input_snapshots: Annotated[
        list[SettlementInputSnapshotItem], ascending("run_step_id", "execution_attempt_id", "charge_dimension_key")
    ]

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        place = "/settlementInputSnapshotCount"
        require_count(self.settlement_input_snapshot_count, self.settlement_input_snapshots, place)
        return self


class FinishedAvailabilityProcessed(ProviderCostAvailabilityProcessingQuad):
    """The cost availability was processed; how is said by the processing fact (AMB-10)."""

    kind: Literal["provider_cost"] = "provider_cost"
    state: Literal["availability_processed"] = "availability_processed"


class FinishedSuperseded(Contract):
    """A later generation took over."""

    kind: LaneKind
    state: Literal["superseded"] = "superseded"
    superseded_by_work_generation: Revision


FinishedOutcome = Annotated[
    FinishedWaiting | FinishedApplied | FinishedAvailabilityProcessed | FinishedSuperseded,
    Field(discriminator="state"),
]


class WorkAttempt(WorkSubject, MeteringInputWorkQuad):
    """One started attempt at one work."""

    attempt_number: AttemptNumber
    fencing_token: FencingToken


class MeteringInputWorkAttemptFinished(
    MeteringInputWorkAttemptFinishedQuad,
    WorkAttempt,
    ContentAddressed,
    prefix="meteringInputWorkAttemptFinished",
    outside=("finishedAt",),
):
    """How a work ended; there is at most one for each work."""

    outcome: FinishedOutcome
    finished_at: Timestamp

    @model_validator(mode="after")
    def _one_lane(self) -> Self:
        outcome = self.outcome
        require(outcome.kind == self.lane.kind, "The outcome belongs to another lane", "/outcome", "mixed_branches")
        if outcome.state == "superseded":
            is_later = outcome.superseded_by_work_generation > self.work_generation
            require(is_later, "Only a later generation supersedes", "/outcome/supersededByWorkGeneration", "range")
        return self


class CauseExecutionEligibilityOwnerConflict(ExecutionEligibilityConflictFactQuad):
    """Execution answered `conflicting`."""

    kind: Literal["execution_eligibility_owner_conflict"] = "execution_eligibility_owner_conflict"


class CauseGatewayUsageOwnerConflict(GatewayEvidenceConflictFactQuad):
    """The gateway answered `conflicting` about usage, or the usage is itself in conflict (AMB-21)."""

    kind: Literal["gateway_usage_owner_conflict"] = "gateway_usage_owner_conflict"


class CauseGatewayBindingOwnerConflict(GatewayBindingConflictFactQuad):
    """The gateway answered `conflicting` about the route."""

    kind: Literal["gateway_binding_owner_conflict"] = "gateway_binding_owner_conflict"


class CauseEligibilityProcessingConflict(EligibilityProcessingConflictEvidenceQuad):
    """Metering itself found a contradiction in the eligibility lane."""

    kind: Literal["eligibility_processing_conflict"] = "eligibility_processing_conflict"


class CauseProviderCostProcessingConflict(ProviderCostProcessingConflictEvidenceQuad):
    """The cost lane is blocked; the evidence says by whom (MTR-22)."""

    kind: Literal["provider_cost_processing_conflict"] = "provider_cost_processing_conflict"


BlockingCause = Annotated[
    CauseExecutionEligibilityOwnerConflict
    | CauseGatewayUsageOwnerConflict
    | CauseGatewayBindingOwnerConflict
    | CauseEligibilityProcessingConflict
    | CauseProviderCostProcessingConflict,
    Field(discriminator="kind"),
]


class MeteringInputWorkAttemptBlocked(
    MeteringInputWorkAttemptBlockedQuad,
    WorkAttempt,
    ContentAddressed,
    prefix="meteringInputWorkAttemptBlocked",
    outside=("blockedAt",),
):
    """Why an attempt could not go on; the work stays pending and is tried again (MTR-15)."""

    blocking_cause: BlockingCause
    blocked_at: Timestamp

    @model_validator(mode="after")
    def _one_lane(self) -> Self:
        is_cost = self.blocking_cause.kind == "provider_cost_processing_conflict"
        fits = is_cost == (self.lane.kind == "provider_cost")
        require(fits, "The lane does not permit this cause", "/blockingCause", "mixed_branches")
        return self


class EvidenceSubject(AttemptPlace, MeteringInputWorkQuad, AttemptExecutionManifestQuad):
    """Which work met the contradiction, and about which attempt."""

    metering_input_work_operation_id: Identifier
    work_generation: Revision


class EligibilityProcessingConflictEvidence(
    EligibilityProcessingConflictEvidenceQuad,
    EvidenceSubject,
    ExecutionEligibilityFactQuad,
    ContentAddressed,
    prefix="eligibilityProcessingConflictEvidence",
    outside=("observedAt",),
):
    """What contradicted what in the eligibility lane (MTR-16)."""

    lane_trigger_digest_algorithm_version: Algorithm
    lane_trigger_digest: Digest
    validation_stage: Literal[
        "eligibility_basis",
        "availability_validation_receipt",
        "eligibility_decision",
        "meter_event",
        "settlement_input",
    ]
    conflicting_candidate_digest_algorithm_version: Algorithm
    conflicting_candidate_digest: Digest
    reason_code: ProcessingConflictReason
    observed_at: Timestamp


class CostCauseGatewayOwnerConflict(GatewayEvidenceConflictFactQuad):
    """The gateway answered `conflicting` about the evidence."""

    kind: Literal["gateway_owner_conflict"] = "gateway_owner_conflict"


class CostCauseGatewayBindingOwnerConflict(GatewayBindingConflictFactQuad):
    """The gateway answered `conflicting` about the route."""

    kind: Literal["gateway_binding_owner_conflict"] = "gateway_binding_owner_conflict"


class CostCauseMeteringDeterministicValidation(Contract):
    """Metering itself found a contradiction; the digest of the refused candidate is frozen (MTR-23)."""

    kind: Literal["metering_deterministic_validation"] = "metering_deterministic_validation"
    validation_stage: Literal[
        "source_schema",
        "source_identity",
        "provider_cost_mapping",
        "provider_cost_normalization",
        "availability_validation_receipt",
        "route_validation_receipt",
        "provider_cost_repository",
    ]
    conflicting_candidate_digest_algorithm_version: Algorithm
    conflicting_candidate_digest: Digest
    reason_code: ProcessingConflictReason


class ProviderCostProcessingConflictEvidence(
    ProviderCostProcessingConflictEvidenceQuad,
    EvidenceSubject,
    AttemptRouteBindingQuad,
    GatewayRouteSnapshotQuad,
    CostAvailabilityQuint,
    ContentAddressed,
    prefix="providerCostProcessingConflictEvidence",
    outside=("detectedAt",),
):
    """What contradicted what in a cost lane (MTR-17)."""

    gateway_deployment_id: Identifier
    source_evidence_dimension_key: Identifier
    cause: Annotated[
        CostCauseGatewayOwnerConflict | CostCauseGatewayBindingOwnerConflict | CostCauseMeteringDeterministicValidation,
        Field(discriminator="kind"),
    ]
    detected_at: Timestamp
