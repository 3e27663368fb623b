"""What metering answers: settlement inputs, whether they are current, and its consumer's receipts (REF-48, RCP-57).

A snapshot whose dimension stands under a conflict is answered as `conflicting` with the conflict fact, until the repair
(AMB-30). A receipt that an input is current is kept under its operation: whoever repeats the question while the input
is still current gets the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from oceanway.contracts.facts.metering import CurrentValidationReceipt
from oceanway.contracts.identity import det, quad_of
from oceanway.contracts.reads import Conflicting, NotFound
from oceanway.contracts.reads_metering import (
    READ_METERING_INPUT_PROCESSOR_CONSUMER_RECEIPT,
    READ_SETTLEMENT_INPUT_FOR_BILLING,
    VALIDATE_FOR_CATCH_UP_FENCE,
    VALIDATE_FOR_TRANSITION,
    MeteringReceiptAnswer,
    MeteringReceiptFound,
    MeteringReceiptQuestion,
    SettlementInputQuestion,
    SettlementInputValidation,
)
from oceanway.contracts.receipts.metering import MeteringInputProcessorConsumerReceipt
from oceanway.metering import store_reads
from oceanway.metering.consumer import new_inbox
from oceanway.metering.documents import ATTEMPT, QUAD, Document, Sealed, part, quad, read, seal
from seapost.contracts.canonical import encode
from seapost.contracts.digest import ALGORITHM
from seapost.contracts.identifiers import write_timestamp
from seapost.inbox.deciding import read_decided

if TYPE_CHECKING:
    from oceanway.contracts.reads import ReadOperation
    from oceanway.reads.call import Caller
    from oceanway.reads.server import Serving
    from seapost.database.pool import SyncPool
    from seapost.inbox.deciding import DecidingInbox

_DIMENSION: Final = (*ATTEMPT, "chargeDimensionKey", "settlementDimensionId")
_QUINT: Final = (*(f"settlementInputSnapshot{name}" for name in QUAD), "settlementInputStateVersion")
_RECEIPT: Final = "metering_input_processor_consumer_receipt"
_UNKNOWN: Final[Document] = {"result": "not_found"}
_NOT_FOUND: Final = encode({"answer": _UNKNOWN})


def register(serving: Serving, pool: SyncPool) -> None:
    """Serve every read of metering from this pool."""
    serving.register(READ_SETTLEMENT_INPUT_FOR_BILLING, _settlement_inputs(pool))
    for operation in (VALIDATE_FOR_CATCH_UP_FENCE, VALIDATE_FOR_TRANSITION):
        serving.register(operation, _validations(pool, operation))
    serving.register(READ_METERING_INPUT_PROCESSOR_CONSUMER_RECEIPT, _receipts(pool, new_inbox()))


def _settlement_inputs(
    pool: SyncPool,
) -> Callable[[Caller, Sequence[SettlementInputQuestion]], list[bytes]]:
    def answer(caller: Caller, arguments: Sequence[SettlementInputQuestion]) -> list[bytes]:
        _ = caller
        with pool.connection() as connection, connection.transaction():
            rows = store_reads.snapshots(connection, [one.settlement_input_snapshot_ref for one in arguments])
        return [_settlement_input(asked.to_json(), *row) for asked, row in zip(arguments, rows, strict=True)]

    return answer


def _settlement_input(asked: Document, document: bytes | None, conflict: bytes | None) -> bytes:
    """The snapshot, if it is exactly the one asked for; another under the same reference is not it."""
    snapshot = None if document is None else read(document)
    if snapshot is None or not _is_asked(asked, snapshot):
        return _NOT_FOUND
    if conflict is not None:
        fact = quad("settlementInputConflictFact", read(conflict))
        return encode({"answer": {"result": "conflicting", **fact}})
    return encode({"answer": {"result": "found", "snapshot": snapshot}})


def _is_asked(asked: Document, snapshot: Document) -> bool:
    names = (*_DIMENSION, *_QUINT)
    return part(asked, names) == part(snapshot, names)


def _validations(
    pool: SyncPool, operation: ReadOperation[Any, Any]
) -> Callable[[Caller, Sequence[SettlementInputValidation]], list[bytes]]:
    def answer(caller: Caller, arguments: Sequence[SettlementInputValidation]) -> list[bytes]:
        _ = caller
        asked = [one.to_json() for one in arguments]
        dimensions = [one.settlement_dimension_id for one in arguments]
        with pool.connection() as connection, connection.transaction():
            standing = store_reads.current(connection, dimensions)
            found = [_standing(one, *row) for one, row in zip(asked, standing, strict=True)]
            places = [at for at, one in enumerate(found) if one is None]
            made = [_receipt(operation.purpose, asked[at]) for at in places]
            issued = store_reads.issue(
                connection, dimensions=[dimensions[at] for at in places], documents=[one.data for one in made]
            )
            moved = [at for at, receipt in zip(places, issued, strict=True) if receipt is None]
            again = dict(zip(moved, store_reads.current(connection, [dimensions[at] for at in moved]), strict=True))
        for at, receipt in zip(places, issued, strict=True):
            if receipt is not None:
                found[at] = {"result": "current", "receipt": read(receipt)}
            else:  # it changed between the two statements
                found[at] = _standing(asked[at], *again[at])
        return [encode({"answer": one or _UNKNOWN}) for one in found]

    return answer


def _standing(asked: Document, document: bytes | None, conflict: bytes | None) -> Document | None:
    """What keeps a receipt from being issued; None where nothing does."""
    if document is None:
        return _UNKNOWN
    if conflict is not None:
        return {"result": "conflicting", "conflictFact": read(conflict)}
    current = read(document)
    if part(asked, _DIMENSION) != part(current, _DIMENSION):
        return _UNKNOWN
    if part(asked, _QUINT) == part(current, _QUINT):
        return None
    if asked["settlementInputStateVersion"] >= current["settlementInputStateVersion"]:
        return _UNKNOWN
    return {"result": "superseded", **part(current, _QUINT)}


def _receipt(purpose: str, asked: Document) -> Sealed:
    operation = asked["validationOperationId"]
    return seal(
        CurrentValidationReceipt,
        {
            "currentValidationReceiptRef": det("settlement_validation", purpose, operation),
            "purpose": purpose,
            "validationOperationId": operation,
            "subject": {"kind": "settlement_dimension", **part(asked, _DIMENSION)},
            "validatedQuint": {
                "ref": asked["settlementInputSnapshotRef"],
                "schemaVersion": asked["settlementInputSnapshotSchemaVersion"],
                "digestAlgorithmVersion": asked["settlementInputSnapshotDigestAlgorithmVersion"],
                "digest": asked["settlementInputSnapshotDigest"],
                "stateVersion": asked["settlementInputStateVersion"],
            },
            "result": "current",
            "issuedAt": write_timestamp(datetime.now(UTC)),
        },
    )


def _receipts(
    pool: SyncPool, inbox: DecidingInbox
) -> Callable[[Caller, Sequence[MeteringReceiptQuestion]], list[MeteringReceiptAnswer]]:
    def answer(caller: Caller, arguments: Sequence[MeteringReceiptQuestion]) -> list[MeteringReceiptAnswer]:
        _ = caller
        with pool.connection() as connection, connection.transaction():
            found: list[Any] = [
                read_decided(
                    connection,
                    inbox,
                    quad=quad_of(asked, _RECEIPT),
                    event_id=asked.event_id,
                    event_digest=asked.event_envelope_sha256,
                )
                for asked in arguments
            ]
        return [_receipt_answer(asked, one) for asked, one in zip(arguments, found, strict=True)]

    return answer


def _receipt_answer(asked: MeteringReceiptQuestion, found: Any) -> MeteringReceiptAnswer:  # noqa: ANN401 - a receipt, a conflict or nothing
    """Found only where receipt and source are exactly what the caller expects (RCP-57)."""
    if found is None:
        return MeteringReceiptAnswer(answer=NotFound())
    is_expected = (
        isinstance(found, MeteringInputProcessorConsumerReceipt)
        and asked.event_envelope_digest_algorithm_version == ALGORITHM
        and found.source == asked.source
    )
    return MeteringReceiptAnswer(answer=MeteringReceiptFound(receipt=found) if is_expected else Conflicting())
