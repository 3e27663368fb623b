"""Renews the leases of calls that still run, and of nothing else (CLM-05, F14).

Authority: `delivery_renew_v1`; equality of attempt and token decides, not time (AMB-06).
States: a batch is registered while its call runs; a third into its lease it is renewed, and again after that.
Failures: a lease that a renewal does not name is lost; when all of a batch are, its call is cancelled, and lost ones
are left out of the settle in any case. A database that cannot be reached loses nothing: the fence has the last word.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from seapost.dispatcher.batch import Batch
from seapost.dispatcher.context import Context
from seapost.dispatcher.pulse import Pulse
from seapost.dispatcher.settings import DestinationSettings
from seapost.store import delivery
from seapost.telemetry.catalog import LogEvent
from seapost.telemetry.logging import get_logger

TICK_SECONDS_MIN: Final = 0.01
TICK_SECONDS_MAX: Final = 1.0
TICKS_PER_RENEWAL: Final = 8

_LOG: Final = get_logger("seapost.dispatcher")


class Leases:
    """The batches of this process whose call runs."""

    def __init__(self) -> None:
        self._running: dict[Batch, DestinationSettings] = {}

    @contextmanager
    def running(self, batch: Batch, settings: DestinationSettings) -> Generator[None]:
        """Have the batch renewed inside this block."""
        self._running[batch] = settings
        try:
            yield
        finally:
            del self._running[batch]

    def batches(self) -> list[tuple[Batch, DestinationSettings]]:
        """What runs now."""
        return list(self._running.items())

    def __contains__(self, batch: Batch) -> bool:
        """Whether the batch's call still runs."""
        return batch in self._running


@dataclass(frozen=True, slots=True)
class Renewal:
    """What one turn did, in deliveries."""

    renewed: int = 0
    lost: int = 0


class Renewer:
    """The loop that renews; one for the process, so that a renewal never waits for a call."""

    def __init__(self, context: Context, leases: Leases, renew_every_seconds: float) -> None:
        self._context = context
        self._leases = leases
        self._tick_seconds = min(max(renew_every_seconds / TICKS_PER_RENEWAL, TICK_SECONDS_MIN), TICK_SECONDS_MAX)
        self.pulse = Pulse("renew", context.clock)

    async def run(self) -> None:
        """Renew until cancelled."""
        while True:
            await self.run_once()
            self.pulse.expect(self._tick_seconds)
            await asyncio.sleep(self._tick_seconds)

    async def run_once(self) -> Renewal:
        """Renew what is due, one call per batch."""
        renewed = lost = 0
        for batch, settings in self._leases.batches():
            if self._context.clock() >= batch.renew_at and batch in self._leases:
                self.pulse.expect(self._context.settings.database_seconds_max)
                turn = await self._renew(batch, settings)
                renewed += turn.renewed
                lost += turn.lost
        return Renewal(renewed, lost)

    async def _renew(self, batch: Batch, settings: DestinationSettings) -> Renewal:
        held = batch.held()
        try:
            async with self._context.session() as connection:
                sent_at = self._context.clock()
                renewed = await delivery.renew(
                    connection,
                    destination=settings.name,
                    fences=[claim.fence for claim in held],
                    lease_seconds=settings.lease_seconds,
                )
        except Exception as error:  # noqa: BLE001 - no error of one batch may end the renewal of the others
            _LOG.warning(LogEvent.RENEW_FAILED, destination=settings.name, deliveries=len(held), exc_info=error)
            batch.renew_at = self._context.clock() + settings.renew_every_seconds / TICKS_PER_RENEWAL
            return Renewal()
        if batch not in self._leases:
            return Renewal(len(renewed))  # settled meanwhile: what the renewal does not name is not lost but done
        lost = batch.renewed(sent_at, renewed)
        if lost:
            _LOG.warning(LogEvent.LEASES_LOST, destination=settings.name, deliveries=lost)
        return Renewal(len(renewed), lost)
