"""The payloads of billing: the finalization of a run, and the cases of its conflicts (annex B, 3, 10 and 11)."""

from __future__ import annotations

from oceanway.contracts.events.base import OwnerEvent
from oceanway.contracts.facts.cases import CaseCauseFields, CaseRequestFields
from oceanway.contracts.facts.finalization import ClosureEventFields, FinalizedMoney
from oceanway.contracts.facts.resolution import ResolutionFields
from oceanway.contracts.quads_billing import (
    BillingFinalizationCoordinatorConsumerReceiptQuad,
    BillingFinalizationDecisionQuad,
    BillingFinalizationFactQuad,
    BillingFinalizationWorkQuad,
    FinalizationCaseIdentityReservationQuad,
    FinalizationReconciliationResolutionAppliedQuad,
)
from oceanway.contracts.subject import FenceFields
from seapost.contracts.fields import Identifier, Revision


class BillingFinalizationCommitted(
    FenceFields,
    BillingFinalizationFactQuad,
    BillingFinalizationDecisionQuad,
    BillingFinalizationWorkQuad,
    ClosureEventFields,
    BillingFinalizationCoordinatorConsumerReceiptQuad,
    FinalizedMoney,
    OwnerEvent,
    type="billing.finalization.committed@1",
    producer="billing",
    aggregate="finalization",
):
    """A run is settled; the root cause of every later transition (CASE-31)."""

    finalization_fence_revision: Revision
    billing_finalization_operation_id: Identifier
    work_generation: Revision

    def source_fact_key(self) -> str:
        """The finalization fact."""
        return self.billing_finalization_fact_ref


class FinalizationReconciliationCaseRequested(
    CaseRequestFields,
    FinalizationCaseIdentityReservationQuad,
    CaseCauseFields,
    OwnerEvent,
    type="billing.finalization-reconciliation.case-requested@1",
    producer="billing",
    aggregate="finalization_case_request",
):
    """A finalization needs a case (CASE-05)."""

    def source_fact_key(self) -> str:
        """The decision that requires it."""
        return self.billing_finalization_decision_ref


class FinalizationReconciliationResolutionAppliedEvent(
    ResolutionFields,
    FinalizationReconciliationResolutionAppliedQuad,
    OwnerEvent,
    type="billing.finalization-reconciliation-resolution.applied@1",
    producer="billing",
    aggregate="finalization_case_resolution",
):
    """A case was resolved; the coordinator re-evaluates, and operations ends the case (CASE-16)."""

    actor_workforce_principal_id: Identifier

    def source_fact_key(self) -> str:
        """The resolution fact."""
        return self.finalization_reconciliation_resolution_applied_ref
