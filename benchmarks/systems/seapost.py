"""Seapost as its users run it: append in the caller's transaction, the dispatcher, and a real inbox."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import psycopg
from typing_extensions import override

from benchmarks.drain import CountingTransport, consumer, dispatching, inbox_transport, until_applied
from benchmarks.events import Measured, MeasuredTwice, install, prepare
from benchmarks.systems.system import (
    IDLE_SECONDS,
    LOOK_SECONDS,
    SETTLE_SECONDS_MAX,
    SHARED_LOOK_SECONDS,
    Drained,
    System,
)
from seapost.dispatcher.settings import DispatcherSettings
from seapost.outbox.append import append_many_async
from seapost.telemetry import logging
from seapost.telemetry.metrics import release
from seapost.transport.address import AddressPolicy
from seapost.transport.http import HttpTransport
from seapost.transport.protocol import Transport

SETTINGS: Final = DispatcherSettings()
LEFT: Final = "select (select count(*) from seapost.delivery_ready) + (select count(*) from seapost.delivery_lease)"
START_SECONDS_MAX: Final = 30.0
SETTLED_SECONDS: Final = 1.0
FORMS: Final = {"one": Measured, "two": MeasuredTwice}

inbox = consumer()
"""What the receiver's process serves."""


class Seapost(System):
    """Args: batch: deliveries per claim. lanes: batches in flight. form: `inprocess`, `http`, or `two` destinations."""

    def __init__(self, batch: str = "500", lanes: str = "2", form: str = "inprocess") -> None:
        logging.configure("error")
        self._batch, self._lanes, self._form = int(batch), int(lanes), form
        self._connection: psycopg.AsyncConnection[Any] | None = None
        self._dsn = ""
        self._url = ""
        self._stack = AsyncExitStack()
        how = "over HTTP to a receiver in a process of its own" if form == "http" else "in process"
        self.settings = f"batch {batch}, {lanes} lane{'s'[: int(lanes) - 1]}, inbox {how}"

    @override
    def versions(self) -> dict[str, str]:
        return {"seapost": release(), "psycopg": psycopg.__version__}

    @property
    def _session(self) -> psycopg.AsyncConnection[Any]:
        assert self._connection is not None  # noqa: S101 - `setup` comes first
        return self._connection

    @override
    async def setup(self, dsn: str, *, install: bool) -> None:
        self._dsn = dsn
        if install:
            await asyncio.to_thread(_install, dsn)
        if self._form == "http":
            self._url = await self._stack.enter_async_context(_receiver(dsn))
        self._connection = await psycopg.AsyncConnection.connect(dsn, autocommit=True)

    @override
    async def append(self, count: int, batch: int) -> float:
        events = prepare(MeasuredTwice if self._form == "two" else Measured, 0, count)
        started = time.monotonic()
        for start in range(0, count, batch):
            async with self._session.transaction():
                _ = await append_many_async(self._session, events[start : start + batch])
        return time.monotonic() - started

    @override
    async def drain(self, count: int, *, shared: bool) -> Drained:
        async with self._transport() as transport:
            counted = CountingTransport(transport)
            running = dispatching(
                self._dsn, counted, batch=self._batch, lanes=self._lanes, listening=True, settings=SETTINGS
            )
            async with running:
                idle = IDLE_SECONDS if shared else SETTLE_SECONDS_MAX
                await until_applied(counted, 1 if shared else count, idle_seconds=idle)
                look = SHARED_LOOK_SECONDS if shared else LOOK_SECONDS
                while await self._left():  # noqa: ASYNC110 - the database has no event to wait for
                    await asyncio.sleep(look)
                last = time.monotonic()
        return Drained(counted.applied, counted.first or 0.0, last)

    @override
    async def latency(self, count: int, per_second: float) -> list[float]:
        return [called for called, _ in await self.latencies(count, per_second)]

    async def latencies(self, count: int, per_second: float) -> list[tuple[float, float]]:
        """Milliseconds to the handler, from the call of append and from just before its commit."""
        arrived: list[tuple[int, float]] = []
        called: list[tuple[float, float]] = []
        async with inbox_transport(self._dsn, consumer(arrived)) as transport:
            running = dispatching(
                self._dsn, transport, batch=self._batch, lanes=self._lanes, listening=True, settings=SETTINGS
            )
            async with running:
                await asyncio.sleep(SETTLED_SECONDS)  # it has found nothing and sleeps
                events = prepare(Measured, 0, count)
                start = time.monotonic()
                for place, event in enumerate(events):
                    await asyncio.sleep(max(0.0, start + place / per_second - time.monotonic()))
                    begun = time.monotonic()
                    async with self._session.transaction():
                        _ = await append_many_async(self._session, [event])
                        called.append((begun, time.monotonic()))
                deadline = time.monotonic() + SETTLE_SECONDS_MAX
                while len(arrived) < count and time.monotonic() < deadline:  # noqa: ASYNC110 - measured, not told
                    await asyncio.sleep(LOOK_SECONDS)
        return [((at - called[number][0]) * 1_000, (at - called[number][1]) * 1_000) for number, at in arrived]

    @override
    async def clear(self) -> None:
        _ = await self._session.execute("truncate seapost.delivery_ready, seapost.delivery_lease")

    @override
    async def close(self) -> None:
        await self._session.close()
        await self._stack.aclose()

    async def _left(self) -> int:
        cursor = await self._session.execute(LEFT)
        row = await cursor.fetchone()
        return 0 if row is None else row[0]

    @asynccontextmanager
    async def _transport(self) -> AsyncGenerator[Transport]:
        async with AsyncExitStack() as stack:
            if self._form != "http":
                yield await stack.enter_async_context(inbox_transport(self._dsn, inbox_again()))
                return
            transport = HttpTransport(self._url, signer=None, policy=AddressPolicy.allowing("127.0.0.0/8"))
            stack.push_async_callback(transport.aclose)
            yield transport


def inbox_again() -> Any:  # noqa: ANN401 - an Inbox
    """A fresh consumer: an inbox belongs to one `Receiving`."""
    return consumer()


def _install(dsn: str) -> None:
    install(dsn)


@asynccontextmanager
async def _receiver(dsn: str) -> AsyncGenerator[str]:
    """`seapost serve` with the usual consumer; gives its URL once it answers."""
    with tempfile.TemporaryDirectory(prefix="seapost-bench-") as folder, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        config = Path(folder) / "seapost.toml"
        _ = config.write_text('[receiver]\nunauthenticated = true\n\n[log]\nlevel = "error"\n', encoding="utf-8")
        program = Path(sys.executable).with_name("seapost")
        command = ["serve", "benchmarks.systems.seapost:inbox", "--port", str(port), "--dsn", dsn]
        process = await asyncio.create_subprocess_exec(
            program, *command, "--config", str(config), stdout=sys.stderr, env=os.environ
        )
        try:
            url = f"http://127.0.0.1:{port}"
            await _answers(f"{url}/readyz")
            yield url
        finally:
            process.terminate()
            _ = await process.wait()


async def _answers(url: str) -> None:
    async with asyncio.timeout(START_SECONDS_MAX), httpx.AsyncClient() as client:
        while True:
            try:
                if (await client.get(url)).is_success:
                    return
            except httpx.TransportError:
                pass
            await asyncio.sleep(LOOK_SECONDS * 10)
