"""The answer of a consumer to an event: candidate, receipt and acknowledgement, each in canonical form.

The database keeps the candidate, the reference and the time of the commit; receipt and acknowledgement
follow from them alone, so every redelivery gets the same bytes for ever (DLV-14, DLV-20). The usual texts are filled
into templates (`contracts.receipt_text`).
"""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import NamedTuple, Protocol

from seapost.contracts.ack import ack_bytes
from seapost.contracts.identifiers import write_timestamp
from seapost.contracts.receipt_registry import DEFAULT_RECEIPTS
from seapost.contracts.receipt_text import ConsumerReceiptTexts, consumer_receipt_texts, hex_digest
from seapost.contracts.receipts import ConsumerReceipt
from seapost.model.outcome import Acknowledged


class ReceiptSubject(NamedTuple):
    """The event that a receipt is about: its id in canonical spelling, its pair, its digest in hexadecimal."""

    event_id: str
    event_type: str
    schema_version: str
    digest: str


class ReceiptWriter(Protocol):
    """Writes one receipt type; `receipt_type` and `schema_version` must be what the member expects."""

    receipt_type: str
    schema_version: str

    def reference(self, subject: ReceiptSubject) -> str:
        """The reference of a new receipt."""
        ...

    def candidate(self, subject: ReceiptSubject) -> bytes:
        """The canonical bytes that the receipt's digest covers."""
        ...

    def answer(
        self, subject: ReceiptSubject, *, candidate: bytes, reference: str, committed_at: datetime
    ) -> Acknowledged:
        """Receipt and acknowledgement of a stored receipt."""
        ...


class ConsumerReceiptWriter:
    """Writes `ConsumerReceipt@1` for one consumer and destination (AMB-38)."""

    receipt_type = "ConsumerReceipt"
    schema_version = "1"

    def __init__(self, consumer_name: str, destination: str) -> None:
        self._name = consumer_name
        self._destination = destination

    def reference(self, subject: ReceiptSubject) -> str:
        """Named after what it proves: one consumer, one event."""
        return f"{self._name}:{subject.event_id}"

    def candidate(self, subject: ReceiptSubject) -> bytes:
        """The canonical bytes that the receipt's digest covers."""
        return self._texts(subject).candidate(subject.event_id.encode(), subject.digest.encode())

    def answer(
        self, subject: ReceiptSubject, *, candidate: bytes, reference: str, committed_at: datetime
    ) -> Acknowledged:
        """Receipt and acknowledgement of a stored receipt.

        A candidate that another release wrote with other fields is read by its contract instead.
        """
        moment = _moment(committed_at)
        texts = self._texts(subject)
        event_id, event_digest = subject.event_id.encode(), subject.digest.encode()
        if candidate != texts.candidate(event_id, event_digest) or not _is_plain(reference):
            receipt = ConsumerReceipt.from_candidate(candidate, consumer_receipt_ref=reference, committed_at=moment)
            return Acknowledged(receipt.canonical(), ack_bytes(DEFAULT_RECEIPTS.of(receipt), receipt))
        digest, named = hex_digest(candidate), reference.encode()
        return Acknowledged(
            texts.receipt(event_id, event_digest, receipt_digest=digest, reference=named, moment=moment.encode()),
            texts.ack(event_id, event_digest, receipt_digest=digest, reference=named),
        )

    def _texts(self, subject: ReceiptSubject) -> ConsumerReceiptTexts:
        return consumer_receipt_texts(self._name, self._destination, subject.event_type, subject.schema_version)


@lru_cache(maxsize=64)  # one transaction commits many receipts at one time
def _moment(committed_at: datetime) -> str:
    return write_timestamp(committed_at)


def _is_plain(text: str) -> bool:
    """Whether JSON writes the text as it is."""
    return text.isascii() and text.isprintable() and '"' not in text and "\\" not in text
