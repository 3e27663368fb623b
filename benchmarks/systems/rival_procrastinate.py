"""Procrastinate: SQL functions, one job per fetch, status words instead of a fence."""

# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedFunctionDecorator=false
# The rival lives in an environment of its own, which the type checker does not see.

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from importlib.metadata import version
from typing import Any, Final

import procrastinate
from typing_extensions import override

from benchmarks.systems.system import Drained, Handler, System, payload

CONCURRENCY: Final = 20
POOL_SIZE: Final = 10


class Procrastinate(System):
    """Many jobs at a time in one worker, done jobs deleted; it has no batch to set."""

    settings = f"psycopg connector, pool of {POOL_SIZE}, concurrency {CONCURRENCY}, done jobs deleted"

    def __init__(self) -> None:
        self._handler = Handler()
        self._app: Any = None
        self._task: Any = None

    @override
    def versions(self) -> dict[str, str]:
        return {name: version(name) for name in ("procrastinate", "psycopg")}

    @override
    async def setup(self, dsn: str, *, install: bool) -> None:
        connector = procrastinate.PsycopgConnector(conninfo=dsn, min_size=2, max_size=POOL_SIZE)
        self._app = procrastinate.App(connector=connector)
        handler = self._handler

        @self._app.task(name="bench", queue="bench")
        async def handle(number: int, filler: str) -> None:
            handler.value({"number": number, "filler": filler})

        self._task = handle
        await self._app.open_async()
        if install:
            await self._app.schema_manager.apply_schema_async()

    @override
    async def append(self, count: int, batch: int) -> float:
        jobs = [payload(number) for number in range(count)]
        started = time.monotonic()
        for start in range(0, count, batch):
            if batch == 1:
                _ = await self._task.defer_async(**jobs[start])
            else:
                _ = await self._task.batch_defer_async(*jobs[start : start + batch])
        return time.monotonic() - started

    @override
    async def drain(self, count: int, *, shared: bool) -> Drained:
        self._handler.reset()
        worker = self._start()
        await self._handler.until(count, shared=shared)
        drained = await self._handler.drained(self._left, shared=shared)
        await _ended(worker)
        return drained

    @override
    async def latency(self, count: int, per_second: float) -> list[float]:
        self._handler.reset()
        worker = self._start()
        await asyncio.sleep(1.0)
        found = await self._handler.paced(count, per_second, lambda number: self._task.defer_async(**payload(number)))
        await _ended(worker)
        return found

    @override
    async def clear(self) -> None:
        await self._app.connector.execute_query_async("truncate procrastinate_jobs cascade")

    @override
    async def close(self) -> None:
        await self._app.close_async()

    async def _left(self) -> int:
        row = await self._app.connector.execute_query_one_async("select count(*) as n from procrastinate_jobs")
        return row["n"]

    def _start(self) -> asyncio.Task[None]:
        return asyncio.create_task(
            self._app.run_worker_async(
                concurrency=CONCURRENCY, delete_jobs="always", install_signal_handlers=False, wait=True
            )
        )


async def _ended(worker: asyncio.Task[None]) -> None:
    _ = worker.cancel()
    with suppress(asyncio.CancelledError):
        await worker
