"""What a delivery must be before any transaction is opened for it; pure, and in one fixed order.

| Found | Outcome |
|---|---|
| digest algorithm unknown here | non_retryable, version_unsupported |
| the bytes do not have the stated digest | non_retryable, digest_conflict |
| no canonical envelope | non_retryable, envelope_invariant_broken |
| the envelope is another event than the delivery says | non_retryable, identity_conflict |
| delivery set version not known here yet | retryable, dependency_unavailable |
| delivery set version known with another digest | non_retryable, digest_conflict |
| no such member, or it is another consumer's | non_retryable, identity_conflict |
| the member expects another receipt type | retryable, dependency_unavailable: this consumer is too old or too new |
| no handler for the exact pair of type and version | non_retryable, schema_unknown |
| the payload breaks its class | non_retryable, schema_invalid |

The digest covers the exact bytes and is checked before anything is parsed (F36).
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from seapost.contracts.digest import ALGORITHM
from seapost.contracts.envelope import Envelope, read_envelope
from seapost.contracts.events import Event
from seapost.inbox.directory import MemberDirectory
from seapost.inbox.inbox import Handler, Inbox
from seapost.inbox.receipts import ReceiptSubject
from seapost.inbox.received import Received
from seapost.model.delivery_set import Member
from seapost.model.errors import ContractError
from seapost.model.outcome import ErrorCode, NonRetryable, Outcome, Retryable
from seapost.transport.protocol import IncomingDelivery


@dataclass(frozen=True, slots=True)
class Accepted:
    """A delivery that may be applied.

    Attributes:
        candidate: the canonical bytes of the receipt to write when the event is new.
    """

    delivery: IncomingDelivery
    event: Event
    received: Received
    handler: Handler
    subject: ReceiptSubject
    candidate: bytes


@dataclass(frozen=True, slots=True)
class Refused:
    """A delivery that is not applied; `rule` and `pointer` say where a document broke, for the log."""

    outcome: Outcome
    rule: str = ""
    pointer: str = ""


_CONFLICT: Final = Refused(NonRetryable(ErrorCode.DIGEST_CONFLICT), "event_digest")
_IDENTITY: Final = Refused(NonRetryable(ErrorCode.IDENTITY_CONFLICT), "event_identity")
_ALGORITHM: Final = Refused(NonRetryable(ErrorCode.VERSION_UNSUPPORTED), "digest_algorithm")


def examine(inbox: Inbox, directory: MemberDirectory, delivery: IncomingDelivery) -> Accepted | Refused:
    """Judge one delivery; never raises."""
    if delivery.digest_algorithm != ALGORITHM:
        return _ALGORITHM
    if not hmac.compare_digest(sha256(delivery.envelope).digest(), delivery.digest):
        return _CONFLICT
    try:
        envelope = read_envelope(delivery.envelope)
    except ContractError as error:
        return Refused(NonRetryable(ErrorCode.ENVELOPE_INVARIANT_BROKEN), error.rule, error.pointer)
    stated = (delivery.event_id, delivery.event_type, delivery.schema_version)
    if stated != (envelope.event_id, envelope.event_type, envelope.event_schema_version):
        return _IDENTITY
    member = directory.find(delivery.definition, envelope.event_type, envelope.event_schema_version, inbox.destination)
    if not isinstance(member, Member):
        return Refused(member, "member")
    if member.consumer_name != inbox.name:
        return _IDENTITY
    if (member.receipt_type, member.receipt_schema_version) != (
        inbox.receipts.receipt_type,
        inbox.receipts.schema_version,
    ):
        return Refused(Retryable(ErrorCode.DEPENDENCY_UNAVAILABLE), "receipt_type")
    return _understand(inbox, delivery, envelope)


def _understand(inbox: Inbox, delivery: IncomingDelivery, envelope: Envelope) -> Accepted | Refused:
    """Find the handler by the exact pair and read the payload with its class (SET-39)."""
    handler = inbox.handlers.get((envelope.event_type, envelope.event_schema_version))
    if handler is None:
        return Refused(NonRetryable(ErrorCode.SCHEMA_UNKNOWN), "unknown_event")
    try:
        event = handler.event.decode(envelope.payload)
    except ContractError as error:
        return Refused(NonRetryable(ErrorCode.SCHEMA_INVALID), error.rule, error.pointer)
    subject = ReceiptSubject(
        str(envelope.event_id), envelope.event_type, envelope.event_schema_version, delivery.digest.hex()
    )
    return Accepted(
        delivery=delivery,
        event=event,
        received=Received(
            event_id=envelope.event_id,
            event_type=envelope.event_type,
            schema_version=envelope.event_schema_version,
            producer=envelope.producer,
            aggregate=envelope.aggregate,
            tenant=envelope.tenant,
            correlation=envelope.correlation,
            occurred_at=envelope.occurred_at,
            attempt_number=delivery.attempt_number,
        ),
        handler=handler,
        subject=subject,
        candidate=inbox.receipts.candidate(subject),
    )
