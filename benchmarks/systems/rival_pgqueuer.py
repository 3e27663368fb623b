"""PgQueuer: one queue table, SKIP LOCKED, finished jobs are deleted by id."""

# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedFunctionDecorator=false
# The rival lives in an environment of its own, which the type checker does not see.

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from importlib.metadata import version
from typing import Any, Final

import asyncpg
from pgqueuer import PgQueuer as Queue
from pgqueuer import Queries
from pgqueuer.db import AsyncpgDriver
from typing_extensions import override

from benchmarks.systems.system import Drained, Handler, System, payload_text

ENTRYPOINT: Final = "bench"
BATCH: Final = 500
DEQUEUE_SECONDS: Final = 0.5


class PgQueuer(System):
    """Jobs in batches of 500 with the asyncpg driver: its fastest in our trials of 10, 100 and 500."""

    settings = f"asyncpg driver, batch {BATCH}"

    def __init__(self) -> None:
        self._handler = Handler()
        self._dsn = ""
        self._connection: Any = None
        self._queries: Any = None

    @override
    def versions(self) -> dict[str, str]:
        return {name: version(name) for name in ("pgqueuer", "asyncpg")}

    @override
    async def setup(self, dsn: str, *, install: bool) -> None:
        self._dsn = dsn
        self._connection = await asyncpg.connect(dsn)
        self._queries = Queries(AsyncpgDriver(self._connection))
        if install:
            await self._queries.install()

    @override
    async def append(self, count: int, batch: int) -> float:
        jobs = [payload_text(number).encode() for number in range(count)]
        started = time.monotonic()
        for start in range(0, count, batch):
            part = jobs[start : start + batch]
            if batch == 1:
                _ = await self._queries.enqueue(ENTRYPOINT, part[0])
            else:
                _ = await self._queries.enqueue([ENTRYPOINT] * len(part), part, [0] * len(part))
        return time.monotonic() - started

    @override
    async def drain(self, count: int, *, shared: bool) -> Drained:
        self._handler.reset()
        queue, worker, connection = await self._start()
        await self._handler.until(count, shared=shared)
        drained = await self._handler.drained(self._left, shared=shared)
        queue.shutdown.set()
        await worker
        await connection.close()
        return drained

    @override
    async def latency(self, count: int, per_second: float) -> list[float]:
        self._handler.reset()
        queue, worker, connection = await self._start()
        await asyncio.sleep(1.0)
        found = await self._handler.paced(
            count, per_second, lambda number: self._queries.enqueue(ENTRYPOINT, payload_text(number).encode())
        )
        queue.shutdown.set()
        await worker
        await connection.close()
        return found

    @override
    async def clear(self) -> None:
        _ = await self._connection.execute("truncate pgqueuer, pgqueuer_log")

    @override
    async def close(self) -> None:
        await self._connection.close()

    async def _left(self) -> int:
        return await self._connection.fetchval("select count(*) from pgqueuer")

    async def _start(self) -> tuple[Any, asyncio.Task[None], Any]:
        connection = await asyncpg.connect(self._dsn)
        queue = Queue(AsyncpgDriver(connection))

        @queue.entrypoint(ENTRYPOINT)
        async def handle(job: Any) -> None:  # noqa: ANN401 - the rival's own type; a handler is asynchronous
            self._handler.text(job.payload)

        pause = timedelta(seconds=DEQUEUE_SECONDS)
        return queue, asyncio.create_task(queue.run(dequeue_timeout=pause, batch_size=BATCH)), connection
