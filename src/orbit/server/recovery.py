"""Recovers lost attempts every 10 s, whether or not anybody claims from their queues (TSK-12)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from orbit.model.limits import RECOVER_EVERY_SECONDS
from orbit.server.catalog import LogEvent
from seapost.telemetry.logging import get_logger

_log: Final = get_logger("orbit.server")


class Recovery:
    """The loop; `recover` recovers what is lost at that moment and returns how many attempts that were."""

    def __init__(self, recover: Callable[[], Awaitable[int]], *, every_seconds: float = RECOVER_EVERY_SECONDS) -> None:
        self._recover = recover
        self._every_seconds = every_seconds

    async def run(self) -> None:
        """Run until cancelled; a round that fails is logged, and the next one comes."""
        while True:
            _ = await self.run_once()
            await asyncio.sleep(self._every_seconds)

    async def run_once(self) -> int:
        """One round; 0 when it failed."""
        try:
            recovered = await self._recover()
        except Exception as error:  # noqa: BLE001 - whatever failed now may work in the next round
            _log.warning(LogEvent.RECOVER_FAILED, exc_info=error)
            return 0
        if recovered:
            _log.info(LogEvent.ATTEMPTS_RECOVERED, number=recovered)
        return recovered
