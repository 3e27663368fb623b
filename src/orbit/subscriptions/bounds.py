"""Where claims of this process begin to look (LSE-35): hints that spare the walk over dead index entries.

An acknowledged delivery leaves entries in the indexes of ready and of leased deliveries until vacuum removes them,
which an old snapshot prevents; a claim that began at the beginning would walk them all again. Three floors avoid that:

- *lease floor*, per subscription: when this process last recycled; what ran out before then is recycled;
- *ready floor*, per subscription: the lowest sequence that the last claim leased;
- *held floor*, per connection: the earliest deadline among its leases that this process has not seen end. It is exact,
  because only the process that holds a connection leases under its id.

They live in the process only. Another process, an operator or a backoff may make something ready below the floors, so
a claim without bounds runs first, then at least every 2 s, and at once when a bounded claim delivered nothing, then at
most once per second. That claim alone is what guarantees delivery.

Everything here belongs to one event loop; the clock is that of the process.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from orbit.model.limits import UNBOUNDED_CLAIM_SECONDS, UNBOUNDED_CLAIM_SECONDS_MIN
from orbit.model.states import PullReason
from orbit.store.deliveries import EARLIEST, LATEST, UNBOUNDED, ClaimBounds

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable
    from datetime import datetime

    from orbit.store.deliveries import Claim


@dataclass(slots=True)
class _Subscription:
    """What this process knows of a subscription.

    Attributes:
        swept_at: when the last claim without bounds ran; None before the first.
        connections: open connections; with the last one the knowledge goes.
    """

    lease_floor: datetime = EARLIEST
    ready_floor: int = 0
    swept_at: float | None = None
    connections: int = 0


@dataclass(slots=True)
class ConnectionBounds:
    """The bounds of one connection; made by `Bounds.connection`."""

    connection_id: str
    _subscription: _Subscription
    _clock: Callable[[], float]
    _held: dict[str, datetime] = field(default_factory=dict)
    _bounded: bool = False
    _came_back_empty: bool = False
    _greeted: bool = False

    def next(self) -> ClaimBounds:
        """Bounds of the next claim, or of the look whether one is worth while."""
        if not self._greeted or self._sweep_is_due():
            return UNBOUNDED
        held_floor = min(self._held.values(), default=LATEST)
        return ClaimBounds(self._subscription.lease_floor, held_floor, self._subscription.ready_floor)

    def claimed(self, claim: Claim) -> None:
        """Learn from a claim. One that failed teaches nothing, and unless it rolled back its connection ends."""
        known = self._subscription
        self._greeted = True
        self._bounded = claim.bounded
        self._came_back_empty = not claim.deliveries
        if not self._bounded:
            known.swept_at = self._clock()
        if claim.reason is PullReason.PAUSED:
            return
        known.lease_floor = max(known.lease_floor, claim.claimed_at)
        self._held = {one: deadline for one, deadline in self._held.items() if deadline > claim.claimed_at}
        if claim.deliveries:
            known.ready_floor = claim.deliveries[0].event_sequence
            for leased in claim.deliveries:
                self._held[leased.delivery_id] = leased.lease_expires_at

    def settled(self, delivery_ids: Iterable[str]) -> None:
        """These deliveries hold no lease any more."""
        for delivery_id in delivery_ids:
            self._held.pop(delivery_id, None)

    @property
    def again_at_once(self) -> bool:
        """Whether the last claim was a bounded one that delivered nothing, and one without bounds may follow now."""
        return self._bounded and self._came_back_empty and self._sweep_is_due()

    def _sweep_is_due(self) -> bool:
        swept_at = self._subscription.swept_at
        if swept_at is None:
            return True
        empty = self._bounded and self._came_back_empty
        return self._clock() - swept_at >= (UNBOUNDED_CLAIM_SECONDS_MIN if empty else UNBOUNDED_CLAIM_SECONDS)


class Bounds:
    """The bounds of one process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._subscriptions: dict[str, _Subscription] = {}

    @contextmanager
    def connection(self, subscription_id: str, connection_id: str) -> Generator[ConnectionBounds]:
        """Keep bounds for a connection until the block ends.

        Args:
            subscription_id: what it serves.
            connection_id: its id, new for every connection.
        """
        known = self._subscriptions.setdefault(subscription_id, _Subscription())
        known.connections += 1
        try:
            yield ConnectionBounds(connection_id, known, self._clock)
        finally:
            known.connections -= 1
            if known.connections == 0:
                del self._subscriptions[subscription_id]
