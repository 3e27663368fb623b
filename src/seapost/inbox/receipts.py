"""The texts of a consumer's answer: candidate, receipt and acknowledgement, each in canonical form.

They are written for every event, so they are filled into templates: every value in them is a name, version,
digest or id whose alphabet needs no escaping, and the fields of each template stand in canonical order. A
test holds them byte for byte to the contracts `ConsumerReceipt` and `ActiveConsumerAck`.

The database keeps the candidate, the reference and the time of the commit; receipt and acknowledgement
follow from them alone, so every redelivery gets the same bytes for ever (DLV-14, DLV-20).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Protocol

from seapost.contracts.ack import ack_bytes
from seapost.contracts.identifiers import write_timestamp
from seapost.contracts.receipt_registry import DEFAULT_RECEIPTS
from seapost.contracts.receipts import ConsumerReceipt
from seapost.model.outcome import Acknowledged


@dataclass(frozen=True, slots=True)
class ReceiptSubject:
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
        self._place = f'"destination":"{destination}","eventEnvelopeDigestAlgorithmVersion":"jcs-sha256-v1"'

    def reference(self, subject: ReceiptSubject) -> str:
        """Named after what it proves: one consumer, one event."""
        return f"{self._name}:{subject.event_id}"

    def candidate(self, subject: ReceiptSubject) -> bytes:
        """The canonical bytes that the receipt's digest covers."""
        return (
            f'{{"consumerName":"{self._name}","consumerReceiptDigestAlgorithmVersion":"jcs-sha256-v1",'
            f'"consumerReceiptSchemaVersion":"1",{self._tail(subject)}'
        ).encode()

    def answer(
        self, subject: ReceiptSubject, *, candidate: bytes, reference: str, committed_at: datetime
    ) -> Acknowledged:
        """Receipt and acknowledgement of a stored receipt.

        A candidate that another release wrote with other fields is read by its contract instead.
        """
        moment = write_timestamp(committed_at)
        if candidate != self.candidate(subject) or not _is_plain(reference):
            receipt = ConsumerReceipt.from_candidate(candidate, consumer_receipt_ref=reference, committed_at=moment)
            return Acknowledged(receipt.canonical(), ack_bytes(DEFAULT_RECEIPTS.of(receipt), receipt))
        quad = (
            f'"consumerReceiptDigest":"{sha256(candidate).hexdigest()}",'
            '"consumerReceiptDigestAlgorithmVersion":"jcs-sha256-v1",'
            f'"consumerReceiptRef":"{reference}","consumerReceiptSchemaVersion":"1",'
        )
        text = f'{{"committedAt":"{moment}","consumerName":"{self._name}",{quad}{self._tail(subject)}'
        ack = (
            f'{{"appliedReceipt":{{{quad}"kind":"consumer_receipt"}},"consumerName":"{self._name}",'
            f'{self._place},"eventEnvelopeSha256":"{subject.digest}","eventId":"{subject.event_id}"}}'
        )
        return Acknowledged(text.encode(), ack.encode())

    def _tail(self, subject: ReceiptSubject) -> str:
        return (
            f'{self._place},"eventEnvelopeSha256":"{subject.digest}","eventId":"{subject.event_id}",'
            f'"eventSchemaVersion":"{subject.schema_version}","eventType":"{subject.event_type}","outcome":"applied"}}'
        )


def _is_plain(text: str) -> bool:
    """Whether JSON writes the text as it is."""
    return text.isascii() and text.isprintable() and '"' not in text and "\\" not in text
