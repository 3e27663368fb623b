"""The coordination states of metering's lanes, as its receipt freezes them (RCP-22 to RCP-32)."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from oceanway.contracts.base import Contract
from oceanway.contracts.order import ascending, require_count
from oceanway.contracts.quads import (
    MeteringInputWorkAttemptBlockedQuad,
    MeteringInputWorkAttemptFinishedQuad,
    MeteringInputWorkQuad,
    ProviderCostAvailabilityProcessingQuad,
)
from oceanway.contracts.quints import Absent, SettlementInputSnapshotItem
from oceanway.contracts.reasons import AvailabilityReason
from seapost.contracts.fields import Count, Identifier, Revision


class ActiveWorkPending(MeteringInputWorkQuad):
    """The work of the lane's latest generation, still to be done."""

    state: Literal["pending"] = "pending"
    work_generation: Revision
    metering_input_work_operation_id: Identifier


class LastFinishedWorkAvailable(MeteringInputWorkQuad, MeteringInputWorkAttemptFinishedQuad):
    """The last work that was finished, with its Finish."""

    state: Literal["available"] = "available"
    work_generation: Revision
    metering_input_work_operation_id: Identifier


class EligibilityWaiting(Contract):
    """The other side of the attempt is not known yet (RCP-24)."""

    state: Literal["waiting_for_execution", "waiting_for_gateway_usage"]
    active_work: Absent
    last_finished_work: Annotated[Absent | LastFinishedWorkAvailable, Field(discriminator="state")]


class LanePending(Contract):
    """There is work to do (RCP-23)."""

    state: Literal["pending"] = "pending"
    active_work: ActiveWorkPending


class EligibilityApplied(MeteringInputWorkQuad, MeteringInputWorkAttemptFinishedQuad):
    """The settlement inputs of the attempt are current (RCP-25)."""

    state: Literal["applied"] = "applied"
    active_work: Absent
    applied_work_generation: Revision
    metering_input_work_operation_id: Identifier
    settlement_input_snapshot_count: Count
    settlement_input_snapshots: Annotated[
        list[SettlementInputSnapshotItem], ascending("run_step_id", "execution_attempt_id", "charge_dimension_key")
    ]

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        place = "/settlementInputSnapshotCount"
        require_count(self.settlement_input_snapshot_count, self.settlement_input_snapshots, place)
        return self


class EligibilityBlocked(MeteringInputWorkAttemptBlockedQuad):
    """The work is pending, but a contradiction keeps it from ending (RCP-26)."""

    state: Literal["blocked_on_owner_conflict"] = "blocked_on_owner_conflict"
    active_work: ActiveWorkPending


EligibilityState = Annotated[
    EligibilityWaiting | LanePending | EligibilityApplied | EligibilityBlocked, Field(discriminator="state")
]


class ProviderCostFinished(
    MeteringInputWorkQuad, ProviderCostAvailabilityProcessingQuad, MeteringInputWorkAttemptFinishedQuad
):
    """What every completed cost work binds: work, processing fact and Finish (RCP-27)."""

    active_work: Absent
    work_generation: Revision
    metering_input_work_operation_id: Identifier


class ProviderCostAvailabilityProcessed(ProviderCostFinished):
    """The cost was booked."""

    state: Literal["availability_processed"] = "availability_processed"
    processing_outcome: Literal["available_applied"] = "available_applied"


class ProviderCostWaitingForEvidence(ProviderCostFinished):
    """The provider will report later."""

    state: Literal["waiting_for_evidence"] = "waiting_for_evidence"
    processing_outcome: Literal["waiting_for_evidence"] = "waiting_for_evidence"


class ProviderCostNoCostEvidence(ProviderCostFinished):
    """There is no evidence, which is not a cost of zero."""

    state: Literal["no_cost_evidence"] = "no_cost_evidence"
    processing_outcome: Literal["no_cost_evidence"] = "no_cost_evidence"


class ProviderCostReconciliationRequired(ProviderCostFinished):
    """The provider's reports exclude each other; never a case (RCP-36)."""

    state: Literal["reconciliation_required"] = "reconciliation_required"
    processing_outcome: Literal["reconciliation_required"] = "reconciliation_required"
    availability_state: Literal["conflicting"] = "conflicting"
    state_reason_code: AvailabilityReason


class ProviderCostBlocked(MeteringInputWorkAttemptBlockedQuad):
    """The work is pending, but a contradiction keeps it from ending (RCP-28)."""

    state: Literal["blocked_on_processing_conflict"] = "blocked_on_processing_conflict"
    active_work: ActiveWorkPending


ProviderCostState = Annotated[
    LanePending
    | ProviderCostAvailabilityProcessed
    | ProviderCostWaitingForEvidence
    | ProviderCostNoCostEvidence
    | ProviderCostBlocked
    | ProviderCostReconciliationRequired,
    Field(discriminator="state"),
]
