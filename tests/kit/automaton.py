"""The delivery automaton as a pure model: what each verb must answer, and where every delivery must then be.

It knows nothing of tables, and moves by `kit/transitions.py` alone. The state machine of `tests/db` lets it run beside
the real database.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from seapost.model.delivery import Claim, DeliveryStatus
from tests.kit.transitions import (
    ACKNOWLEDGED,
    DUE,
    EXPIRED,
    HELD,
    LEASED,
    MANDATORY,
    PROVEN,
    QUARANTINED,
    TABLE,
    Facts,
    Transition,
    Verb,
)

Key = tuple[UUID, str]


@dataclass
class Lease:
    """Who holds a delivery, until when, and how many were claimed with it."""

    attempt_id: int
    token: UUID
    expires_at: datetime
    company: int


@dataclass
class Delivery:
    """One delivery: its state, and the counts that the kernel keeps of it."""

    created_at: datetime
    available_at: datetime | None
    status: DeliveryStatus | None = None
    attempts: int = 0
    failures: int = 0
    losses: int = 0
    lease: Lease | None = None

    def move(self, verb: Verb, facts: Facts) -> None:
        """Go where the table says; a lease is kept only while leased."""
        line = TABLE.answer(self.status, verb, facts)
        assert isinstance(line, Transition), f"{verb} of a delivery that is {self.status}: {line}"
        self.status = line.target
        if line.target is not LEASED:
            self.lease = None

    def leave(self, status: str) -> None:
        """Give up the lease for a terminal state."""
        verb, facts = {ACKNOWLEDGED: (Verb.ACKNOWLEDGE, PROVEN), QUARANTINED: (Verb.QUARANTINE, HELD)}[
            DeliveryStatus(status)
        ]
        self.move(verb, facts)

    def wait(self, verb: Verb, facts: Facts, due: datetime) -> None:
        """Give up the lease and be pending again."""
        self.move(verb, facts)
        self.available_at = due


class Automaton:
    """Every delivery of one database, by event and destination."""

    def __init__(self, now: datetime) -> None:
        self.now = now
        self.deliveries: dict[Key, Delivery] = {}
        self.events: dict[UUID, tuple[str, ...]] = {}

    def append(self, event_id: UUID, destinations: tuple[str, ...]) -> None:
        """A new event owes a delivery to each destination."""
        self.events[event_id] = destinations
        for destination in destinations:
            delivery = self.deliveries[event_id, destination] = Delivery(self.now, self.now)
            delivery.move(Verb.APPEND, MANDATORY)

    def claimable(self, destination: str, limit: int, *, suspects: bool) -> list[Key]:
        """What a claim must return, in its order; of a destination one batch of suspects is out at a time."""
        if suspects and self.suspects_out(destination):
            return []
        due = sorted(
            (delivery.available_at, delivery.created_at, key[0])
            for key, delivery in self.deliveries.items()
            if key[1] == destination
            and delivery.available_at is not None
            and delivery.status == "pending"
            and delivery.available_at <= self.now
            and (delivery.losses > 0) is suspects
        )
        if suspects and due:
            limit = max(1, limit >> min(3 * self.deliveries[due[0][2], destination].losses, 30))
        return [(event_id, destination) for _, _, event_id in due[:limit]]

    def suspects_out(self, destination: str) -> bool:
        """Whether an unexpired lease holds a suspect of the destination."""
        return any(
            key[1] == destination
            and delivery.losses > 0
            and delivery.lease is not None
            and delivery.lease.expires_at > self.now
            for key, delivery in self.deliveries.items()
        )

    def lease(self, claim: Claim, lease: timedelta) -> None:
        """A claim has been given out."""
        delivery = self.deliveries[claim.fence.event_id, claim.destination]
        delivery.move(Verb.CLAIM, DUE)
        delivery.available_at = None
        delivery.attempts += 1
        delivery.lease = Lease(claim.fence.attempt_id, claim.fence.token, self.now + lease, claim.company)

    def held(self, claim: Claim) -> Delivery | None:
        """The delivery, if this claim still holds it."""
        delivery = self.deliveries[claim.fence.event_id, claim.destination]
        lease = delivery.lease
        if lease is None or (lease.attempt_id, lease.token) != (claim.fence.attempt_id, claim.fence.token):
            return None
        return delivery

    def retry(self, delivery: Delivery, delay: timedelta, *, counted: bool, lost: bool) -> None:
        """The attempt ended as retryable."""
        assert delivery.lease is not None
        delivery.failures += counted and (not lost or delivery.lease.company == 1)
        delivery.losses = delivery.losses + 1 if lost else 0
        delivery.wait(Verb.RETRY, HELD, self.now + delay)

    def recover(self, delay: timedelta) -> dict[str, int]:
        """End every expired lease; how many per destination."""
        counts: dict[str, int] = {}
        for (_, destination), delivery in self.deliveries.items():
            if delivery.lease is not None and delivery.lease.expires_at <= self.now:
                delivery.failures += delivery.lease.company == 1
                delivery.losses += 1
                delivery.wait(Verb.RECOVER, EXPIRED, self.now + delay)
                counts[destination] = counts.get(destination, 0) + 1
        return counts

    def published(self) -> set[UUID]:
        """The events whose every destination has acknowledged."""
        return {
            event_id
            for event_id, destinations in self.events.items()
            if all(self.deliveries[event_id, name].status == "acknowledged" for name in destinations)
        }
