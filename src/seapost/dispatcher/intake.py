"""The claim turn of one destination: its lanes come here for the next batch, one at a time.

Authority: who holds the turn claims, sleeps and wakes for all lanes; so hint, breaker, rate limit and declaration
have one user.
States: turn free → held (claim, or rest until something is due) → a batch is handed out and the turn is free again.
Failures: what a claim raises is logged and tried again after a jittered backoff; the order to stop ends the wait.
"""

from __future__ import annotations

import asyncio
from typing import Final

from seapost.dispatcher.batch import Batch
from seapost.dispatcher.breaker import Breaker, BreakerState
from seapost.dispatcher.claim import Claimer
from seapost.dispatcher.context import Context
from seapost.dispatcher.pulse import Pulse
from seapost.dispatcher.rate import TokenBucket
from seapost.dispatcher.session import backoff_seconds
from seapost.dispatcher.settings import DestinationSettings
from seapost.dispatcher.wake import Wake
from seapost.telemetry.catalog import LogEvent
from seapost.telemetry.logging import get_logger

PAUSE_SECONDS_MAX: Final = 1.0

_LOG: Final = get_logger("seapost.dispatcher")


class Intake:
    """Hands out batches of one destination until the order to stop."""

    def __init__(
        self, context: Context, settings: DestinationSettings, *, claimer: Claimer, wake: Wake, breaker: Breaker
    ) -> None:
        self._context = context
        self._settings = settings
        self._claimer = claimer
        self._wake = wake
        self._breaker = breaker
        self._bucket = (
            None
            if settings.rate_per_second is None
            else TokenBucket(rate_per_second=settings.rate_per_second, clock=context.clock)
        )
        self._turn = asyncio.Lock()
        self._working = 0
        self._failures = 0

    async def next_batch(self, pulse: Pulse) -> Batch | None:
        """The next claimed batch; None when the dispatcher stops. Call `finished` when it is settled."""
        pulse.rest()
        async with self._turn:
            while not self._context.stopping.requested.is_set():
                pulse.expect(self._context.settings.database_seconds_max + PAUSE_SECONDS_MAX)
                batch = await self._try()
                if batch is not None:
                    self._working += 1
                    await self._wake.claimed(lanes_left=self._working < self._settings.lanes)
                    return batch
            pulse.rest()
            await self._wake.withdraw()
            return None

    def finished(self, batch: Batch) -> None:
        """A batch is settled; its lane is free again."""
        self._working -= 1
        self._claimer.finished(batch)

    async def _try(self) -> Batch | None:
        """One claim, or one wait for a reason to claim."""
        limit, wait_seconds = self._allowed()
        if limit == 0:
            await self._wake.pause(min(wait_seconds, PAUSE_SECONDS_MAX))
            return None
        epoch = self._breaker.begin()
        try:
            batch = await self._claimer.run_once(limit, probing=self._breaker.state is BreakerState.HALF_OPEN)
        except Exception as error:  # noqa: BLE001 - whatever it is, the destination goes on
            self._breaker.abandoned(epoch)
            self._failures += 1
            _LOG.warning(LogEvent.CLAIM_FAILED, destination=self._settings.name, exc_info=error)
            await self._wake.pause(backoff_seconds(self._failures, self._context.rng))
            return None
        self._failures = 0
        if batch is None:
            self._breaker.abandoned(epoch)
            await self._wake.rest()
            return None
        batch.epoch = epoch
        if self._bucket is not None:
            self._bucket.take(len(batch.claims))
        return batch

    def _allowed(self) -> tuple[int, float]:
        """How many deliveries may be claimed now, and if none, how long to wait."""
        limit = min(self._settings.batch_size, self._breaker.allowance())
        if limit == 0:
            return 0, self._breaker.wait_seconds()
        if self._bucket is None:
            return limit, 0.0
        return min(limit, self._bucket.available()), self._bucket.wait_seconds()
