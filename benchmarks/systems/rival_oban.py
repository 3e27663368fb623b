"""Oban for Python: the port of the Elixir queue, one row per job that stays until it is pruned."""

# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedFunctionDecorator=false
# pyright: reportUntypedClassDecorator=false, reportAttributeAccessIssue=false, reportFunctionMemberAccess=false
# The rival lives in an environment of its own, which the type checker does not see.

from __future__ import annotations

import asyncio
import time
from importlib.metadata import version
from typing import Any, Final

from oban import Oban as Instance
from oban import worker
from oban.schema import install as install_schema
from psycopg_pool import AsyncConnectionPool
from typing_extensions import override

from benchmarks.systems.system import Drained, Handler, System, payload

QUEUE: Final = "bench"
LIMIT: Final = 100
POOL_SIZE: Final = 10
HANDLER: Final = Handler()


@worker(queue=QUEUE)
class Work:
    """Jobs are found by the name of their class, so it stands in the module."""

    async def process(self, job: Any) -> None:  # noqa: ANN401 - the rival's form of a handler
        """Count one job."""
        HANDLER.value(job.args)


class Oban(System):
    """One queue with a hundred jobs at a time, the open version: it acknowledges job by job."""

    settings = f"psycopg pool of {POOL_SIZE}, queue limit {LIMIT}, open version"

    def __init__(self) -> None:
        self._pool: Any = None
        self._client: Any = None

    @override
    def versions(self) -> dict[str, str]:
        return {name: version(name) for name in ("oban", "psycopg")}

    @override
    async def setup(self, dsn: str, *, install: bool) -> None:
        self._pool = AsyncConnectionPool(dsn, min_size=2, max_size=POOL_SIZE, open=False)
        await self._pool.open()
        if install:
            await install_schema(self._pool)
        self._client = Instance(pool=self._pool, name="client")

    @override
    async def append(self, count: int, batch: int) -> float:
        jobs = [Work.new(payload(number)) for number in range(count)]
        started = time.monotonic()
        for start in range(0, count, batch):
            if batch == 1:
                _ = await self._client.enqueue(jobs[start])
            else:
                _ = await self._client.enqueue_many(jobs[start : start + batch])
        return time.monotonic() - started

    @override
    async def drain(self, count: int, *, shared: bool) -> Drained:
        HANDLER.reset()
        async with self._instance():
            await HANDLER.until(count, shared=shared)
            return await HANDLER.drained(self._left, shared=shared)

    @override
    async def latency(self, count: int, per_second: float) -> list[float]:
        HANDLER.reset()
        async with self._instance() as instance:
            await asyncio.sleep(1.0)
            return await HANDLER.paced(count, per_second, lambda number: instance.enqueue(Work.new(payload(number))))

    @override
    async def clear(self) -> None:
        async with self._pool.connection() as connection:
            _ = await connection.execute("truncate oban_jobs")

    @override
    async def close(self) -> None:
        await self._pool.close()

    def _instance(self) -> Any:  # noqa: ANN401 - the rival's own type
        return Instance(pool=self._pool, queues={QUEUE: LIMIT})

    async def _left(self) -> int:
        async with self._pool.connection() as connection:
            cursor = await connection.execute(
                "select count(*) from oban_jobs where state in ('available', 'scheduled', 'executing', 'retryable')"
            )
            return (await cursor.fetchone())[0]
