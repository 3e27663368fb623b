"""PgQueuer: a claim is lost when its heartbeat is older than the timeout of the next dequeue."""

# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedFunctionDecorator=false
# The rival lives in an environment of its own, which the type checker does not see.

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any, Final
from uuid import uuid4

import asyncpg
from pgqueuer import Queries
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import TracebackRecord
from pgqueuer.queries import EntrypointExecutionParameter
from typing_extensions import override

from benchmarks.fencing.scenario import GONE, Scenario, Worker

ENTRYPOINT: Final = "work"
HEARTBEAT: Final = timedelta(milliseconds=100)


class PgQueuer(Scenario):
    """The queries that the queue manager and its completion buffer use."""

    packages = ("pgqueuer",)
    calls = "log_jobs after a dequeue past the heartbeat timeout"

    def __init__(self) -> None:
        self._connection: Any = None
        self._queries: Any = None
        self._jobs: dict[Worker, Any] = {}

    @override
    async def open(self, dsn: str) -> None:
        self._connection = await asyncpg.connect(dsn)
        self._queries = Queries(AsyncpgDriver(self._connection))
        await self._queries.install()

    @override
    async def append(self) -> None:
        _ = await self._queries.enqueue(ENTRYPOINT, b"{}")

    @override
    async def claim(self, worker: Worker) -> None:
        entrypoints = {ENTRYPOINT: EntrypointExecutionParameter(concurrency_limit=0)}
        found = await self._queries.dequeue(1, entrypoints, uuid4(), None, HEARTBEAT)
        if not found:
            raise LookupError(worker)
        self._jobs[worker] = found[0]

    @override
    async def lose(self) -> None:
        await asyncio.sleep(2 * HEARTBEAT.total_seconds())

    @override
    async def succeed(self, worker: Worker) -> object:
        return await self._queries.log_jobs([(self._jobs[worker], "successful", None)])

    @override
    async def fail(self, worker: Worker) -> object:
        job = self._jobs[worker]
        record = TracebackRecord.from_exception(exc=RuntimeError("failed"), job_id=job.id)
        return await self._queries.retry_job(job, timedelta(), record)

    @override
    async def state(self) -> str:
        rows = await self._connection.fetch("select status::text, attempts from pgqueuer")
        log = await self._connection.fetch("select status::text from pgqueuer_log order by id")
        queue = "; ".join(f"{row['status']}, attempts={row['attempts']}" for row in rows) or GONE
        return f"{queue}; log: {', '.join(row['status'] for row in log)}"

    @override
    async def close(self) -> None:
        await self._connection.close()
