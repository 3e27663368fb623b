"""When a destination has nothing to do: declare, look again, wait, and look again (design of the kernel, F72).

Authority: polling. The declaration of sleep only asks appends to notify, and a notification is only a hint.
States: awake → claimed nothing → declared (a session lock on the listening connection) → claim once more → wait for a
notification or 5, 50, then 500 ms, with a claim between → … → busy: the declaration is withdrawn.
A declaration is refused while an append looks at it for a moment (claim again, then declare again) or while another
dispatcher of this destination holds it (wait in stages; the notification goes to everyone who listens).
Failures: the listening session is lost and the declaration with it: polling goes on, and when it is back everything is
swept.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final, Protocol

from seapost.dispatcher.stopping import Stopping
from seapost.telemetry.catalog import LogEvent
from seapost.telemetry.logging import get_logger

POLL_JITTER: Final = 0.1
DECLARATIONS_MAX: Final = 3

_LOG: Final = get_logger("seapost.dispatcher")


class Sleeper(Protocol):
    """The listening connection; `seapost.database.listener.Listener` is one."""

    @property
    def connected(self) -> bool:
        """Whether a session listens."""
        ...

    @property
    def connections(self) -> int:
        """How often a session was made; a declaration belongs to one of them."""
        ...

    async def declare(self, destination: str) -> bool:
        """Declare that a dispatcher of the destination sleeps; False: not declared."""
        ...

    async def withdraw(self, destination: str) -> bool:
        """Take the declaration back."""
        ...


class Wake:
    """The sleep of one destination. One task at a time may `rest` or `pause`; anybody may `nudge`."""

    def __init__(
        self,
        destination: str,
        listener: Sleeper | None,
        *,
        poll_seconds: Sequence[float],
        stopping: Stopping,
        rng: random.Random,
    ) -> None:
        self._destination = destination
        self._listener = listener
        self._poll_seconds = tuple(poll_seconds)
        self._stopping = stopping
        self._rng = rng
        self._nudged = asyncio.Event()
        self._declared_on: int | None = None
        self._stage = 0
        self._refusals = 0
        self._rested = True

    @property
    def declared(self) -> bool:
        """Whether this process has declared sleep, on the session that listens now."""
        listener = self._listener
        return listener is not None and listener.connected and self._declared_on == listener.connections

    def nudge(self) -> None:
        """Something may have become due, or the order to stop has come."""
        self._nudged.set()

    async def rest(self) -> None:
        """A claim found nothing; return when the next one is worth its round trip."""
        if not self.declared and await self._declare():
            return  # claim once more: what committed before the declaration did not notify
        if self._claim_again():
            return
        seconds = self._poll_seconds[min(self._stage, len(self._poll_seconds) - 1)]
        self._stage += 1
        self._rested = True
        await self._wait(seconds * self._rng.uniform(1.0 - POLL_JITTER, 1.0))

    async def claimed(self, *, lanes_left: bool) -> None:
        """A claim found something. Withdraw when nobody is left to wait, or when claims find something in a row."""
        busy = not self._rested or not lanes_left
        self._stage = 0
        self._refusals = 0
        self._rested = False
        if busy:
            await self.withdraw()

    async def pause(self, seconds: float) -> None:
        """Wait for a reason other than an empty queue; nobody needs to notify meanwhile."""
        await self.withdraw()
        await self._wait(seconds)

    async def withdraw(self) -> None:
        """Take the declaration back, if there is one."""
        if self._listener is not None and self.declared:
            self._declared_on = None
            await self._ask(self._listener.withdraw)

    async def _declare(self) -> bool:
        listener = self._listener
        if listener is None or not listener.connected:
            return False
        session = listener.connections
        if await self._ask(listener.declare):
            self._declared_on = session
            self._refusals = 0
            return self.declared
        self._refusals += 1
        return False

    async def _ask(self, question: Callable[[str], Awaitable[bool]]) -> bool:
        """Declare or withdraw; whatever goes wrong, polling goes on."""
        try:
            return await question(self._destination)
        except Exception as error:  # noqa: BLE001 - a missing right or a defect must not stop the claims
            _LOG.warning(LogEvent.LISTENER_LOST, destination=self._destination, exc_info=error)
            return False

    def _claim_again(self) -> bool:
        """Whether the refusal may have been an append's momentary look."""
        listener = self._listener
        if listener is None or not listener.connected or self.declared:
            return False
        return self._refusals < DECLARATIONS_MAX

    async def _wait(self, seconds: float) -> None:
        if self._stopping.requested.is_set():
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._nudged.wait()
        self._nudged.clear()  # only here, just before a claim, so that no notification is ever forgotten
