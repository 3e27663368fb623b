"""The identities of finalization cases: reserved before they are needed, one for each generation of a fence (CASE-01).

Authority: the primary key of fence and generation. A repetition by whatever work returns the first identity, so that
one reserved for a work that was superseded meanwhile is simply found again (CASE-12, AMB-54).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oceanway.contracts.facts.cases import FinalizationReconciliationCaseIdentityReservation
from oceanway.contracts.reads import Conflicting, NotFound
from oceanway.contracts.reads_operations import (
    CaseIdentityAnswer,
    CaseIdentityExisting,
    CaseIdentityFound,
    CaseIdentityQuestion,
    CaseIdentityReservationAnswer,
    CaseIdentityReserved,
)
from oceanway.operations import store_identity as store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psycopg import Connection


def reserve(
    connection: Connection[Any], candidate: FinalizationReconciliationCaseIdentityReservation
) -> CaseIdentityReservationAnswer:
    """Reserve an identity in the caller's transaction, or return the first one (TX-25).

    Raises:
        DigestMismatch: the candidate's digest is not that of its content.
    """
    candidate.verify()
    result, stored = store.reserve(connection, document=candidate.canonical())
    if stored is None:
        return CaseIdentityReservationAnswer(answer=Conflicting())
    reservation = FinalizationReconciliationCaseIdentityReservation.decode(stored)
    if result == "reserved":
        return CaseIdentityReservationAnswer(answer=CaseIdentityReserved(reservation=reservation))
    return CaseIdentityReservationAnswer(answer=CaseIdentityExisting(reservation=reservation))


def read(connection: Connection[Any], questions: Sequence[CaseIdentityQuestion]) -> list[CaseIdentityAnswer]:
    """The reserved identities, each compared with everything that its question states."""
    keys = [(one.billing_finalization_fence_id, one.reconciliation_generation) for one in questions]
    documents = store.read(connection, keys=keys)
    return [_answer(question, document) for question, document in zip(questions, documents, strict=True)]


def _answer(question: CaseIdentityQuestion, document: bytes | None) -> CaseIdentityAnswer:
    if document is None:
        return CaseIdentityAnswer(answer=NotFound())
    reservation = FinalizationReconciliationCaseIdentityReservation.decode(document)
    if all(getattr(reservation, name) == getattr(question, name) for name in CaseIdentityQuestion.model_fields):
        return CaseIdentityAnswer(answer=CaseIdentityFound(reservation=reservation))
    return CaseIdentityAnswer(answer=Conflicting())
