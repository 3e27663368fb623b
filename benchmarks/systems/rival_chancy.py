"""Chancy: a queue with several executors; jobs stay in the table when they are done."""

# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedFunctionDecorator=false
# pyright: reportUntypedClassDecorator=false, reportAttributeAccessIssue=false, reportFunctionMemberAccess=false
# The rival lives in an environment of its own, which the type checker does not see.

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any, Final

from chancy import Chancy as App
from chancy import Queue, Worker, job
from typing_extensions import override

from benchmarks.systems.system import Drained, Handler, System, payload

QUEUE: Final = "bench"
CONCURRENCY: Final = 500
HANDLER: Final = Handler()


@job(queue=QUEUE)
async def handle(*, number: int, filler: str) -> None:
    """Count one job; jobs are found by the name of their function, so it stands in the module."""
    HANDLER.value({"number": number, "filler": filler})


class Chancy(System):
    """Jobs on the event loop, 500 at a time, polled again as soon as one is done."""

    settings = f"asyncio executor, concurrency {CONCURRENCY}, eager polling"

    def __init__(self) -> None:
        self._app: Any = None

    @override
    def versions(self) -> dict[str, str]:
        return {name: version(name) for name in ("chancy", "psycopg")}

    @override
    async def setup(self, dsn: str, *, install: bool) -> None:
        self._app = App(dsn)
        await self._app.__aenter__()
        if install:
            await self._app.migrate()
            queue = Queue(
                QUEUE, concurrency=CONCURRENCY, executor=App.Executor.Async, polling_interval=1, eager_polling=True
            )
            await self._app.declare(queue)

    @override
    async def append(self, count: int, batch: int) -> float:
        jobs = [handle.job.with_kwargs(**payload(number)) for number in range(count)]
        started = time.monotonic()
        if batch == 1:
            for one in jobs:
                _ = await self._app.push(one)
        else:
            async for _ in self._app.push_many(jobs, batch_size=batch):
                pass
        return time.monotonic() - started

    @override
    async def drain(self, count: int, *, shared: bool) -> Drained:
        HANDLER.reset()
        async with self._working():
            await HANDLER.until(count, shared=shared)
            return await HANDLER.drained(self._left, shared=shared)

    @override
    async def latency(self, count: int, per_second: float) -> list[float]:
        HANDLER.reset()
        async with self._working():
            await asyncio.sleep(1.0)
            return await HANDLER.paced(
                count, per_second, lambda number: self._app.push(handle.job.with_kwargs(**payload(number)))
            )

    @override
    async def clear(self) -> None:
        async with self._app.pool.connection() as connection:
            _ = await connection.execute("truncate chancy_jobs")

    @override
    async def close(self) -> None:
        await self._app.__aexit__(None, None, None)

    @asynccontextmanager
    async def _working(self) -> AsyncGenerator[None]:
        async with Worker(self._app, register_signal_handlers=False):
            yield

    async def _left(self) -> int:
        async with self._app.pool.connection() as connection:
            cursor = await connection.execute(
                "select count(*) as n from chancy_jobs where state in ('pending', 'running', 'retrying')"
            )
            row = await cursor.fetchone()
            return row["n"] if isinstance(row, dict) else row[0]
