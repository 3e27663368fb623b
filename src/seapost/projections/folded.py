"""An event on its way into a projection, opened once and only as far as somebody asks."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from seapost.contracts.envelope import Envelope, open_envelope, whole
from seapost.contracts.envelope_text import EnvelopeText
from seapost.inbox.deciding import Arrived
from seapost.inbox.receipts import ReceiptSubject
from seapost.inbox.received import Received
from seapost.store.projections import AggregateKey

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from seapost.contracts.events import Event
    from seapost.inbox.inbox import Handler
    from seapost.store.projection_feed import SourceEvent

FEEDING_ATTEMPT = 1
"""What a handler is told of an event that no delivery brought."""


class Folded:
    """An event and its place in the projection; what a mutation of many is given.

    Attributes:
        event: the payload.
        event_id, key, revision: which event it is, of which aggregate, and which revision.
        envelope: the canonical bytes.
        handler: what its pair is handled by.
    """

    def __init__(
        self, event_id: UUID, event: Event, opened: EnvelopeText, envelope_sha256: str, handler: Handler
    ) -> None:
        self.event_id = event_id
        self.event = event
        self.envelope_sha256 = envelope_sha256
        self.handler = handler
        self._opened = opened
        if opened.head is not None and opened.tail is not None:
            identity, kind, revision = opened.head.group("key", "kind", "revision")
            self.key = AggregateKey(opened.tail[1].decode(), kind.decode(), identity.decode())
            self.revision = int(revision)
        else:
            aggregate = self.received.aggregate
            self.key = AggregateKey(self.received.producer, aggregate.kind, aggregate.id)
            self.revision = aggregate.revision

    @classmethod
    def open(cls, source: SourceEvent, handlers: Mapping[tuple[str, str], Handler]) -> Folded | None:
        """Read an event of the source; None when no handler knows its pair.

        Raises:
            ContractError: the envelope or the payload breaks its contract.
        """
        opened = open_envelope(source.envelope)
        handler = handlers.get((opened.event_type, opened.event_schema_version))
        if handler is None:
            return None
        event = handler.event.decode_canonical(opened.payload, opened.payload_text)
        return cls(source.event_id, event, opened, source.digest.hex(), handler)

    @classmethod
    def of(cls, arrived: Arrived, handler: Handler) -> Folded:
        """The event of a delivery."""
        opened = open_envelope(arrived.envelope)
        return cls(arrived.received.event_id, arrived.event, opened, arrived.envelope_sha256, handler)

    @property
    def envelope(self) -> bytes:
        """The canonical bytes of the complete event."""
        return self._opened.text

    @cached_property
    def subject(self) -> ReceiptSubject:
        """What its receipt is about."""
        opened = self._opened
        return ReceiptSubject(opened.event_id, opened.event_type, opened.event_schema_version, self.envelope_sha256)

    @cached_property
    def whole(self) -> Envelope:
        """The complete envelope."""
        return whole(self._opened)

    @cached_property
    def received(self) -> Received:
        """The envelope for a handler that asks for it."""
        return Received.of(self.whole, FEEDING_ATTEMPT)

    @property
    def arrived(self) -> Arrived:
        """The event as a `prepare` is given it."""
        return Arrived(self.event, self.received, self.envelope, self.envelope_sha256)
