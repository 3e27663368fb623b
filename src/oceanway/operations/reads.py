"""What operations answers to other owners: identities of cases, and the receipts of its projector (RCP-04, CASE-03)."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from oceanway.contracts.events import EVENTS
from oceanway.contracts.identity import quad_of
from oceanway.contracts.reads import Conflicting, EventBinding, NotFound
from oceanway.contracts.reads_operations import (
    READ_FINALIZATION_RECONCILIATION_CASE_IDENTITY,
    READ_OPERATIONS_PROJECTION_APPLIED_RECEIPT,
    RESERVE_FINALIZATION_RECONCILIATION_CASE_IDENTITY,
    CaseIdentityAnswer,
    CaseIdentityQuestion,
    CaseIdentityReservationAnswer,
    CaseIdentityReservationQuestion,
    ProjectionReceiptAnswer,
    ProjectionReceiptFound,
    ProjectionReceiptQuestion,
)
from oceanway.contracts.receipts.operations import OperationsProjectionAppliedReceipt
from oceanway.operations import identity
from oceanway.operations import store_receipts as store
from oceanway.operations.projector import new_projection
from oceanway.reads.errors import CallRefused
from seapost.inbox.deciding import read_decided

if TYPE_CHECKING:
    from psycopg import Connection

    from oceanway.reads.call import Caller
    from oceanway.reads.server import Serving
    from seapost.database.pool import SyncPool

_DISPATCHERS: Final = {
    (event.event_type, event.event_schema_version): f"dispatch.{event.event_producer}" for event in EVENTS
}
"""The workload that dispatches an event: that of its producer, and no other asks for its receipt (RCP-06)."""

_QUAD: Final = "operations_projection_applied_receipt"


def register(serving: Serving, pool: SyncPool) -> None:
    """Serve the reads of operations from its database."""

    def reserve(
        _caller: Caller, questions: Sequence[CaseIdentityReservationQuestion]
    ) -> list[CaseIdentityReservationAnswer]:
        answers: list[CaseIdentityReservationAnswer] = []
        for question in questions:  # each is a transaction of its own: one that fails takes no other with it
            with pool.connection() as connection, connection.transaction():
                answers.append(identity.reserve(connection, question.candidate))
        return answers

    def read(_caller: Caller, questions: Sequence[CaseIdentityQuestion]) -> list[CaseIdentityAnswer]:
        with pool.connection() as connection, connection.transaction():
            return identity.read(connection, questions)

    def read_receipts(caller: Caller, questions: Sequence[ProjectionReceiptQuestion]) -> list[ProjectionReceiptAnswer]:
        for question in questions:
            if caller.workload != _DISPATCHERS.get((question.event_type, question.event_schema_version)):
                reason = "The workload does not dispatch this event"
                raise CallRefused(HTTPStatus.FORBIDDEN, "forbidden", reason)
        with pool.connection() as connection, connection.transaction():
            return [read_receipt(connection, question) for question in questions]

    serving.register(RESERVE_FINALIZATION_RECONCILIATION_CASE_IDENTITY, reserve)
    serving.register(READ_FINALIZATION_RECONCILIATION_CASE_IDENTITY, read)
    serving.register(READ_OPERATIONS_PROJECTION_APPLIED_RECEIPT, read_receipts)


def read_receipt(connection: Connection[Any], question: ProjectionReceiptQuestion) -> ProjectionReceiptAnswer:
    """One receipt; which projection it must prove says the member of the frozen definition alone (RCP-05, RCP-08)."""
    expected = store.expected_receipt(
        connection,
        key=store.MemberKey(
            question.delivery_set_version,
            question.delivery_set_definition_schema_version,
            question.delivery_set_definition_digest_algorithm_version,
            question.delivery_set_definition_digest,
            question.event_type,
            question.event_schema_version,
            question.destination,
            question.consumer_name,
        ),
    )
    receipt_type = OperationsProjectionAppliedReceipt
    stated = (question.projection_name, question.projection_version)
    if expected != (receipt_type.__name__, receipt_type.schema_version, *stated):
        return ProjectionReceiptAnswer(answer=Conflicting())
    found = read_decided(
        connection,
        new_projection(question.projection_version).inbox,
        quad=quad_of(question, _QUAD),
        event_id=question.event_id,
        event_digest=question.event_envelope_sha256,
    )
    if found is None:
        return ProjectionReceiptAnswer(answer=NotFound())
    if not isinstance(found, receipt_type) or not _is_for(found, question):
        return ProjectionReceiptAnswer(answer=Conflicting())
    return ProjectionReceiptAnswer(answer=ProjectionReceiptFound(receipt=found))


def _is_for(receipt: OperationsProjectionAppliedReceipt, question: ProjectionReceiptQuestion) -> bool:
    names = (*EventBinding.model_fields, "destination", "consumer_name", "projection_name", "projection_version")
    return all(getattr(receipt, name) == getattr(question, name) for name in names)
