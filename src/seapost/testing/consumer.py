"""A consumer for tests: it keeps what it was given, answers with real receipts, and fails when it is told to."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

from seapost.contracts.envelope import Envelope, read_envelope
from seapost.contracts.events import Event
from seapost.inbox.receipts import ConsumerReceiptWriter, ReceiptSubject
from seapost.model.outcome import Acknowledged, ErrorCode, NonRetryable, Outcome, Retryable
from seapost.transport.protocol import DeliveryRequest, IncomingDelivery

if TYPE_CHECKING:
    from seapost.inbox.receipts import ReceiptWriter

EventT = TypeVar("EventT", bound=Event)


class FakeConsumer:
    """Stands where a real consumer would: it has an inbox, in memory, and writes receipts that verify.

    Like a real one it applies each event once, however often it is delivered, and answers a redelivery with the first
    receipt.

    Args:
        destination: the destination it serves.
        consumer: its name in the delivery set; by default the destination's.
        receipts: writes its receipts; by default `ConsumerReceipt@1`.

    Attributes:
        received: the events it has applied, each once, in order.
        calls: deliveries it was called with, redeliveries included.
    """

    def __init__(self, destination: str, *, consumer: str | None = None, receipts: ReceiptWriter | None = None) -> None:
        self.destination = destination
        self.consumer = consumer or destination
        self.received: list[Envelope] = []
        self.calls = 0
        self._receipts = receipts or ConsumerReceiptWriter(self.consumer, destination)
        self._script: deque[Retryable | NonRetryable] = deque()
        self._first: dict[UUID, Acknowledged] = {}

    def events(self, event: type[EventT]) -> list[EventT]:
        """The applied events of one class, in order."""
        pair = (event.event_type, event.event_schema_version)
        return [
            event.decode(envelope.payload)
            for envelope in self.received
            if (envelope.event_type, envelope.event_schema_version) == pair
        ]

    def retry_next(self, times: int = 1, *, code: ErrorCode = ErrorCode.DEPENDENCY_UNAVAILABLE) -> None:
        """Answer the next deliveries with "try again later", without any effect."""
        self._script.extend(Retryable(code) for _ in range(times))

    def reject_next(self, times: int = 1, *, code: ErrorCode = ErrorCode.SCHEMA_INVALID) -> None:
        """Answer the next deliveries with "never", so that they end in quarantine."""
        self._script.extend(NonRetryable(code) for _ in range(times))

    def lose_next(self, times: int = 1) -> None:
        """Apply the next deliveries, and lose the answer on the way: the redelivery must find the first receipt."""
        self._script.extend(Retryable(ErrorCode.TIMEOUT, answered=False) for _ in range(times))

    async def receive(self, request: DeliveryRequest) -> Sequence[Outcome]:
        """Answer each delivery of a call, in order; what an in-process transport calls."""
        return [self._answer(delivery) for delivery in request.deliveries]

    def _answer(self, delivery: IncomingDelivery) -> Outcome:
        self.calls += 1
        scripted = self._script.popleft() if self._script else None
        if isinstance(scripted, NonRetryable) or (scripted is not None and scripted.answered):
            return scripted
        known = self._first.get(delivery.event_id)
        if known is None:
            known = self._first[delivery.event_id] = self._apply(delivery)
        return known if scripted is None else scripted

    def _apply(self, delivery: IncomingDelivery) -> Acknowledged:
        envelope = read_envelope(delivery.envelope)
        self.received.append(envelope)
        subject = ReceiptSubject(
            str(envelope.event_id), envelope.event_type, envelope.event_schema_version, envelope.digest.hex()
        )
        return self._receipts.answer(
            subject,
            candidate=self._receipts.candidate(subject),
            reference=self._receipts.reference(subject),
            committed_at=datetime.now(UTC),
        )
