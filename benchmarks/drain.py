"""Draining through the dispatcher, with a real inbox behind it: what a user runs, and nothing else."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

from benchmarks.events import Measured
from seapost.database.pool import open_pool
from seapost.dispatcher.destination import Destination
from seapost.dispatcher.dispatcher import Dispatcher
from seapost.dispatcher.settings import DestinationSettings, DispatcherSettings
from seapost.inbox.inbox import Inbox
from seapost.inbox.receive import Receiving
from seapost.model.delivery import Claim
from seapost.model.outcome import Acknowledged, Outcome
from seapost.transport.inprocess import InProcessTransport
from seapost.transport.protocol import Transport

DESTINATION: Final = "one"
LOOK_SECONDS: Final = 0.002


class CountingTransport:
    """Passes everything on and notes how many deliveries were confirmed, and when the first was handed out."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.applied = 0
        self.first: float | None = None

    async def deliver(self, claims: Sequence[Claim], *, timeout_seconds: float) -> Sequence[Outcome]:
        """One outcome for each claim."""
        if self.first is None:
            self.first = time.monotonic()
        outcomes = await self._inner.deliver(claims, timeout_seconds=timeout_seconds)
        self.applied += sum(1 for outcome in outcomes if isinstance(outcome, Acknowledged))
        return outcomes

    async def aclose(self) -> None:
        """Nothing of its own."""


def consumer(arrived: list[tuple[int, float]] | None = None) -> Inbox:
    """The consumer: its handler does nothing, or notes the number of each event and when it came."""
    inbox = Inbox(DESTINATION)

    @inbox.consumer(Measured)
    async def apply(_connection: Any, event: Measured) -> None:  # noqa: ANN401 - a handler
        if arrived is not None:
            arrived.append((event.number, time.monotonic()))

    return inbox


@asynccontextmanager
async def inbox_transport(dsn: str, inbox: Inbox) -> AsyncGenerator[InProcessTransport]:
    """The inbox in this process, with a pool of its own."""
    async with AsyncExitStack() as stack:
        pool = await stack.enter_async_context(open_pool(dsn, part="inbox", size_max=4))
        receiving = await stack.enter_async_context(Receiving(inbox, pool))
        yield InProcessTransport(receiving.receive)


@asynccontextmanager
async def dispatching(
    dsn: str, transport: Transport, *, batch: int, lanes: int, listening: bool, settings: DispatcherSettings
) -> AsyncGenerator[Dispatcher]:
    """A dispatcher that runs inside the block."""
    async with open_pool(dsn, part="dispatcher", size_max=lanes + 2) as pool:
        line = DestinationSettings(name=DESTINATION, batch_size=batch, lanes=lanes)
        dispatcher = Dispatcher(
            pool, [Destination(line, transport)], listen_dsn=dsn if listening else None, settings=settings
        )
        task = asyncio.create_task(dispatcher.run())
        try:
            yield dispatcher
        finally:
            dispatcher.stop()
            await task


async def until_applied(counted: CountingTransport, count: int, *, idle_seconds: float) -> None:
    """Return when so many deliveries are confirmed, or none was for a while."""
    seen, since = -1, time.monotonic()
    while counted.applied < count:
        if counted.applied != seen:
            seen, since = counted.applied, time.monotonic()
        elif time.monotonic() - since > idle_seconds:
            return
        await asyncio.sleep(LOOK_SECONDS)
