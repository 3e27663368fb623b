"""The receipt of billing's settlement catch-up (RCP-49 to RCP-55)."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from oceanway.contracts.base import Contract
from oceanway.contracts.facts.cases import finalization_case_ref, finalization_fence_id
from oceanway.contracts.facts.settlement import EconomicFields
from oceanway.contracts.order import require, require_equal
from oceanway.contracts.quads_billing import (
    BillingFinalizationTriggerSnapshotQuad,
    BillingFinalizationWorkQuad,
    BillingSettlementCatchUpConsumerReceiptQuad,
    BillingSettlementCatchUpWorkQuad,
)
from oceanway.contracts.quints import SettlementInputQuint
from seapost.contracts.fields import Identifier, Revision, Timestamp
from seapost.contracts.receipts import Receipt


class DurabilityFinalizationWorkScheduled(BillingFinalizationTriggerSnapshotQuad, BillingFinalizationWorkQuad):
    """The reservation is not finalized: the input made a finalization work (RCP-50)."""

    state: Literal["finalization_work_scheduled"] = "finalization_work_scheduled"
    finalization_fence_revision: Revision
    work_generation: Revision


class DurabilitySettlementCatchUpScheduled(BillingSettlementCatchUpWorkQuad):
    """The reservation is finalized: the input made a catch-up work (RCP-51)."""

    state: Literal["settlement_catch_up_scheduled"] = "settlement_catch_up_scheduled"
    settlement_catch_up_fence_revision: Revision
    work_generation: Revision
    billing_catch_up_validation_operation_id: Identifier


class DurabilityHeldForResolution(Contract):
    """The fence is in a case: the input waits, without any work, for the resolution (RCP-52, RCP-53)."""

    state: Literal["held_for_resolution"] = "held_for_resolution"
    finalization_fence_revision: Revision
    reconciliation_case_ref: Identifier
    reconciliation_generation: Revision
    expected_resolution_revision: Literal[1]


class OutcomeWatermarkAdvanced(Contract):
    """The input is the newest of its dimension."""

    kind: Literal["watermark_advanced"] = "watermark_advanced"
    inbox_revision: Revision
    durability: Annotated[
        DurabilityFinalizationWorkScheduled | DurabilitySettlementCatchUpScheduled | DurabilityHeldForResolution,
        Field(discriminator="state"),
    ]


class OutcomeAlreadyObserved(Contract):
    """A newer input of the dimension was accepted before."""

    kind: Literal["already_observed"] = "already_observed"
    inbox_revision: Revision
    highest_observed_settlement_input: SettlementInputQuint


class BillingSettlementCatchUpConsumerReceipt(
    BillingSettlementCatchUpConsumerReceiptQuad,
    Receipt,
    EconomicFields,
    prefix="billingSettlementCatchUpConsumerReceipt",
    outside=("committedAt",),
):
    """A settlement input was accepted, and this is what it led to."""

    destination: Literal["billing_settlement_catch_up"]  # pyright: ignore[reportIncompatibleVariableOverride]
    consumer_name: Literal["billing_settlement_catch_up_consumer"]  # pyright: ignore[reportIncompatibleVariableOverride]
    event_type: Literal["metering.settlement-input.current-changed@1"]  # pyright: ignore[reportIncompatibleVariableOverride]
    event_schema_version: Literal["1"]  # pyright: ignore[reportIncompatibleVariableOverride]
    event_settlement_input: SettlementInputQuint
    outcome: Annotated[OutcomeWatermarkAdvanced | OutcomeAlreadyObserved, Field(discriminator="kind")]
    committed_at: Timestamp

    @model_validator(mode="after")
    def _one_outcome(self) -> Self:
        outcome = self.outcome
        if isinstance(outcome, OutcomeAlreadyObserved):
            highest = outcome.highest_observed_settlement_input.settlement_input_state_version
            is_newer = highest > self.event_settlement_input.settlement_input_state_version
            place = "/outcome/highestObservedSettlementInput/settlementInputStateVersion"
            require(is_newer, "Only an older input was observed already", place, "range")
        elif isinstance(outcome.durability, DurabilityHeldForResolution):
            fence = finalization_fence_id(self.billing_reservation_id, self.run_id)
            case = finalization_case_ref(fence, outcome.durability.reconciliation_generation)
            place = "/outcome/durability/reconciliationCaseRef"
            require_equal(outcome.durability.reconciliation_case_ref, case, place, "deterministic_id")
        return self
