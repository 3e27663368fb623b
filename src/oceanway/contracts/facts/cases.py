"""The identity of a finalization case, reserved before it exists, and the successor that waits (CASE-02, CASE-09)."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from oceanway.contracts.identity import det
from oceanway.contracts.order import require, require_equal
from oceanway.contracts.quads_billing import (
    BillingFinalizationDecisionQuad,
    FinalizationCaseIdentityReservationQuad,
    PendingFinalizationCaseSuccessorQuad,
    PredecessorFinalizationCaseIdentityReservationQuad,
    TriggeringBillingFinalizationWorkQuad,
)
from oceanway.contracts.quints import Absent
from oceanway.contracts.reasons import FinalizationReason
from oceanway.contracts.subject import FenceFields
from seapost.contracts.content_addressed import ContentAddressed
from seapost.contracts.fields import Algorithm, Digest, EventId, Identifier, Revision, Timestamp


def finalization_case_ref(fence_id: str, generation: int) -> str:
    """The case of one generation of a fence (REF-39)."""
    return det("finalization_case", fence_id, generation)


def case_request_operation_id(fence_id: str, generation: int) -> str:
    """The one operation that requests this case (REF-39)."""
    return det("case_request", fence_id, generation)


def finalization_fence_id(billing_reservation_id: str, run_id: str) -> str:
    """The fence of a reservation (REF-35)."""
    return det("finalization_fence", billing_reservation_id, run_id)


class CaseFields(FenceFields):
    """One case generation of one fence."""

    reconciliation_case_ref: Identifier
    reconciliation_generation: Revision

    @model_validator(mode="after")
    def _one_case(self) -> Self:
        fence = finalization_fence_id(self.billing_reservation_id, self.run_id)
        require_equal(self.billing_finalization_fence_id, fence, "/billingFinalizationFenceId", "deterministic_id")
        case = finalization_case_ref(fence, self.reconciliation_generation)
        require_equal(self.reconciliation_case_ref, case, "/reconciliationCaseRef", "deterministic_id")
        return self


class CaseRequestFields(CaseFields):
    """A case generation with the operation that requests it."""

    expected_resolution_revision: Literal[1]
    case_request_operation_id: Identifier

    @model_validator(mode="after")
    def _one_request(self) -> Self:
        expected = case_request_operation_id(self.billing_finalization_fence_id, self.reconciliation_generation)
        require_equal(self.case_request_operation_id, expected, "/caseRequestOperationId", "deterministic_id")
        return self


class CasePredecessorDirect(FinalizationCaseIdentityReservationQuad):
    """The case generation right before."""

    state: Literal["direct"] = "direct"
    reconciliation_case_ref: Identifier
    reconciliation_generation: Revision


class FinalizationReconciliationCaseIdentityReservation(
    FinalizationCaseIdentityReservationQuad,
    CaseRequestFields,
    ContentAddressed,
    prefix="finalizationCaseIdentityReservation",
    outside=("reservedAt",),
):
    """Who a case will be; it knows no work and no finalization operation (CASE-03)."""

    predecessor: Annotated[Absent | CasePredecessorDirect, Field(discriminator="state")]
    reserved_at: Timestamp

    @model_validator(mode="after")
    def _one_predecessor(self) -> Self:
        before = self.predecessor
        generation = before.reconciliation_generation if isinstance(before, CasePredecessorDirect) else 0
        is_next = self.reconciliation_generation == generation + 1
        require(is_next, "The predecessor is exactly one generation before", "/predecessor", "predecessor")
        if isinstance(before, CasePredecessorDirect):
            case = finalization_case_ref(self.billing_finalization_fence_id, generation)
            require_equal(
                before.reconciliation_case_ref, case, "/predecessor/reconciliationCaseRef", "deterministic_id"
            )
        return self


class CaseCauseFields(BillingFinalizationDecisionQuad, TriggeringBillingFinalizationWorkQuad):
    """Which decision of which work requests the case, and why."""

    billing_finalization_operation_id: Identifier
    triggering_billing_finalization_work_generation: Revision
    reason: FinalizationReason


class PendingFinalizationCaseSuccessor(
    PendingFinalizationCaseSuccessorQuad,
    CaseRequestFields,
    FinalizationCaseIdentityReservationQuad,
    PredecessorFinalizationCaseIdentityReservationQuad,
    CaseCauseFields,
    ContentAddressed,
    prefix="pendingFinalizationCaseSuccessor",
    outside=("recordedAt",),
):
    """A requested case whose predecessor has not ended; it wakes up with the predecessor's end (CASE-08, CASE-09).

    `case_requested_envelope` is the canonical text of the event's envelope.
    """

    case_requested_event_id: EventId
    case_requested_envelope_digest_algorithm_version: Algorithm
    case_requested_envelope_sha256: Digest
    case_requested_envelope: str
    recorded_at: Timestamp

    @model_validator(mode="after")
    def _not_first(self) -> Self:
        place = "/reconciliationGeneration"
        require(self.reconciliation_generation > 1, "The first case has no predecessor", place, "predecessor")
        return self
