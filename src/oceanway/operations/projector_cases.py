"""The handlers of case events, whose owner is asked before the transaction (CASE-06, CASE-22, CASE-29, AMB-35)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from oceanway.contracts.facts.cases import CasePredecessorDirect, FinalizationReconciliationCaseIdentityReservation
from oceanway.contracts.identity import Quad, quad_of
from oceanway.contracts.reads import A, NotFound, R, ReadOperation
from oceanway.contracts.reads_billing import (
    READ_BILLING_FINALIZATION_DECISION_FOR_OPERATIONS,
    READ_LATE_SETTLEMENT_EXPOSURE_CHAIN_FOR_OPERATIONS,
    READ_RESOLUTION_APPLIED_FOR_OPERATIONS,
    DecisionFound,
    ExposureChainFound,
    ExposureChainQuestion,
    ResolutionFound,
)
from oceanway.operations import case_documents as documents
from oceanway.operations import late_chain
from oceanway.operations import store_projection as store
from oceanway.operations.answers import Answered
from oceanway.operations.cases import Request, Resolution, decide
from oceanway.operations.refusals import refuse, refusing
from seapost.model.errors import Reject, Retry
from seapost.model.outcome import ErrorCode

if TYPE_CHECKING:
    from psycopg import Connection

    from oceanway.contracts.events import (
        CaseResolutionApplied,
        FinalizationReconciliationCaseRequested,
        FinalizationReconciliationResolutionAppliedEvent,
    )
    from oceanway.reads.client import Reader
    from seapost.inbox.deciding import Arrived, Deciding

Verify = Callable[[Any, A, Any], Quad]
"""Requires what was found to fit the event; returns the identity of the object that was found."""


class CaseHandlers:
    """The three case events that an owner must confirm.

    Args:
        version: of the projection.
        reader: asks billing.
    """

    def __init__(self, version: str, reader: Reader) -> None:
        self._version = version
        self._reader = reader

    def read_chains(self, items: Sequence[Arrived]) -> list[object]:
        """The verified chain behind each resolution of a late case."""
        return self._ask(
            items, READ_LATE_SETTLEMENT_EXPOSURE_CHAIN_FOR_OPERATIONS, late_chain.question_of, _verified_chain
        )

    def read_decisions(self, items: Sequence[Arrived]) -> list[object]:
        """The verified decision behind each case request."""
        return self._ask(
            items,
            READ_BILLING_FINALIZATION_DECISION_FOR_OPERATIONS,
            documents.decision_question,
            _verified_decision,
        )

    def read_resolutions(self, items: Sequence[Arrived]) -> list[object]:
        """The verified fact behind each resolution of a finalization case, by the read for operations (SEC-13)."""
        return self._ask(
            items, READ_RESOLUTION_APPLIED_FOR_OPERATIONS, documents.resolution_question, _verified_resolution
        )

    def late_case_resolved(self, transaction: Connection[Any], event: CaseResolutionApplied, context: Deciding) -> None:
        """A late case ended; it may wait for its request or its cause, because its chain is verified (CASE-29)."""
        if context.received.correlation.causation_id != event.causation_event_id:
            raise refuse("payload and envelope name different causes")
        quad = late_chain.owner_fact(event)
        case = {
            "caseRef": event.case_ref,
            "dimensionId": event.dimension_id,
            "revision": event.to_revision,
            "kind": event.owner.kind,
            "factRef": quad.ref,
            "factDigest": quad.digest,
        }
        with refusing():
            store.late_resolved(
                transaction, version=self._version, envelope=context.envelope, case=case, answered=context.prepared
            )

    def case_requested(
        self, transaction: Connection[Any], event: FinalizationReconciliationCaseRequested, context: Deciding
    ) -> None:
        """A finalization case was asked for: it opens, is ended, or waits for its predecessor (CASE-07, CASE-08)."""
        envelope, generation = context.envelope, event.reconciliation_generation
        with refusing():
            known = store.case_known(transaction, version=self._version, envelope=envelope)
            requests, resolutions = documents.known_requests(known), documents.known_resolutions(known)
            requests[generation] = Request(context.received.event_id, event.reconciliation_case_ref)
            successor = None
            if generation > 1:
                identity = next(one.identity_document for one in known if one.generation == generation)
                successor = documents.pending_successor(
                    event,
                    _predecessor(identity),
                    event_id=str(context.received.event_id),
                    envelope=envelope,
                    envelope_sha256=context.envelope_sha256,
                    recorded_at=context.committed_at,
                ).canonical()
            store.case_request(
                transaction,
                version=self._version,
                envelope=envelope,
                successor=successor,
                receipt_ref=context.common["operations_projection_applied_receipt_ref"],
                cases=[documents.row_of(case) for case in decide(requests, resolutions)],
                answered=context.prepared,
            )

    def case_resolved(
        self,
        transaction: Connection[Any],
        event: FinalizationReconciliationResolutionAppliedEvent,
        context: Deciding,
    ) -> None:
        """Billing resolved a case: it ends, and the contiguous chain of waiting successors follows (CASE-11)."""
        quad = quad_of(event, "finalization_reconciliation_resolution_applied")
        with refusing():
            known = store.case_known(transaction, version=self._version, envelope=context.envelope)
            requests, resolutions = documents.known_requests(known), documents.known_resolutions(known)
            resolutions[event.reconciliation_generation] = Resolution(context.received.event_id, quad.ref, quad.digest)
            store.case_resolution(
                transaction,
                version=self._version,
                envelope=context.envelope,
                cases=[documents.row_of(case) for case in decide(requests, resolutions)],
                answered=context.prepared,
            )

    def _ask(
        self,
        items: Sequence[Arrived],
        operation: ReadOperation[A, R],
        question_of: Callable[[Any], A],
        verify: Verify[A],
    ) -> list[object]:
        """One `Answered` for each event, or its outcome; an owner that cannot be read raises for all of them."""
        asked: list[A | Reject] = []
        for item in items:
            try:
                asked.append(question_of(item.event))
            except Reject as refusal:
                asked.append(refusal)
        questions = [one for one in asked if not isinstance(one, Reject)]
        answers = iter(self._reader.call(operation, questions) if questions else ())
        return [
            one if isinstance(one, Reject) else _answered(operation, item.event, one, next(answers), verify)
            for item, one in zip(items, asked, strict=True)
        ]


def _answered(
    operation: ReadOperation[A, R], event: object, question: A, answer: R, verify: Verify[A]
) -> Answered | Reject | Retry:
    found: Any = getattr(answer, "answer")  # noqa: B009 - every answer of a read has this one field
    if isinstance(found, NotFound):
        # The event says that the fact exists, so the owner will know it again: nothing is written meanwhile (CASE-30).
        return Retry(f"{operation.name} does not find the fact of its own event", code=ErrorCode.OWNER_UNREADABLE)
    if found.result != "found":
        return refuse(f"{operation.name} answers {found.result}")
    try:
        quad = verify(event, question, found)
    except Reject as refusal:
        return refusal
    return Answered(operation.name, operation.purpose, quad, question.canonical(), answer.canonical())


def _verified_chain(event: CaseResolutionApplied, asked: ExposureChainQuestion, found: ExposureChainFound) -> Quad:
    late_chain.verify(event, asked, found)
    return late_chain.owner_fact(event)


def _verified_decision(event: FinalizationReconciliationCaseRequested, _asked: object, found: DecisionFound) -> Quad:
    documents.verify_decision(event, found.decision)
    return found.decision.quad()


def _verified_resolution(
    event: FinalizationReconciliationResolutionAppliedEvent, _asked: object, found: ResolutionFound
) -> Quad:
    documents.verify_resolution(event, found.resolution)
    return found.resolution.quad()


def _predecessor(identity: bytes) -> Quad:
    before = FinalizationReconciliationCaseIdentityReservation.decode(identity).predecessor
    if not isinstance(before, CasePredecessorDirect):
        raise refuse("a later generation has a predecessor")
    return quad_of(before, "finalization_case_identity_reservation")
