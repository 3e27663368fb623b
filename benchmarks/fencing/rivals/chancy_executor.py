"""Chancy: a claim is lost when its worker has not been seen for the heartbeat timeout and recovery runs."""

# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedFunctionDecorator=false
# The rival lives in an environment of its own, which the type checker does not see.

from __future__ import annotations

import asyncio
from typing import Any, Final

from chancy import Chancy as App
from chancy import Queue, job
from chancy import Worker as ChancyWorker
from chancy.executors.asyncex import AsyncExecutor
from chancy.plugins.recovery import Recovery
from psycopg.rows import dict_row
from typing_extensions import override

from benchmarks.fencing.scenario import GONE, Scenario, Worker

QUEUE: Final = "work"
HEARTBEAT_SECONDS: Final = 1


@job(queue=QUEUE)
async def work() -> None:
    """Nothing: the workers of the scenario report what they like."""


class Chancy(Scenario):
    """Workers that are announced but whose loops do not run; their executors report."""

    packages = ("chancy",)
    calls = "Executor.on_job_completed and flush after Recovery.recover"

    def __init__(self) -> None:
        self._app: Any = None
        self._queue: Any = None
        self._workers: dict[Worker, Any] = {}
        self._jobs: dict[Worker, Any] = {}

    @override
    async def open(self, dsn: str) -> None:
        self._app = App(dsn)
        await self._app.__aenter__()
        await self._app.migrate()
        self._queue = Queue(QUEUE, concurrency=1, executor=App.Executor.Async)
        await self._app.declare(self._queue)

    @override
    async def append(self) -> None:
        declared: Any = work
        _ = await self._app.push(declared.job.with_max_attempts(3))

    @override
    async def claim(self, worker: Worker) -> None:
        instance = ChancyWorker(self._app, worker_id=worker, heartbeat_timeout=HEARTBEAT_SECONDS)
        async with self._app.pool.connection() as connection:
            await instance.announce_worker(connection)
            found = await instance.fetch_jobs(self._queue, connection)
        if not found:
            raise LookupError(worker)
        self._workers[worker], self._jobs[worker] = instance, found[0]

    @override
    async def lose(self) -> None:
        await asyncio.sleep(1.5 * HEARTBEAT_SECONDS)
        async with self._app.pool.connection() as connection, connection.cursor(row_factory=dict_row) as cursor:
            _ = await Recovery.recover(self._workers["A"], self._app, cursor)

    @override
    async def succeed(self, worker: Worker) -> object:
        return await self._complete(worker, None)

    @override
    async def fail(self, worker: Worker) -> object:
        return await self._complete(worker, RuntimeError("failed"))

    @override
    async def state(self) -> str:
        async with self._app.pool.connection() as connection:
            cursor = await connection.execute("select state, attempts, taken_by from chancy_jobs")
            return "; ".join(f"{row[0]}, attempts={row[1]}, by {row[2]}" for row in await cursor.fetchall()) or GONE

    @override
    async def close(self) -> None:
        await self._app.__aexit__(None, None, None)

    async def _complete(self, worker: Worker, error: Exception | None) -> object:
        instance = self._workers[worker]
        await AsyncExecutor(instance, self._queue).on_job_completed(job=self._jobs[worker], exc=error)
        return await instance.flush()
