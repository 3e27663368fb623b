"""The payloads of billing about one dimension after the finalization (annex B, 4 to 7; CASE-28)."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from oceanway.contracts.events.base import OwnerEvent
from oceanway.contracts.facts.transitions import (
    LateAction,
    RevisionStep,
    TransitionFields,
    late_settlement_case_ref,
)
from oceanway.contracts.fields import Amount, Quantity
from oceanway.contracts.order import require_equal
from oceanway.contracts.quads_billing import (
    LateSettlementCommandResultQuad,
    LateSettlementExposureQuad,
    SettlementTransitionQuad,
)
from seapost.contracts.fields import EventId, Identifier


class SettlementTransitionCommitted(
    TransitionFields,
    SettlementTransitionQuad,
    OwnerEvent,
    type="billing.settlement-transition.committed@1",
    producer="billing",
    aggregate="settlement_dimension",
):
    """A dimension moved because of a newer settlement input."""

    def source_fact_key(self) -> str:
        """The transition."""
        return self.settlement_transition_ref


class LateSettlementCaseRequested(
    RevisionStep,
    SettlementTransitionQuad,
    LateSettlementExposureQuad,
    OwnerEvent,
    type="billing.late-settlement-exposure.case-requested@1",
    producer="billing",
    aggregate="late_case_request",
):
    """A transition opened an exposure, and somebody must look at it (CASE-27)."""

    case_ref: Identifier
    exposure_amount: Quantity
    causation_event_id: EventId

    @model_validator(mode="after")
    def _one_case(self) -> Self:
        expected = late_settlement_case_ref(self.dimension_id, self.to_revision)
        require_equal(self.case_ref, expected, "/caseRef", "deterministic_id")
        return self

    def source_fact_key(self) -> str:
        """The exposure as the opening left it."""
        return self.late_settlement_exposure_ref


class OwnerTransition(SettlementTransitionQuad):
    """A transition brought the exposure to zero."""

    kind: Literal["settlement_transition"] = "settlement_transition"


class OwnerLateCommandResult(LateSettlementCommandResultQuad):
    """A late command closed the exposure by hand."""

    kind: Literal["late_settlement_command_result"] = "late_settlement_command_result"


class CaseResolutionApplied(
    RevisionStep,
    LateSettlementExposureQuad,
    OwnerEvent,
    type="billing.case-resolution.applied@1",
    producer="billing",
    aggregate="late_case_resolution",
):
    """The exposure of a case ended, with the revision that ended it."""

    case_ref: Identifier
    owner: Annotated[OwnerTransition | OwnerLateCommandResult, Field(discriminator="kind")]
    causation_event_id: EventId

    def source_fact_key(self) -> str:
        """The exposure as its end left it."""
        return self.late_settlement_exposure_ref


class LateSettlementCommandResultCommitted(
    RevisionStep,
    LateSettlementCommandResultQuad,
    LateSettlementExposureQuad,
    OwnerEvent,
    type="billing.late-settlement-command-result.committed@1",
    producer="billing",
    aggregate="settlement_dimension",
):
    """A late command moved a dimension."""

    logical_operation_id: Identifier
    case_ref: Identifier
    action: LateAction
    actor_workforce_principal_id: Identifier
    ledger_delta: Amount
    waived_delta: Amount
    causation_event_id: EventId

    def source_fact_key(self) -> str:
        """The command's result."""
        return self.late_settlement_command_result_ref
