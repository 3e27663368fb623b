"""Billing's finalization works: what triggers them, and how they end (REF-35, REF-36)."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from oceanway.contracts.base import Contract
from oceanway.contracts.fields import AttemptNumber, FencingToken
from oceanway.contracts.identity import det
from oceanway.contracts.order import ascending, require, require_equal
from oceanway.contracts.quads import RunExecutionFinalizationQuad
from oceanway.contracts.quads_billing import (
    BillingFinalizationDecisionQuad,
    BillingFinalizationTriggerSnapshotQuad,
    BillingFinalizationWorkAttemptFinishedQuad,
    BillingFinalizationWorkQuad,
    FinalizationReconciliationResolutionAppliedQuad,
)
from oceanway.contracts.quints import Absent, DimensionKey, SettlementInputSnapshotItem
from seapost.contracts.content_addressed import ContentAddressed
from seapost.contracts.fields import Algorithm, Digest, EventId, Identifier, Revision, Timestamp

Dimensions = ascending("run_step_id", "execution_attempt_id", "charge_dimension_key")


class ClosureWatermarkApplied(RunExecutionFinalizationQuad):
    """The run is closed, by this event.

    The coordinator's receipt names the trigger by its digest, so a trigger cannot name the receipt; the fence does.
    """

    state: Literal["applied"] = "applied"
    closure_event_id: EventId
    event_envelope_digest_algorithm_version: Algorithm
    event_envelope_sha256: Digest


class ResolutionWatermarkApplied(FinalizationReconciliationResolutionAppliedQuad):
    """The newest case of the run was resolved, by this fact."""

    state: Literal["applied"] = "applied"
    reconciliation_case_ref: Identifier
    reconciliation_generation: Revision
    resolution_revision: Literal[1]


ClosureWatermark = Annotated[Absent | ClosureWatermarkApplied, Field(discriminator="state")]
ResolutionWatermark = Annotated[Absent | ResolutionWatermarkApplied, Field(discriminator="state")]


class BillingFinalizationTriggerSnapshot(
    BillingFinalizationTriggerSnapshotQuad,
    ContentAddressed,
    prefix="billingFinalizationTriggerSnapshot",
    outside=("createdAt",),
):
    """Everything billing knew of a run when a work was made."""

    billing_finalization_fence_id: Identifier
    finalization_fence_revision: Revision
    work_generation: Revision
    closure_watermark: ClosureWatermark
    settlement_watermarks: Annotated[list[SettlementInputSnapshotItem], Dimensions]
    resolution_watermark: ResolutionWatermark
    created_at: Timestamp


def billing_finalization_operation_id(fence_id: str, work_generation: int, trigger_digest: str) -> str:
    """The one operation of a work (REF-36)."""
    return det("billing_finalization", fence_id, work_generation, trigger_digest)


class BillingFinalizationWork(
    BillingFinalizationWorkQuad,
    BillingFinalizationTriggerSnapshotQuad,
    ContentAddressed,
    prefix="billingFinalizationWork",
    outside=("createdAt",),
):
    """One immutable generation of a run's finalization."""

    billing_finalization_operation_id: Identifier
    billing_finalization_fence_id: Identifier
    work_generation: Revision
    created_at: Timestamp

    @model_validator(mode="after")
    def _one_operation(self) -> Self:
        expected = billing_finalization_operation_id(
            self.billing_finalization_fence_id, self.work_generation, self.billing_finalization_trigger_snapshot_digest
        )
        place = "/billingFinalizationOperationId"
        require_equal(self.billing_finalization_operation_id, expected, place, "deterministic_id")
        return self


class OutcomeClosureEventNotApplied(Contract):
    """The run is not closed yet; nothing was asked of execution (FIN-03)."""

    state: Literal["closure_event_not_applied"] = "closure_event_not_applied"


class OutcomeSettlementInputNotApplied(Contract):
    """These dimensions have no settlement input yet."""

    state: Literal["settlement_input_not_applied"] = "settlement_input_not_applied"
    missing: Annotated[list[DimensionKey], Field(min_length=1), Dimensions]


class OutcomeSuperseded(Contract):
    """A later generation took over."""

    state: Literal["superseded"] = "superseded"
    superseded_by_work_generation: Revision


class OutcomeReconciliationRequired(BillingFinalizationDecisionQuad):
    """The owners contradict each other: there is a case."""

    state: Literal["reconciliation_required"] = "reconciliation_required"


class OutcomeFinalized(BillingFinalizationDecisionQuad):
    """The run is settled."""

    state: Literal["finalized"] = "finalized"


FinalizationOutcome = Annotated[
    OutcomeClosureEventNotApplied
    | OutcomeSettlementInputNotApplied
    | OutcomeSuperseded
    | OutcomeReconciliationRequired
    | OutcomeFinalized,
    Field(discriminator="state"),
]


class BillingFinalizationWorkAttemptFinished(
    BillingFinalizationWorkAttemptFinishedQuad,
    BillingFinalizationWorkQuad,
    ContentAddressed,
    prefix="billingFinalizationWorkAttemptFinished",
    outside=("finishedAt",),
):
    """How a work ended; there is at most one for each work."""

    billing_finalization_operation_id: Identifier
    work_generation: Revision
    attempt_number: AttemptNumber
    fencing_token: FencingToken
    outcome: FinalizationOutcome
    finished_at: Timestamp

    @model_validator(mode="after")
    def _later_generation(self) -> Self:
        outcome = self.outcome
        if outcome.state == "superseded":
            is_later = outcome.superseded_by_work_generation > self.work_generation
            require(is_later, "Only a later generation supersedes", "/outcome/supersededByWorkGeneration", "range")
        return self
