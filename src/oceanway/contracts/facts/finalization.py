"""What billing decides about a whole run, and the money it settles (REF-35, REF-37)."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from oceanway.contracts.base import Contract
from oceanway.contracts.fields import Amount, Currency, Generation, Quantity
from oceanway.contracts.order import ascending, require_equal
from oceanway.contracts.quads import (
    RunExecutionFinalizationConflictFactQuad,
    RunExecutionFinalizationQuad,
    SettlementInputConflictFactQuad,
)
from oceanway.contracts.quads_billing import (
    BillingFinalizationCoordinatorConsumerReceiptQuad,
    BillingFinalizationDecisionQuad,
    BillingFinalizationFactQuad,
    BillingFinalizationTriggerSnapshotQuad,
    BillingFinalizationWorkQuad,
    FinalizationCaseIdentityReservationQuad,
)
from oceanway.contracts.quints import Absent, DimensionKey, SettlementInputQuint, SettlementInputSnapshotItem
from oceanway.contracts.subject import FenceFields
from oceanway.contracts.works.finalization import ResolutionWatermark
from seapost.contracts.content_addressed import ContentAddressed
from seapost.contracts.fields import Algorithm, Digest, EventId, Identifier, Revision, Timestamp

Dimensions = ascending("run_step_id", "execution_attempt_id", "charge_dimension_key")


class Price(Contract):
    """What one unit of a quantity costs under one version of a price book."""

    price_book_ref: Identifier
    price_book_version: Identifier
    quantity_unit: Identifier
    currency: Currency
    unit_price: Quantity


class FinalizedDimension(DimensionKey, SettlementInputQuint):
    """One dimension of a settled run: its input, and the amount that follows from it."""

    settlement_dimension_id: Identifier
    amount: Quantity


class DecisionFinalize(Contract):
    """Every input is there, and this is what it costs."""

    state: Literal["finalize"] = "finalize"
    dimensions: Annotated[list[FinalizedDimension], Dimensions]


class ReasonExecutionConflict(RunExecutionFinalizationConflictFactQuad):
    """Execution holds two claims about the closure."""

    kind: Literal["execution_conflict"] = "execution_conflict"


class ReasonSettlementConflict(SettlementInputConflictFactQuad):
    """Metering holds two claims about a settlement input."""

    kind: Literal["settlement_conflict"] = "settlement_conflict"


class DecisionReconciliationRequired(Contract):
    """An owner contradicts itself; nobody may settle this run before a case is resolved."""

    state: Literal["reconciliation_required"] = "reconciliation_required"
    reason: Annotated[ReasonExecutionConflict | ReasonSettlementConflict, Field(discriminator="kind")]


class BillingFinalizationDecision(
    BillingFinalizationDecisionQuad,
    BillingFinalizationWorkQuad,
    BillingFinalizationTriggerSnapshotQuad,
    ContentAddressed,
    prefix="billingFinalizationDecision",
    outside=("decidedAt",),
):
    """What one work decided about its run."""

    billing_finalization_operation_id: Identifier
    work_generation: Revision
    outcome: Annotated[DecisionFinalize | DecisionReconciliationRequired, Field(discriminator="state")]
    decided_at: Timestamp


class ClosureEventFields(Contract):
    """Which closure event a finalization rests on (FIN-05)."""

    closure_event_id: EventId
    closure_event_envelope_digest_algorithm_version: Algorithm
    closure_event_envelope_sha256: Digest


class FinalizedMoney(Contract):
    """What was reserved, and what became of it; more than was reserved may be settled."""

    currency: Currency
    reserved_amount: Quantity
    settled_amount: Quantity
    released_amount: Amount
    dimensions: Annotated[list[FinalizedDimension], Dimensions]

    @model_validator(mode="after")
    def _balanced(self) -> Self:
        settled = Decimal(self.settled_amount)
        total = sum((Decimal(one.amount) for one in self.dimensions), Decimal(0))
        require_equal(settled, total, "/settledAmount", "sum")
        released = Decimal(self.reserved_amount) - settled
        require_equal(Decimal(self.released_amount), released, "/releasedAmount", "sum")
        return self


class BillingFinalizationFact(
    BillingFinalizationFactQuad,
    FenceFields,
    BillingFinalizationWorkQuad,
    BillingFinalizationDecisionQuad,
    ClosureEventFields,
    BillingFinalizationCoordinatorConsumerReceiptQuad,
    FinalizedMoney,
    ContentAddressed,
    prefix="billingFinalizationFact",
    outside=("finalizedAt",),
):
    """A run is settled: the Owner Fact behind `billing.finalization.committed@1`."""

    finalization_fence_revision: Revision
    billing_finalization_operation_id: Identifier
    work_generation: Revision
    finalized_at: Timestamp


class FenceClosureApplied(RunExecutionFinalizationQuad, BillingFinalizationCoordinatorConsumerReceiptQuad):
    """The closure as the fence knows it, with the coordinator's receipt."""

    state: Literal["applied"] = "applied"
    closure_event_id: EventId
    event_envelope_digest_algorithm_version: Algorithm
    event_envelope_sha256: Digest


class FencePending(BillingFinalizationWorkQuad):
    """There is work to do."""

    state: Literal["pending"] = "pending"
    work_generation: Revision
    billing_finalization_operation_id: Identifier


class FenceWaitingForClosure(Contract):
    """The run is still open."""

    state: Literal["waiting_for_closure"] = "waiting_for_closure"


class FenceWaitingForSettlementInput(Contract):
    """The run is closed, but a settlement input is missing."""

    state: Literal["waiting_for_settlement_input"] = "waiting_for_settlement_input"


class FenceReconciliationRequired(FinalizationCaseIdentityReservationQuad):
    """The fence is in a case and leaves it by its resolution only."""

    state: Literal["reconciliation_required"] = "reconciliation_required"
    reconciliation_case_ref: Identifier
    reconciliation_generation: Revision
    expected_resolution_revision: Literal[1]


class FenceFinalized(BillingFinalizationFactQuad):
    """The run is settled."""

    state: Literal["finalized"] = "finalized"


class BillingFinalizationFence(FenceFields):
    """The state of a run's finalization, as billing shows it; it changes, and so has no digest."""

    finalization_fence_revision: Revision
    latest_work_generation: Generation
    closure_watermark: Annotated[Absent | FenceClosureApplied, Field(discriminator="state")]
    settlement_watermarks: Annotated[list[SettlementInputSnapshotItem], Dimensions]
    resolution_watermark: ResolutionWatermark
    coordination_state: Annotated[
        FencePending
        | FenceWaitingForClosure
        | FenceWaitingForSettlementInput
        | FenceReconciliationRequired
        | FenceFinalized,
        Field(discriminator="state"),
    ]
