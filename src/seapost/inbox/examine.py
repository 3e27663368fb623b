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
| the member names another projection | retryable, dependency_unavailable: this consumer is not the one meant (SET-32) |
| no handler for the exact pair of type and version | non_retryable, schema_unknown |
| the payload breaks its class | non_retryable, schema_invalid |

The digest covers the exact bytes and is checked before anything is parsed (F36).
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final
from uuid import UUID

from seapost.contracts.digest import ALGORITHM
from seapost.contracts.envelope import Envelope, open_envelope, whole
from seapost.contracts.envelope_text import EnvelopeText
from seapost.contracts.events import Event
from seapost.inbox.directory import MemberDirectory
from seapost.inbox.inbox import Handler, Inbox
from seapost.inbox.receipts import ReceiptSubject
from seapost.inbox.received import Received
from seapost.model.delivery_set import Member
from seapost.model.errors import ContractError
from seapost.model.outcome import ErrorCode, NonRetryable, Outcome, Retryable
from seapost.transport.protocol import IncomingDelivery


@dataclass(slots=True)
class Accepted:
    """A delivery that may be applied.

    Attributes:
        candidate: the canonical bytes of the receipt to write when the event is new; none where its handler makes it.
        is_prepared, prepared, refusal: what a deciding inbox learned before the transaction.
    """

    delivery: IncomingDelivery
    event: Event
    handler: Handler
    subject: ReceiptSubject
    candidate: bytes
    opened: EnvelopeText
    is_prepared: bool = field(default=False, init=False)
    prepared: object = field(default=None, init=False)
    refusal: Exception | None = field(default=None, init=False)
    _envelope: Envelope | None = field(default=None, init=False)
    _received: Received | None = field(default=None, init=False)

    @property
    def event_id(self) -> UUID:
        """The event's id, which the envelope and the delivery agree on."""
        return self.delivery.event_id

    @property
    def traceparent(self) -> str | None:
        """The trace context of the producer's transaction."""
        return self.opened.traceparent

    @property
    def received(self) -> Received:
        """The envelope for a handler that asks for it; put together once, when it is asked for."""
        if self._received is None:
            self._received = Received.of(self.envelope, self.delivery.attempt_number)
        return self._received

    @property
    def envelope(self) -> Envelope:
        """The complete envelope; put together once, when it is asked for."""
        if self._envelope is None:
            self._envelope = whole(self.opened)
        return self._envelope

    def prepare(self, result: object) -> None:
        """Keep what was prepared for the handler."""
        self.is_prepared, self.prepared = True, result

    def refuse(self, refusal: Exception) -> None:
        """Keep why the handler shall not run, should the event turn out to be new."""
        self.is_prepared, self.refusal = True, refusal


@dataclass(frozen=True, slots=True)
class Refused:
    """A delivery that is not applied; `rule` and `pointer` say where a document broke, for the log."""

    outcome: Outcome
    rule: str = ""
    pointer: str = ""


_CONFLICT: Final = Refused(NonRetryable(ErrorCode.DIGEST_CONFLICT), "event_digest")
_IDENTITY: Final = Refused(NonRetryable(ErrorCode.IDENTITY_CONFLICT), "event_identity")
_ALGORITHM: Final = Refused(NonRetryable(ErrorCode.VERSION_UNSUPPORTED), "digest_algorithm")


class Examiner:
    """Judges the deliveries of one request; what member and pair decide is looked up once for all that share them."""

    def __init__(self, inbox: Inbox, directory: MemberDirectory) -> None:
        self._inbox = inbox
        self._directory = directory
        self._lines: dict[tuple[int, str, str], Handler | Refused] = {}

    def examine(self, delivery: IncomingDelivery) -> Accepted | Refused:
        """Judge one delivery; never raises. The request must live as long as the examiner."""
        if delivery.digest_algorithm != ALGORITHM:
            return _ALGORITHM
        if not hmac.compare_digest(sha256(delivery.envelope).digest(), delivery.digest):
            return _CONFLICT
        try:
            opened = open_envelope(delivery.envelope)
        except ContractError as error:
            return Refused(NonRetryable(ErrorCode.ENVELOPE_INVARIANT_BROKEN), error.rule, error.pointer)
        stated = (delivery.event_id.int, delivery.event_type, delivery.schema_version)
        if stated != (int(opened.event_id.replace("-", ""), 16), opened.event_type, opened.event_schema_version):
            return _IDENTITY
        line = (id(delivery.definition), delivery.event_type, delivery.schema_version)
        handler = self._lines.get(line)
        if handler is None:
            handler = self._lines[line] = self._find(delivery)
        if isinstance(handler, Refused):
            return handler
        try:
            event = handler.event.decode_canonical(opened.payload, opened.payload_text)
        except ContractError as error:
            return Refused(NonRetryable(ErrorCode.SCHEMA_INVALID), error.rule, error.pointer)
        subject = ReceiptSubject(opened.event_id, opened.event_type, opened.event_schema_version, delivery.digest.hex())
        return Accepted(delivery, event, handler, subject, self._inbox.receipts.candidate(subject), opened)

    def _find(self, delivery: IncomingDelivery) -> Handler | Refused:
        """The handler for the member that the delivery names and its exact pair (SET-39)."""
        inbox = self._inbox
        member = self._directory.find(
            delivery.definition, delivery.event_type, delivery.schema_version, inbox.destination
        )
        if not isinstance(member, Member):
            return Refused(member, "member")
        if member.consumer_name != inbox.name:
            return _IDENTITY
        if (member.receipt_type, member.receipt_schema_version) != (
            inbox.receipts.receipt_type,
            inbox.receipts.schema_version,
        ):
            return Refused(Retryable(ErrorCode.DEPENDENCY_UNAVAILABLE), "receipt_type")
        if member.projection != inbox.projection:
            return Refused(Retryable(ErrorCode.DEPENDENCY_UNAVAILABLE), "projection")
        handler = inbox.handlers.get((delivery.event_type, delivery.schema_version))
        return Refused(NonRetryable(ErrorCode.SCHEMA_UNKNOWN), "unknown_event") if handler is None else handler
