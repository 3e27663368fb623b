"""Claims for one destination: where to look first, when to look everywhere, and when to look at suspects.

Authority: `delivery_claim_v1`, committed before it returns (CLM-04); the hint lives here, in memory, and proves
nothing (AMB-48).
States: a low-water hint for each fair lane (`available_at` of the last row claimed there) that skips dead index entries
under an old snapshot; a sweep without it is due at start, after a reconnected listener, and at a bounded interval.
Failures: a claim that fails leaves at most leases that nobody calls; recovery takes them back.

Suspects are deliveries whose last attempts ended without an answer about them. They are claimed apart, in batches that
shrink, so that one event that kills its consumer or worker exhausts nobody else (F20). One such batch of a destination
is out at a time: of two deliveries that are each alone in a call, but at once, both would be blamed. The database sees
to that for all processes; here is only remembered not to ask while our own is out. They are always swept.

A claim smaller than the number of lanes with something due begins where the last one ended, so that lanes take turns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from seapost.dispatcher.batch import Batch
from seapost.dispatcher.context import Context
from seapost.dispatcher.settings import DestinationSettings
from seapost.model.delivery import Claim
from seapost.store import delivery

SWEEP_PAUSE_FACTOR: Final = 20.0


class SweepTimer:
    """When the next look at everything is due: at once, then after the interval or 20 times the last one's duration.

    So sweeps cost at most a twentieth of the time, whatever lies dead in the index.
    """

    def __init__(self, interval_seconds: float, clock: Callable[[], float]) -> None:
        self._interval_seconds = interval_seconds
        self._clock = clock
        self._due_at = clock()

    def due(self) -> bool:
        """Whether to sweep now."""
        return self._clock() >= self._due_at

    def swept(self, duration_seconds: float) -> None:
        """A sweep has ended; it took so long."""
        pause = max(self._interval_seconds, SWEEP_PAUSE_FACTOR * duration_seconds)
        self._due_at = self._clock() + pause

    def force(self) -> None:
        """Sweep with the next claim."""
        self._due_at = self._clock()


class Hint:
    """The low-water hint of one destination, a moment for each of its fair lanes."""

    def __init__(self, interval_seconds: float, clock: Callable[[], float]) -> None:
        self.timer = SweepTimer(interval_seconds, clock)
        self._lows: dict[int, datetime] = {}

    def low(self) -> list[datetime | None] | None:
        """Where the next claim starts to look in each lane from 0 on; None: everywhere."""
        if self.timer.due() or not self._lows:
            return None
        return [self._lows.get(lane) for lane in range(max(self._lows) + 1)]

    def claimed(self, low: Sequence[datetime | None] | None, claims: Sequence[Claim], duration_seconds: float) -> None:
        """Note what a claim that looked from `low` brought, oldest first.

        The hint of a lane follows the last row claimed there, back as well as forth: what a sweep found below lies
        above that row. A lane that brought nothing keeps its hint.
        """
        self._lows.update({claim.lane: claim.available_at for claim in claims})
        if low is None:
            self.timer.swept(duration_seconds)


def next_lane(first_lane: int, claims: Sequence[Claim]) -> int:
    """The lane after the last one that a claim served, when it went round from `first_lane` on."""
    lanes = {claim.lane for claim in claims}
    wrapped = [lane for lane in lanes if lane < first_lane]
    return max(wrapped or lanes, default=first_lane - 1) + 1


class Claimer:
    """The claims of one destination; one at a time."""

    def __init__(self, context: Context, settings: DestinationSettings) -> None:
        self._context = context
        self._settings = settings
        self._hint = Hint(settings.sweep_seconds, context.clock)
        self._suspects = SweepTimer(settings.sweep_seconds, context.clock)
        self._suspects_last = False
        self._suspects_out = False
        self._first_lanes = {False: 0, True: 0}  # of ordinary claims and of suspects

    def sweep(self) -> None:
        """Look everywhere with the next claim: notifications may have been lost (F72)."""
        self._hint.timer.force()
        self._suspects.force()

    async def run_once(self, limit: int, *, probing: bool = False) -> Batch | None:
        """Claim up to `limit` deliveries, ordinary ones and suspects in turn; None when nothing is due.

        A probe prefers an ordinary delivery: a suspect would tell more about itself than about the consumer.
        """
        suspects_first = self._look_at_suspects() and not self._suspects_last and not probing
        if suspects_first and (batch := await self._claim_suspects(limit)) is not None:
            return batch
        batch = await self._claim_ordinary(limit)
        if batch is None and not suspects_first and self._look_at_suspects():
            batch = await self._claim_suspects(limit)
        return batch

    def finished(self, batch: Batch) -> None:
        """A batch is settled; if it was one of suspects, the next may go out."""
        if batch.suspects:
            self._suspects_out = False

    def _look_at_suspects(self) -> bool:
        return self._suspects.due() and not self._suspects_out

    async def _claim_ordinary(self, limit: int) -> Batch | None:
        low = self._hint.low()
        sent_at, claims = await self._claim(limit, low, suspects=False)
        self._hint.claimed(low, claims, self._context.clock() - sent_at)
        self._suspects_last = False
        return self._batch(sent_at, claims, suspects=False)

    async def _claim_suspects(self, limit: int) -> Batch | None:
        sent_at, claims = await self._claim(limit, None, suspects=True)
        self._suspects_last = self._suspects_out = bool(claims)
        if not claims:  # where there was one there may be more: then they stay due
            self._suspects.swept(self._context.clock() - sent_at)
        return self._batch(sent_at, claims, suspects=True)

    async def _claim(
        self, limit: int, low: Sequence[datetime | None] | None, *, suspects: bool
    ) -> tuple[float, list[Claim]]:
        async with self._context.session() as connection:
            sent_at = self._context.clock()
            claims = await delivery.claim(
                connection,
                destination=self._settings.name,
                limit=limit,
                owner=self._context.owner,
                lease_seconds=self._settings.lease_seconds,
                low=low,
                suspects=suspects,
                members=self._context.members,
                first_lane=self._first_lanes[suspects],
            )
        self._first_lanes[suspects] = next_lane(self._first_lanes[suspects], claims)
        if claims:
            self._context.metrics.claimed(self._settings.name, len(claims))
        return sent_at, claims

    def _batch(self, sent_at: float, claims: list[Claim], *, suspects: bool) -> Batch | None:
        if not claims:
            return None
        settings = self._settings
        return Batch(claims, sent_at, settings.lease_seconds, settings.renew_every_seconds, suspects)
