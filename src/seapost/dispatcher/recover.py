"""Recovers leases that expired by the database's clock (CLM-07, AMB-25, F15).

Authority: `delivery_recover_v1`, the only one that reads a clock about a lease (AMB-06).
States: one bounded batch per transaction, again at once while it was full, then a jittered pause. Every dispatcher
recovers for all destinations; who dies is recovered by whoever lives.
Failures: logged, tried again after a backoff.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from seapost.dispatcher.context import Context
from seapost.dispatcher.pulse import Pulse
from seapost.dispatcher.session import backoff_seconds
from seapost.store import delivery
from seapost.telemetry.catalog import LogEvent
from seapost.telemetry.logging import get_logger

PAUSE_JITTER: Final = 0.2

_LOG: Final = get_logger("seapost.dispatcher")


class Recoverer:
    """The loop that recovers; `on_recovered` is told each destination that has something due again."""

    def __init__(self, context: Context, on_recovered: Callable[[str], None]) -> None:
        self._context = context
        self._on_recovered = on_recovered
        self.pulse = Pulse("recover", context.clock)

    async def run(self) -> None:
        """Recover until cancelled."""
        failures = 0
        every_seconds = self._context.settings.recover_every_seconds
        while True:
            try:
                while sum((await self.run_once()).values()) >= self._context.settings.recover_limit:
                    pass
                failures = 0
                pause = every_seconds * self._context.rng.uniform(1.0 - PAUSE_JITTER, 1.0)
            except Exception as error:  # noqa: BLE001 - whatever it is, recovery goes on
                failures += 1
                _LOG.warning(LogEvent.RECOVER_FAILED, exc_info=error)
                pause = max(every_seconds, backoff_seconds(failures, self._context.rng))
            self.pulse.expect(pause)
            await asyncio.sleep(pause)

    async def run_once(self) -> dict[str, int]:
        """Recover one batch; return the number of deliveries per destination."""
        settings = self._context.settings
        self.pulse.expect(settings.database_seconds_max)
        async with self._context.session() as connection:
            recovered = await delivery.recover(
                connection, limit=settings.recover_limit, delay_seconds=settings.recover_delay_seconds
            )
        for destination, number in recovered.items():
            self._context.metrics.recovered(destination, number)
            _LOG.warning(LogEvent.LEASES_RECOVERED, destination=destination, deliveries=number)
            self._on_recovered(destination)
        return recovered
