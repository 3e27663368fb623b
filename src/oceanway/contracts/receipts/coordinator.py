"""The receipt of billing's finalization coordinator (RCP-37 to RCP-48)."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from oceanway.contracts.base import Contract
from oceanway.contracts.events.billing import FinalizationReconciliationResolutionAppliedEvent
from oceanway.contracts.events.execution import RunFinalizationClosed
from oceanway.contracts.facts.execution import closure_operation_id
from oceanway.contracts.facts.resolution import ResolutionFields
from oceanway.contracts.order import require, require_equal
from oceanway.contracts.quads import AttemptSetManifestQuad, RunAdmissionManifestQuad, RunExecutionFinalizationQuad
from oceanway.contracts.quads_billing import (
    BillingFinalizationCoordinatorConsumerReceiptQuad,
    BillingFinalizationTriggerSnapshotQuad,
    BillingFinalizationWorkQuad,
    FinalizationReconciliationResolutionAppliedQuad,
)
from oceanway.contracts.receipts.sourced import SourcedReceipt
from oceanway.contracts.subject import RunFields
from seapost.contracts.fields import Count, Identifier, Revision, Timestamp


class SourceExecutionClosure(RunFields, RunAdmissionManifestQuad, RunExecutionFinalizationQuad, AttemptSetManifestQuad):
    """The event was execution's: a run was closed."""

    kind: Literal["execution_closure"] = "execution_closure"
    event_type: Literal["execution.run-finalization.closed@1"] = "execution.run-finalization.closed@1"
    event_schema_version: Literal["1"] = "1"
    closure_operation_id: Identifier
    run_execution_finalization_state_version: Literal[1]
    attempt_count: Count

    @model_validator(mode="after")
    def _one_closure(self) -> Self:
        expected = closure_operation_id(self.run_id)
        require_equal(self.closure_operation_id, expected, "/closureOperationId", "deterministic_id")
        return self

    @classmethod
    def of(cls, event: RunFinalizationClosed) -> Self:
        """The source of this event."""
        return cls(**dict(event))


class SourceFinalizationReconciliationResolution(ResolutionFields, FinalizationReconciliationResolutionAppliedQuad):
    """The event was billing's own: a case was resolved."""

    kind: Literal["finalization_reconciliation_resolution"] = "finalization_reconciliation_resolution"
    event_type: Literal["billing.finalization-reconciliation-resolution.applied@1"] = (
        "billing.finalization-reconciliation-resolution.applied@1"
    )
    event_schema_version: Literal["1"] = "1"
    actor_workforce_principal_id: Identifier

    @classmethod
    def of(cls, event: FinalizationReconciliationResolutionAppliedEvent) -> Self:
        """The source of this event."""
        return cls(**dict(event))


class OutcomeWorkScheduled(BillingFinalizationTriggerSnapshotQuad, BillingFinalizationWorkQuad):
    """The event moved the fence and made a work."""

    state: Literal["work_scheduled"] = "work_scheduled"
    finalization_fence_revision: Revision
    work_generation: Revision


class OutcomeAlreadySuperseded(Contract):
    """The resolution had made its work before; this is how far the fence is."""

    state: Literal["already_superseded"] = "already_superseded"
    finalization_fence_revision: Revision


class BillingFinalizationCoordinatorConsumerReceipt(
    BillingFinalizationCoordinatorConsumerReceiptQuad,
    SourcedReceipt,
    prefix="billingFinalizationCoordinatorConsumerReceipt",
    outside=("committedAt",),
):
    """A closure or resolution was accepted, and this is what it led to."""

    destination: Literal["billing_finalization_coordinator"]  # pyright: ignore[reportIncompatibleVariableOverride]
    consumer_name: Literal["billing_finalization_coordinator_consumer"]  # pyright: ignore[reportIncompatibleVariableOverride]
    source: Annotated[SourceExecutionClosure | SourceFinalizationReconciliationResolution, Field(discriminator="kind")]
    outcome: Annotated[OutcomeWorkScheduled | OutcomeAlreadySuperseded, Field(discriminator="state")]
    committed_at: Timestamp

    @model_validator(mode="after")
    def _one_branch(self) -> Self:
        """RCP-42: a closure always schedules work."""
        is_fine = self.source.kind != "execution_closure" or self.outcome.state == "work_scheduled"
        require(is_fine, "A closure is never superseded", "/outcome/state", "mixed_branches")
        return self
