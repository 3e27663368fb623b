"""What billing answers about finalizations: decisions, resolutions and the coordinator's receipts (REF-44, RCP-57).

Each question states the complete identity that the caller expects; whatever differs is `conflicting`, and nothing of
what is stored is shown then. There is no list and no latest (SEC-08).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from oceanway.billing import store_finalization as store
from oceanway.billing.finalization.coordinator import build_coordinator_inbox
from oceanway.billing.resolution.command import origin_of
from oceanway.contracts.facts.cases import CaseRequestFields, FinalizationReconciliationCaseIdentityReservation
from oceanway.contracts.facts.finalization import BillingFinalizationDecision, DecisionReconciliationRequired
from oceanway.contracts.facts.resolution import FinalizationReconciliationResolutionApplied
from oceanway.contracts.identity import quad_of
from oceanway.contracts.reads import Conflicting, NotFound
from oceanway.contracts.reads_billing import (
    READ_BILLING_FINALIZATION_COORDINATOR_CONSUMER_RECEIPT,
    READ_BILLING_FINALIZATION_DECISION_FOR_OPERATIONS,
    READ_RESOLUTION_APPLIED_BY_OPERATION,
    READ_RESOLUTION_APPLIED_FOR_OPERATIONS,
    CoordinatorReceiptAnswer,
    CoordinatorReceiptFound,
    CoordinatorReceiptQuestion,
    DecisionAnswer,
    DecisionForOperations,
    DecisionFound,
    ResolutionAnswer,
    ResolutionByOperation,
    ResolutionForOperations,
    ResolutionFound,
)
from oceanway.contracts.receipts.coordinator import BillingFinalizationCoordinatorConsumerReceipt
from seapost.inbox.deciding import read_decided

if TYPE_CHECKING:
    from oceanway.contracts.reads import ReadOperation
    from oceanway.reads.call import Caller
    from oceanway.reads.server import Serving
    from seapost.database.pool import SyncPool


def register(serving: Serving, pool: SyncPool) -> None:
    """Serve billing's reads about finalizations from this database."""
    reads = Reads(pool)
    serving.register(READ_BILLING_FINALIZATION_DECISION_FOR_OPERATIONS, reads.decisions)
    serving.register(READ_RESOLUTION_APPLIED_BY_OPERATION, reads.by_operation)
    serving.register(READ_RESOLUTION_APPLIED_FOR_OPERATIONS, reads.for_operations)
    serving.register(READ_BILLING_FINALIZATION_COORDINATOR_CONSUMER_RECEIPT, reads.receipts)


class Reads:
    """The answers, each for a batch in one query."""

    def __init__(self, pool: SyncPool) -> None:
        self._pool = pool
        self._inbox = build_coordinator_inbox(NOBODY)

    def decisions(self, caller: Caller, asked: Sequence[DecisionForOperations]) -> list[DecisionAnswer]:
        """Decisions behind case requests (CASE-06)."""
        _ = caller
        with self._pool.connection() as connection:
            found = store.read_decisions(connection, [one.billing_finalization_decision_ref for one in asked])
        return [_decision(one, stored) for one, stored in zip(asked, found, strict=True)]

    def by_operation(self, caller: Caller, asked: Sequence[ResolutionByOperation]) -> list[ResolutionAnswer]:
        """Resolutions for the processing of commands (CASE-20)."""
        _ = caller
        return self._resolutions(
            [(one.resolution_operation_id, lambda fact, one=one: origin_of(fact) == origin_of(one)) for one in asked]
        )

    def for_operations(self, caller: Caller, asked: Sequence[ResolutionForOperations]) -> list[ResolutionAnswer]:
        """Resolutions behind their events (SEC-13)."""
        _ = caller
        return self._resolutions(
            [(one.resolution_operation_id, lambda fact, one=one: _says(fact, one)) for one in asked]
        )

    def receipts(self, caller: Caller, asked: Sequence[CoordinatorReceiptQuestion]) -> list[CoordinatorReceiptAnswer]:
        """Receipts of the coordinator for their events (RCP-57)."""
        _ = caller
        with self._pool.connection() as connection:
            found = [
                read_decided(
                    connection,
                    self._inbox,
                    quad=quad_of(one, "billing_finalization_coordinator_consumer_receipt"),
                    event_id=one.event_id,
                    event_digest=one.event_envelope_sha256,
                )
                for one in asked
            ]
        return [CoordinatorReceiptAnswer(answer=_receipt(one, it)) for one, it in zip(asked, found, strict=True)]

    def _resolutions(
        self, asked: Sequence[tuple[str, Callable[[FinalizationReconciliationResolutionApplied], bool]]]
    ) -> list[ResolutionAnswer]:
        with self._pool.connection() as connection:
            found = store.read_resolutions(connection, [operation for operation, _ in asked])
        answers: list[ResolutionAnswer] = []
        for (_, matches), document in zip(asked, found, strict=True):
            if document is None:
                answers.append(ResolutionAnswer(answer=NotFound()))
                continue
            fact = FinalizationReconciliationResolutionApplied.decode(document)
            answers.append(
                ResolutionAnswer(answer=ResolutionFound(resolution=fact) if matches(fact) else Conflicting())
            )
        return answers


def _decision(asked: DecisionForOperations, stored: store.StoredDecision) -> DecisionAnswer:
    if stored.document is None:
        return DecisionAnswer(answer=NotFound())
    decision = BillingFinalizationDecision.decode(stored.document)
    outcome = decision.outcome
    if stored.case_identity is None or not isinstance(outcome, DecisionReconciliationRequired):
        return DecisionAnswer(answer=Conflicting())
    identity = FinalizationReconciliationCaseIdentityReservation.decode(stored.case_identity)
    is_same = (
        decision.quad() == quad_of(asked, "billing_finalization_decision")
        and quad_of(decision, "billing_finalization_work") == quad_of(asked, "triggering_billing_finalization_work")
        and (decision.billing_finalization_operation_id, decision.work_generation, outcome.reason.kind)
        == (
            asked.billing_finalization_operation_id,
            asked.triggering_billing_finalization_work_generation,
            asked.reason,
        )
        and identity.quad() == quad_of(asked, "finalization_case_identity_reservation")
        and all(getattr(identity, name) == getattr(asked, name) for name in CaseRequestFields.model_fields)
    )
    return DecisionAnswer(answer=DecisionFound(decision=decision) if is_same else Conflicting())


def _says(fact: FinalizationReconciliationResolutionApplied, asked: ResolutionForOperations) -> bool:
    """Whether a fact says everything that an event says about it."""
    written = fact.to_json()
    return all(written.get(name) == value for name, value in asked.to_json().items()) and (
        written.get("projectId") == asked.project_id
    )


def _receipt(
    asked: CoordinatorReceiptQuestion,
    found: Any,  # noqa: ANN401 - a receipt, a conflict or nothing
) -> CoordinatorReceiptFound | NotFound | Conflicting:
    if found is None:
        return NotFound()
    if not isinstance(found, BillingFinalizationCoordinatorConsumerReceipt):
        return Conflicting()
    is_same = (
        found.quad() == quad_of(asked, "billing_finalization_coordinator_consumer_receipt")
        and (found.event_id, found.event_envelope_sha256) == (asked.event_id, asked.event_envelope_sha256)
        and found.source == asked.source
    )
    return CoordinatorReceiptFound(receipt=found) if is_same else Conflicting()


class _Nobody:
    """A reader for an inbox that only reads its receipts."""

    def call(self, operation: ReadOperation[Any, Any], arguments: Sequence[Any]) -> list[Any]:
        raise AssertionError(f"{operation.name} is not asked here, about {len(arguments)} things")


NOBODY = _Nobody()
