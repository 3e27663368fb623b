"""The processes that the fault tests start and kill: a dispatcher, a consumer behind HTTP, producers.

They run the product as it is, with crash points around its seams; `tests.kit.nursery` forks them.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import uvicorn

from seapost.database.pool import RoleTimeouts, open_pool, open_sync_pool
from seapost.dispatcher.destination import Destination
from seapost.dispatcher.dispatcher import Dispatcher
from seapost.dispatcher.settings import DestinationSettings, DispatcherSettings, pool_size
from seapost.inbox.receive import Receiving
from seapost.server.receiver import create_app
from seapost.transport.address import AddressPolicy
from seapost.transport.http import HttpTransport
from seapost.transport.inprocess import InProcessTransport
from seapost.transport.protocol import Transport
from tests.kit import feeder, handlers, producer
from tests.kit.crash import PointedTransport, Points
from tests.kit.handlers import RecordedReceiving
from tests.kit.orders import Order

HOST: Final = "127.0.0.1"

LINE: Final = DestinationSettings(
    name="any",
    lease_seconds=1.0,
    timeout_seconds=20.0,
    backoff_min_seconds=0.02,
    backoff_base_seconds=0.05,
    backoff_max_seconds=0.2,
    retry_after_max_seconds=0.2,
    breaker_open_seconds=0.1,
    sweep_seconds=0.1,
)
PROCESS: Final = DispatcherSettings(recover_every_seconds=0.05, poll_seconds=(0.005, 0.05), drain_seconds=5.0)
PATIENT: Final = RoleTimeouts(statement_seconds=60.0, lock_seconds=60.0, idle_in_transaction_seconds=60.0)
"""For consumers whose handlers a test holds at a lock."""


def work(order: Order) -> int:
    """Play the ordered part to its end."""
    points = Points(Path(order.report), order.trap)
    points.lay()
    if order.clock_shift_seconds:
        _shift_clock(order.clock_shift_seconds)
    match order.part:
        case "dispatcher":
            asyncio.run(_dispatch(order, points))
        case "consumer":
            asyncio.run(_consume(order, points))
        case "producer":
            producer.run(order.source, seed=order.seed, kills=order.kills, say=points.say)
        case "feeder":
            feeder.run(order.source, seed=order.seed, say=points.say)
    points.say("ended")
    return 0


async def _dispatch(order: Order, points: Points) -> None:
    settings = replace(PROCESS, **order.dispatcher_settings)
    lines = [replace(LINE, name=name, **order.destination_settings) for name in order.destinations]
    async with AsyncExitStack() as stack:
        pool = await stack.enter_async_context(
            open_pool(
                order.source,
                part="dispatcher",
                role="seapost_dispatcher",
                role_timeouts=settings.role_timeouts,
                size_max=pool_size(lines),
                wait_seconds=2.0,
            )
        )
        transports = await _transports(order, points, stack)
        dispatcher = Dispatcher(
            pool,
            [Destination(line, PointedTransport(transports[line.name], points)) for line in lines],
            listen_dsn=order.listen or order.source,
            listen_role="seapost_dispatcher",
            owner=order.owner or None,
            settings=settings,
        )
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, dispatcher.stop)
        points.say(f"owner {dispatcher.owner}")
        points.say("ready")
        await dispatcher.run()


async def _transports(order: Order, points: Points, stack: AsyncExitStack) -> dict[str, Transport]:
    """In-process where the consumers' database is named, HTTP elsewhere."""
    if not order.sink:
        transport = await stack.enter_async_context(
            HttpTransport(order.url, policy=AddressPolicy.allowing("127.0.0.0/8"))
        )
        return dict.fromkeys(order.destinations, transport)
    receivings = await stack.enter_async_context(_receivings(order, points))
    return {receiving.inbox.destination: InProcessTransport(receiving.receive) for receiving in receivings}


@asynccontextmanager
async def _receivings(order: Order, points: Points) -> AsyncGenerator[list[Receiving]]:
    timeouts = RoleTimeouts(**order.consumer_timeouts) if order.consumer_timeouts else PATIENT
    role: dict[str, Any] = {"role": "seapost_consumer", "role_timeouts": timeouts, "wait_seconds": 2.0, "size_max": 8}
    async with AsyncExitStack() as stack:
        pool = await stack.enter_async_context(open_pool(order.sink, part="inbox", **role))
        sync_pool = stack.enter_context(open_sync_pool(order.sink, part="inbox-threads", **role))
        yield [
            await stack.enter_async_context(
                RecordedReceiving(handlers.open_inbox(name, points), pool, sync_pool, worker=order.name, points=points)
            )
            for name in order.destinations
        ]


async def _consume(order: Order, points: Points) -> None:
    """A receiver that checks no tokens: nobody else can reach it."""
    async with _receivings(order, points) as receivings:
        app = create_app(receivings, verifier=None)
        config = uvicorn.Config(
            app, host=HOST, port=order.port, log_config=None, ws="none", timeout_graceful_shutdown=5
        )
        server = _Server(config, points)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, server.end)
        await server.serve()


class _Server(uvicorn.Server):
    """Reports when it listens, and ends at SIGTERM with code 0; left to itself it would raise the signal once more."""

    def __init__(self, config: uvicorn.Config, points: Points) -> None:
        super().__init__(config)
        self._points = points

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._points.say("ready")

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    def end(self) -> None:
        self.should_exit = True


def _shift_clock(seconds: float) -> None:
    """Let everything of the product read a clock that is wrong by so much."""
    right = time.time

    class Shown(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, datetime)

    class Wrong(datetime, metaclass=Shown):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:
            return datetime.now(tz) + timedelta(seconds=seconds)

    def show(module: ModuleType, name: str, value: object) -> None:
        setattr(module, name, value)

    show(time, "time", lambda: right() + seconds)
    for name, module in list(sys.modules.items()):
        if name.startswith("seapost.") and getattr(module, "datetime", None) is datetime:
            show(module, "datetime", Wrong)
