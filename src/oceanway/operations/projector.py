"""The operations projector: nine event types, one version, any order (OPS-13, OPS-14, CASE-26).

Within an aggregate the kernel's room keeps the order and records gaps. Across aggregates nothing waits: an edge
between two events is checked by whichever comes second, and one that does not hold is `identity_conflict`. What must
be asked of an owner is asked before the transaction; an owner that cannot answer makes the event wait, and nothing is
written (CASE-30).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from oceanway.contracts.events import (
    BillingFinalizationCommitted,
    CaseResolutionApplied,
    FinalizationReconciliationCaseRequested,
    FinalizationReconciliationResolutionAppliedEvent,
    LateSettlementCaseRequested,
    LateSettlementCommandResultCommitted,
    RunCreated,
    SettlementTransitionCommitted,
    WalletReserved,
)
from oceanway.contracts.facts.settlement import settlement_dimension_id
from oceanway.contracts.facts.transitions import ExposureOpen, ExposureResolved
from oceanway.contracts.receipts.operations import OperationsProjectionAppliedReceipt
from oceanway.contracts.receipts.registry import RECEIPTS
from oceanway.contracts.release import PROJECTION
from oceanway.operations import store_projection as store
from oceanway.operations.projector_cases import CaseHandlers
from oceanway.operations.refusals import refuse, refusing
from seapost.projections.projection import Projection

if TYPE_CHECKING:
    from psycopg import Connection

    from oceanway.reads.client import Reader
    from seapost.inbox.deciding import Deciding

CONSUMER: Final = "operations_projector"
DESTINATION: Final = "core_operations"


def build_projection(reader: Reader, *, version: str = PROJECTION[1]) -> Projection:
    """The projection with a handler for each event type that operations receives.

    Args:
        reader: asks billing; for a rebuild, `KeptAnswers` asks nobody.
        version: of the projection; each has rows of its own.
    """
    projection = new_projection(version)
    plain = Handlers(version)
    _ = projection.on(RunCreated)(plain.run_created)
    _ = projection.on(WalletReserved)(plain.wallet_reserved)
    _ = projection.on(BillingFinalizationCommitted)(plain.finalization_committed)
    _ = projection.on(SettlementTransitionCommitted)(plain.transition_committed)
    _ = projection.on(LateSettlementCaseRequested)(plain.late_case_requested)
    _ = projection.on(LateSettlementCommandResultCommitted)(plain.late_result_committed)
    cases = CaseHandlers(version, reader)
    _ = projection.on(CaseResolutionApplied, prepare=cases.read_chains)(cases.late_case_resolved)
    _ = projection.on(FinalizationReconciliationCaseRequested, prepare=cases.read_decisions)(cases.case_requested)
    _ = projection.on(FinalizationReconciliationResolutionAppliedEvent, prepare=cases.read_resolutions)(
        cases.case_resolved
    )
    return projection


def new_projection(version: str) -> Projection:
    """One version of the projection without handlers: its target, and how its receipts look."""
    return Projection(
        PROJECTION[0],
        version,
        consumer=CONSUMER,
        destination=DESTINATION,
        receipt=OperationsProjectionAppliedReceipt,
        moment="applied_at",
        receipts=RECEIPTS,
    )


class Handlers:
    """The events that need no owner: one call each."""

    def __init__(self, version: str) -> None:
        self._version = version

    def run_created(self, transaction: Connection[Any], _event: RunCreated, context: Deciding) -> None:
        """A run makes its summary (OPS-13)."""
        with refusing():
            store.run_created(transaction, version=self._version, envelope=context.envelope)

    def wallet_reserved(self, transaction: Connection[Any], _event: WalletReserved, context: Deciding) -> None:
        """A wallet completes the summary, or waits for its run (OPS-14)."""
        with refusing():
            store.wallet_reserved(transaction, version=self._version, envelope=context.envelope)

    def finalization_committed(
        self, transaction: Connection[Any], event: BillingFinalizationCommitted, context: Deciding
    ) -> None:
        """A run is settled; the root of the causes of its transitions (CASE-31)."""
        for one in event.dimensions:
            place = (event.billing_reservation_id, one.run_step_id, one.execution_attempt_id, one.charge_dimension_key)
            if one.settlement_dimension_id != settlement_dimension_id(*place):
                raise refuse("a dimension has another identifier than follows from its place")
        with refusing():
            store.finalization_committed(transaction, version=self._version, envelope=context.envelope)

    def transition_committed(
        self, transaction: Connection[Any], event: SettlementTransitionCommitted, context: Deciding
    ) -> None:
        """A dimension moved; its direct predecessor must be the event that it names (CASE-31, CASE-32).

        That the validation operation follows from this very step is a rule of the payload (CASE-33).
        """
        require_cause(event.causation_event_id, context)
        exposure = event.exposure
        is_open = isinstance(exposure, ExposureOpen)
        change = {
            "dimensionId": event.dimension_id,
            "kind": event.kind,
            "fromRevision": event.from_revision,
            "toRevision": event.to_revision,
            "factRef": event.settlement_transition_ref,
            "factDigest": event.settlement_transition_digest,
            "caseRef": exposure.case_ref if isinstance(exposure, ExposureOpen | ExposureResolved) else None,
            "ledgerDelta": event.ledger_delta,
            "waivedDelta": event.waived_delta,
            "exposureAmount": exposure.amount if is_open else "0",
            "validationOperationId": event.validation_operation_id,
        }
        with refusing():
            store.settlement_advance(transaction, version=self._version, envelope=context.envelope, change=change)

    def late_result_committed(
        self, transaction: Connection[Any], event: LateSettlementCommandResultCommitted, context: Deciding
    ) -> None:
        """An exposure was charged or waived by hand; a step of its dimension like a transition."""
        require_cause(event.causation_event_id, context)
        change = {
            "dimensionId": event.dimension_id,
            "kind": event.action,
            "fromRevision": event.from_revision,
            "toRevision": event.to_revision,
            "factRef": event.late_settlement_command_result_ref,
            "factDigest": event.late_settlement_command_result_digest,
            "caseRef": event.case_ref,
            "ledgerDelta": event.ledger_delta,
            "waivedDelta": event.waived_delta,
            "exposureAmount": "0",
            "actorWorkforcePrincipalId": event.actor_workforce_principal_id,
        }
        with refusing():
            store.settlement_advance(transaction, version=self._version, envelope=context.envelope, change=change)

    def late_case_requested(
        self, transaction: Connection[Any], event: LateSettlementCaseRequested, context: Deciding
    ) -> None:
        """A late case was asked for, by the transition that opened an exposure (CASE-27)."""
        require_cause(event.causation_event_id, context)
        case = {
            "caseRef": event.case_ref,
            "dimensionId": event.dimension_id,
            "revision": event.to_revision,
            "exposureAmount": event.exposure_amount,
            "factRef": event.settlement_transition_ref,
            "factDigest": event.settlement_transition_digest,
        }
        with refusing():
            store.late_requested(transaction, version=self._version, envelope=context.envelope, case=case)


def require_cause(stated: str, context: Deciding) -> None:
    """Require payload and envelope to name one cause (TST-05).

    Raises:
        Reject: they name two.
    """
    if context.received.correlation.causation_id != stated:
        raise refuse("payload and envelope name different causes")
