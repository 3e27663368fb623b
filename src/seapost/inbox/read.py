"""The targeted read of one receipt: `found`, `not_found` or `conflicting`, and nothing else (RCP-07, RCP-09).

The caller names the complete quad and everything it expects the receipt to be about; the expected values
come from its own frozen member and event, never from a receipt (RCP-05). There is no list, no latest and
no search.
"""

from __future__ import annotations

import hmac
from typing import Annotated, Final, Literal
from uuid import UUID

from pydantic import Field

from seapost.contracts.contract import Contract
from seapost.contracts.digest import ALGORITHM
from seapost.contracts.fields import Digest, EventId, EventType, Identifier, Label, Name, Version
from seapost.inbox.decided import DecidedReceipts
from seapost.inbox.receipts import ReceiptSubject, ReceiptWriter
from seapost.inbox.receive import Receiving
from seapost.store import inbox as store

TEXT_LENGTH_MAX: Final = 65_536


class ReceiptReadRequest(Contract):
    """The complete identity of one receipt, as the caller expects it."""

    destination: Name
    consumer_name: Name
    event_id: EventId
    event_type: EventType
    event_schema_version: Version
    event_envelope_digest_algorithm_version: Label
    event_envelope_sha256: Digest
    receipt_type: Label
    receipt_ref: Identifier
    receipt_schema_version: Version
    receipt_digest_algorithm_version: Label
    receipt_digest: Digest


class ReceiptReadResult(Contract):
    """The answer; receipt and acknowledgement are canonical JSON texts and present only when found."""

    result: Literal["found", "not_found", "conflicting"]
    receipt: Annotated[str, Field(max_length=TEXT_LENGTH_MAX)] | None = None
    ack: Annotated[str, Field(max_length=TEXT_LENGTH_MAX)] | None = None


NOT_FOUND: Final = ReceiptReadResult(result="not_found")
CONFLICTING: Final = ReceiptReadResult(result="conflicting")


async def read_receipt(receiving: Receiving, request: ReceiptReadRequest) -> ReceiptReadResult:
    """Read one receipt of this inbox.

    Raises:
        psycopg.Error: the database cannot be asked.
    """
    inbox = receiving.inbox
    writer = inbox.receipts
    subject = ReceiptSubject(
        request.event_id, request.event_type, request.event_schema_version, request.event_envelope_sha256
    )
    async with receiving.pool.connection() as connection:
        stored = await store.read(
            connection,
            consumer=inbox.key,
            event_id=UUID(request.event_id),
            event_digest=bytes.fromhex(subject.digest),
            receipt_ref=request.receipt_ref,
            receipt_digest=bytes.fromhex(request.receipt_digest),
        )
    if stored.result == "not_found":
        return NOT_FOUND
    if stored.receipt_ref is None or stored.candidate is None or stored.committed_at is None:
        return CONFLICTING
    expected = (inbox.destination, inbox.name, ALGORITHM, ALGORITHM, writer.receipt_type, writer.schema_version)
    stated = (
        request.destination,
        request.consumer_name,
        request.event_envelope_digest_algorithm_version,
        request.receipt_digest_algorithm_version,
        request.receipt_type,
        request.receipt_schema_version,
    )
    if stated != expected or not _is_about(writer, subject, stored.candidate):
        return CONFLICTING
    answer = writer.answer(
        subject, candidate=stored.candidate, reference=stored.receipt_ref, committed_at=stored.committed_at
    )
    return ReceiptReadResult(result="found", receipt=answer.receipt.decode(), ack=answer.ack.decode())


def _is_about(writer: ReceiptWriter, subject: ReceiptSubject, candidate: bytes) -> bool:
    """Whether the stored candidate is the one expected of this event."""
    if isinstance(writer, DecidedReceipts):
        return writer.is_about(subject, candidate)
    # The candidate covers type, version, destination and consumer: equal bytes are equal in all of them.
    return hmac.compare_digest(candidate, writer.candidate(subject))
