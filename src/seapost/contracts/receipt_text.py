"""The texts of `ConsumerReceipt@1` and its acknowledgement, written and recognised without building the documents.

Every value in them is a name, version, digest, id or time whose alphabet needs no escaping, and the fields of each
template stand in canonical order. Consumers write them for every event (`inbox.receipts`); the dispatcher, which knows
from the frozen member and the stored event what the receipt must say, writes the same text once more and compares
(`verification`). Property tests hold them byte for byte to the contracts `ConsumerReceipt` and `ActiveConsumerAck`.
"""

from __future__ import annotations

import re
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from typing import Final, NamedTuple

from seapost.contracts.identifiers import check_event_type, check_name, check_version

TEXTS_MAX: Final = 1024

_DIGEST_LENGTH: Final = 64
_MOMENT_LENGTH: Final = len("2026-03-29T01:30:00.000000Z")

_MOMENT: Final = re.compile(rb"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z")
_REFERENCE: Final = re.compile(rb"(?! )[ !#-\[\]-~]{1,200}(?<! )")

_ALGORITHM: Final = "jcs-sha256-v1"
_BEFORE_MOMENT: Final = b'{"committedAt":"'
_BEFORE_REFERENCE: Final = f'","consumerReceiptDigestAlgorithmVersion":"{_ALGORITHM}","consumerReceiptRef":"'.encode()
_AFTER_REFERENCE: Final = b'","consumerReceiptSchemaVersion":"1",'
_ACK_START: Final = b'{"appliedReceipt":{"consumerReceiptDigest":"'
_BEFORE_ID: Final = b'","eventId":"'
_END: Final = b'"}'


class ConsumerReceiptTexts(NamedTuple):
    """What never changes in the texts of one consumer, destination and exact pair of event type and schema version."""

    candidate_head: bytes
    receipt_name: bytes
    place: bytes
    tail: bytes
    ack_place: bytes
    reference_head: bytes

    def candidate(self, event_id: bytes, event_digest: bytes) -> bytes:
        """The canonical bytes that the receipt's digest covers; `event_digest` is in hexadecimal."""
        return b"".join((self.candidate_head, event_digest, _BEFORE_ID, event_id, self.tail))

    def receipt(
        self, event_id: bytes, event_digest: bytes, *, receipt_digest: bytes, reference: bytes, moment: bytes
    ) -> bytes:
        """The canonical receipt; `reference` is one that JSON writes as it is, the digests are in hexadecimal."""
        return b"".join(
            (
                _BEFORE_MOMENT,
                moment,
                self.receipt_name,
                receipt_digest,
                _BEFORE_REFERENCE,
                reference,
                _AFTER_REFERENCE,
                self.place,
                event_digest,
                _BEFORE_ID,
                event_id,
                self.tail,
            )
        )

    def ack(self, event_id: bytes, event_digest: bytes, *, receipt_digest: bytes, reference: bytes) -> bytes:
        """The canonical acknowledgement that names this receipt."""
        return b"".join(
            (
                _ACK_START,
                receipt_digest,
                _BEFORE_REFERENCE,
                reference,
                self.ack_place,
                event_digest,
                _BEFORE_ID,
                event_id,
                _END,
            )
        )

    def variables(self, receipt: bytes, event_id: bytes) -> tuple[bytes, bytes] | None:
        """Reference and time of a receipt that has this shape; None when they are not legal or not found.

        The reference of our own writer, which names consumer and event, is legal without a look at its characters.

        Says nothing about the rest of the text: write it again with `receipt` and compare.
        """
        start = len(_BEFORE_MOMENT)
        moment = receipt[start : start + _MOMENT_LENGTH]
        start += _MOMENT_LENGTH + len(self.receipt_name) + _DIGEST_LENGTH + len(_BEFORE_REFERENCE)
        reference = receipt[start : receipt.find(b'"', start)]
        is_usual = reference == self.reference_head + event_id
        if not (is_usual or _REFERENCE.fullmatch(reference)) or not _is_moment(moment):
            return None
        return reference, moment


@lru_cache(maxsize=TEXTS_MAX)
def consumer_receipt_texts(
    consumer_name: str, destination: str, event_type: str, schema_version: str
) -> ConsumerReceiptTexts:
    """The texts of one consumer, destination and pair.

    Raises:
        ContractError: an argument breaks its rule; a legal one JSON writes as it is.
    """
    check_name(consumer_name, "/consumerName")
    check_name(destination, "/destination")
    check_event_type(event_type)
    check_version(schema_version)
    place = (
        f'"destination":"{destination}","eventEnvelopeDigestAlgorithmVersion":"{_ALGORITHM}","eventEnvelopeSha256":"'
    )
    head = (
        f'{{"consumerName":"{consumer_name}","consumerReceiptDigestAlgorithmVersion":"{_ALGORITHM}",'
        f'"consumerReceiptSchemaVersion":"1",{place}'
    )
    return ConsumerReceiptTexts(
        candidate_head=head.encode(),
        receipt_name=f'","consumerName":"{consumer_name}","consumerReceiptDigest":"'.encode(),
        place=place.encode(),
        tail=f'","eventSchemaVersion":"{schema_version}","eventType":"{event_type}","outcome":"applied"}}'.encode(),
        ack_place=(
            f'","consumerReceiptSchemaVersion":"1","kind":"consumer_receipt"}},"consumerName":"{consumer_name}",{place}'
        ).encode(),
        reference_head=f"{consumer_name}:".encode(),
    )


def hex_digest(candidate: bytes) -> bytes:
    """The SHA-256 of a candidate in hexadecimal, as the texts carry it."""
    return sha256(candidate).hexdigest().encode()


def is_event_id(text: bytes) -> bool:
    """Whether the canonical text of a UUID is that of an event id: version 7 of the usual variant."""
    return text[14:15] == b"7" and text[19:20] in b"89ab"


@lru_cache(maxsize=TEXTS_MAX)  # one transaction commits many receipts at one time
def _is_moment(text: bytes) -> bool:
    """Whether the text is a timestamp in the one spelling of contracts, of a date that exists."""
    if _MOMENT.fullmatch(text) is None:
        return False
    try:
        _ = datetime.fromisoformat(text.decode())
    except ValueError:
        return False
    return True
