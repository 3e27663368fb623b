"""What carries deliveries, and what both ends of it agree on (REF-11).

Authority: a transport moves bytes and believes nothing. The claim's frozen member says who must receive;
the consumer resolves the member's coordinates in its own registry; the dispatcher verifies the receipt.
A transport therefore returns outcomes as they were said, and never raises for a bad peer: whatever goes
wrong between two processes is a `Retryable`.

`answered` is the one judgement a transport makes. It is False when the call was cut after the consumer may
have begun to work, so that one of these deliveries may have been the cause; they are then retried in ever
smaller batches. It is True when the consumer spoke, and also when it was never reached at all.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol
from uuid import UUID

from seapost.contracts.digest import ALGORITHM
from seapost.model.delivery import Claim
from seapost.model.delivery_set import DefinitionQuad
from seapost.model.outcome import Outcome


class IncomingDelivery(NamedTuple):
    """One delivery as a consumer is given it: nothing in it is trusted before it was checked.

    Attributes:
        definition: the delivery set definition that the producer's database froze for the event.
        digest: 32 bytes, the stated `eventEnvelopeSha256`.
        envelope: the exact bytes of the envelope.
    """

    event_id: UUID
    attempt_id: int
    attempt_number: int
    definition: DefinitionQuad
    event_type: str
    schema_version: str
    digest_algorithm: str
    digest: bytes
    envelope: bytes


@dataclass(frozen=True, slots=True)
class DeliveryRequest:
    """A batch for one consumer of one destination."""

    destination: str
    consumer_name: str
    deliveries: tuple[IncomingDelivery, ...]


Receiver = Callable[[DeliveryRequest], Awaitable[Sequence[Outcome]]]
"""What an inbox offers: one outcome for each delivery of the request, in its order."""


class Transport(Protocol):
    """Carries claims of one destination to their consumer."""

    async def deliver(self, claims: Sequence[Claim], *, timeout_seconds: float) -> Sequence[Outcome]:
        """One outcome for each claim, in order, within about `timeout_seconds`.

        Never raises for a bad peer; only cancellation passes.
        """
        ...

    async def aclose(self) -> None:
        """Give back what the transport holds; it is not used afterwards."""
        ...


@dataclass(frozen=True, slots=True)
class Parcel:
    """A request and the positions of its deliveries among the claims it was built from."""

    positions: tuple[int, ...]
    request: DeliveryRequest


def pack(claims: Sequence[Claim], *, envelope_bytes_max: int | None = None) -> Iterator[Parcel]:
    """Build the requests for `claims`: one for each consumer and, with a limit, for each part of the bytes.

    Claims of one destination nearly always name one consumer; two definitions may name different ones.
    A single envelope above the limit still travels, alone.
    """
    by_consumer: dict[tuple[str, str], list[int]] = {}
    for position, claim in enumerate(claims):
        by_consumer.setdefault((claim.destination, claim.member.consumer_name), []).append(position)
    for (destination, consumer_name), positions in by_consumer.items():
        for part in _parts(claims, positions, envelope_bytes_max):
            deliveries = tuple(_incoming(claims[position]) for position in part)
            yield Parcel(tuple(part), DeliveryRequest(destination, consumer_name, deliveries))


def _parts(claims: Sequence[Claim], positions: list[int], envelope_bytes_max: int | None) -> Iterator[list[int]]:
    if envelope_bytes_max is None:
        yield positions
        return
    part: list[int] = []
    size = 0
    for position in positions:
        added = len(claims[position].envelope)
        if part and size + added > envelope_bytes_max:
            yield part
            part, size = [], 0
        part.append(position)
        size += added
    yield part


def _incoming(claim: Claim) -> IncomingDelivery:
    fence, member = claim.fence, claim.member
    return IncomingDelivery(
        fence.event_id,
        fence.attempt_id,
        claim.attempt_number,
        member.definition,
        member.event_type,
        member.schema_version,
        ALGORITHM,
        claim.event_digest,
        claim.envelope,
    )
