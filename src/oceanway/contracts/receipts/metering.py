"""The receipt of metering's input processor (RCP-12 to RCP-36)."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from oceanway.contracts.base import Contract
from oceanway.contracts.facts.gateway import EvidenceChain
from oceanway.contracts.order import require, require_equal
from oceanway.contracts.quads import (
    AttemptExecutionManifestQuad,
    ExecutionEligibilityFactQuad,
)
from oceanway.contracts.quads_billing import MeteringInputProcessorConsumerReceiptQuad
from oceanway.contracts.quints import CurrentAvailabilityQuint
from oceanway.contracts.receipts.metering_states import (
    EligibilityApplied,
    EligibilityBlocked,
    EligibilityState,
    EligibilityWaiting,
    LanePending,
    LastFinishedWorkAvailable,
    ProviderCostBlocked,
    ProviderCostFinished,
    ProviderCostState,
)
from oceanway.contracts.receipts.sourced import SourcedReceipt
from oceanway.contracts.subject import AttemptFields
from oceanway.contracts.works.metering import LaneEligibility, LaneProviderCost, metering_input_work_operation_id
from seapost.contracts.fields import Algorithm, Digest, Identifier, Revision, Timestamp


class SourceExecutionEligibility(AttemptFields, AttemptExecutionManifestQuad, ExecutionEligibilityFactQuad):
    """The event was execution's: an attempt ended."""

    kind: Literal["execution_eligibility"] = "execution_eligibility"
    event_type: Literal["execution.attempt-eligibility.finalized@1"] = "execution.attempt-eligibility.finalized@1"
    event_schema_version: Literal["1"] = "1"


class SourceGatewayAvailability(EvidenceChain, AttemptExecutionManifestQuad, CurrentAvailabilityQuint):
    """The event was the gateway's: the availability of a chain changed."""

    kind: Literal["gateway_availability"] = "gateway_availability"
    event_type: Literal["gateway.evidence-availability.current-changed@1"] = (
        "gateway.evidence-availability.current-changed@1"
    )
    event_schema_version: Literal["1"] = "1"


class EligibilityLaneState(Contract):
    """The eligibility lane as it was after the inbox transaction."""

    kind: Literal["eligibility_and_settlement_input"] = "eligibility_and_settlement_input"
    eligibility_fence_revision: Revision
    latest_eligibility_work_generation: Revision
    eligibility_trigger_digest_algorithm_version: Algorithm
    eligibility_trigger_digest: Digest
    coordination_state: EligibilityState


class ProviderCostLaneState(Contract):
    """A cost lane as it was after the inbox transaction."""

    kind: Literal["provider_cost"] = "provider_cost"
    gateway_deployment_id: Identifier
    source_evidence_dimension_key: Identifier
    provider_cost_fence_revision: Revision
    latest_provider_cost_work_generation: Revision
    provider_cost_trigger_digest_algorithm_version: Algorithm
    provider_cost_trigger_digest: Digest
    coordination_state: ProviderCostState


class MeteringInputProcessorConsumerReceipt(
    MeteringInputProcessorConsumerReceiptQuad,
    SourcedReceipt,
    prefix="meteringInputProcessorConsumerReceipt",
    outside=("committedAt",),
):
    """An input was accepted, and this is what its lane looked like then."""

    destination: Literal["metering_input_processor"]  # pyright: ignore[reportIncompatibleVariableOverride]
    consumer_name: Literal["metering_input_processor_consumer"]  # pyright: ignore[reportIncompatibleVariableOverride]
    source: Annotated[SourceExecutionEligibility | SourceGatewayAvailability, Field(discriminator="kind")]
    outcome: Literal["advanced", "already_observed"]
    lane: Annotated[EligibilityLaneState | ProviderCostLaneState, Field(discriminator="kind")]
    committed_at: Timestamp

    @model_validator(mode="after")
    def _one_lane(self) -> Self:
        """RCP-15 to RCP-17: which lane a source may enter."""
        source, lane = self.source, self.lane
        is_cost = isinstance(source, SourceGatewayAvailability) and source.provider_evidence_kind == "provider_cost"
        fits = is_cost == isinstance(lane, ProviderCostLaneState)
        require(fits, "This source does not enter this lane", "/lane/kind", "mixed_branches")
        if isinstance(lane, ProviderCostLaneState) and isinstance(source, SourceGatewayAvailability):
            deployment, key = source.gateway_deployment_id, source.evidence_dimension_key
            require_equal(lane.gateway_deployment_id, deployment, "/lane/gatewayDeploymentId", "lane")
            require_equal(lane.source_evidence_dimension_key, key, "/lane/sourceEvidenceDimensionKey", "lane")
        return self

    @model_validator(mode="after")
    def _one_generation(self) -> Self:
        """RCP-23 to RCP-30: a pending, blocked or ended work is that of the latest generation and trigger."""
        lane = self.lane
        state = lane.coordination_state
        place = "/lane/coordinationState"
        if isinstance(state, EligibilityWaiting):
            _require_not_later(lane, state)
            return self
        generation, stated = _work_of(state)
        if isinstance(lane, ProviderCostLaneState):
            latest, digest = lane.latest_provider_cost_work_generation, lane.provider_cost_trigger_digest
            key = LaneProviderCost(
                gateway_deployment_id=lane.gateway_deployment_id,
                source_evidence_dimension_key=lane.source_evidence_dimension_key,
            )
        else:
            latest, digest = lane.latest_eligibility_work_generation, lane.eligibility_trigger_digest
            key = LaneEligibility()
        require_equal(generation, latest, place, "generation")
        expected = metering_input_work_operation_id(self.source.execution_attempt_id, key, latest, digest)
        require_equal(stated, expected, f"{place}/meteringInputWorkOperationId", "deterministic_id")
        return self


def _work_of(
    state: LanePending | EligibilityApplied | EligibilityBlocked | ProviderCostBlocked | ProviderCostFinished,
) -> tuple[int, str]:
    """Generation and operation of the work that is pending or has ended."""
    if isinstance(state, EligibilityApplied):
        return state.applied_work_generation, state.metering_input_work_operation_id
    work = state if isinstance(state, ProviderCostFinished) else state.active_work
    return work.work_generation, work.metering_input_work_operation_id


def _require_not_later(lane: EligibilityLaneState | ProviderCostLaneState, state: EligibilityWaiting) -> None:
    """The last finished work is none of a generation that does not exist yet."""
    last = state.last_finished_work
    if isinstance(lane, EligibilityLaneState) and isinstance(last, LastFinishedWorkAvailable):
        is_known = last.work_generation <= lane.latest_eligibility_work_generation
        place = "/lane/coordinationState/lastFinishedWork/workGeneration"
        require(is_known, "No such generation exists yet", place, "generation")
