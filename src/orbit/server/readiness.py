"""Whether requests are served (OPS-05): the database answers, and its schema is the one this code was written for.

States of what is known: nothing → checking → fresh (up to 1 s) → ageing (a check runs behind the requests, which still
go by the old result) → stale (after 2 s: requests wait for the check). An unreachable database is a reason like any
other; a check that takes too long is one too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Final

from orbit.model.codes import ErrorCode
from orbit.model.errors import OrbitError
from orbit.model.limits import READINESS_KEPT_SECONDS
from orbit.server.catalog import LogEvent
from seapost.telemetry.logging import get_logger

FRESH_SECONDS: Final = READINESS_KEPT_SECONDS / 2
CHECK_SECONDS_MAX: Final = 3.0
UNREACHABLE: Final = "the database cannot be reached"

_log: Final = get_logger("orbit.server")

Check = Callable[[], Awaitable[tuple[str, ...]]]


class Readiness:
    """Keeps the result of a check for at most 2 seconds.

    `check` returns the reasons against serving, none when all is well; what it raises counts as an unreachable
    database. `clock` gives seconds.
    """

    def __init__(self, check: Check, *, clock: Callable[[], float] = monotonic) -> None:
        self._check = check
        self._clock = clock
        self._reasons: tuple[str, ...] = ()
        self._at: float | None = None
        self._running: asyncio.Task[None] | None = None

    @property
    def known(self) -> tuple[str, ...] | None:
        """The reasons as last found, at most 2 s ago; None when somebody must look. An ageing result is renewed."""
        if self._at is None:
            return None
        age = self._clock() - self._at
        if age >= READINESS_KEPT_SECONDS:
            return None
        if age >= FRESH_SECONDS:
            _ = self._start()
        return self._reasons

    async def reasons(self) -> tuple[str, ...]:
        """The reasons against serving; checks when what is known is stale."""
        known = self.known
        if known is None:
            await asyncio.shield(self._start())
            known = self._reasons
        return known

    async def close(self) -> None:
        """End a check that runs."""
        if self._running is not None:
            _ = self._running.cancel()
            _ = await asyncio.gather(self._running, return_exceptions=True)

    def _start(self) -> asyncio.Task[None]:
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._run())
        return self._running

    async def _run(self) -> None:
        try:
            async with asyncio.timeout(CHECK_SECONDS_MAX):
                found = await self._check()
        except OrbitError as error:
            # A database that is only busy is there, and nothing says that its schema has changed.
            found = self._reasons if error.code is ErrorCode.SERVICE_BUSY else (UNREACHABLE,)
        except Exception as error:  # noqa: BLE001 - whatever keeps the answer from us, the service is not ready
            found = (UNREACHABLE,)
            _log.warning(LogEvent.NOT_READY, reasons=found, exc_info=error)
        if found != self._reasons:
            _log.info(LogEvent.NOT_READY if found else LogEvent.READY, reasons=found)
        self._reasons, self._at = found, self._clock()
