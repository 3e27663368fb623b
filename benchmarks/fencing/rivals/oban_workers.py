"""Oban for Python: a claim is lost when the lifeline rescues what has been executing for too long."""

# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedClassDecorator=false
# The rival lives in an environment of its own, which the type checker does not see.

from __future__ import annotations

import asyncio
from typing import Any, Final

from oban import Oban as Instance
from oban import worker as oban_worker
from oban.schema import install
from psycopg_pool import AsyncConnectionPool
from typing_extensions import override

from benchmarks.fencing.scenario import GONE, Scenario, Worker

QUEUE: Final = "work"
RESCUE_SECONDS: Final = 0.3
LOOK_SECONDS: Final = 0.05
WAIT_SECONDS_MAX: Final = 30.0
STARTED: Final[asyncio.Queue[Any]] = asyncio.Queue()
"""The end of each job that has begun; a worker's job waits for its own."""


@oban_worker(queue=QUEUE)
class Work:
    """Jobs are found by the name of their class, so it stands in the module."""

    async def process(self, job: Any) -> None:  # noqa: ANN401, ARG002 - the rival's form of a handler
        """Wait for the order to succeed or to fail."""
        end = asyncio.get_running_loop().create_future()
        await STARTED.put(end)
        await end


class Oban(Scenario):
    """Two running instances with one slot each, and a third that only rescues."""

    packages = ("oban",)
    calls = "running workers; a third instance's lifeline rescues"

    def __init__(self) -> None:
        self._pool: Any = None
        self._instances: dict[Worker, Any] = {}
        self._ends: dict[Worker, Any] = {}

    @override
    async def open(self, dsn: str) -> None:
        self._pool = AsyncConnectionPool(dsn, min_size=4, max_size=12, open=False)
        await self._pool.open()
        await install(self._pool)

    @override
    async def append(self) -> None:
        declared: Any = Work
        _ = await Instance(pool=self._pool, name="client").enqueue(declared.new({}))

    @override
    async def claim(self, worker: Worker) -> None:
        instance = Instance(pool=self._pool, name=worker, node=worker, queues={QUEUE: 1}, leadership=False)
        await instance.start()
        self._instances[worker] = instance
        async with asyncio.timeout(WAIT_SECONDS_MAX):
            self._ends[worker] = await STARTED.get()

    @override
    async def lose(self) -> None:
        lifeline = {"interval": LOOK_SECONDS, "rescue_after": RESCUE_SECONDS}
        instance = Instance(pool=self._pool, name="rescuer", node="rescuer", leadership=True, lifeline=lifeline)
        await instance.start()
        async with asyncio.timeout(WAIT_SECONDS_MAX):
            while not (await self.state()).startswith("available"):  # noqa: ASYNC110 - the database says it, no event
                await asyncio.sleep(LOOK_SECONDS)
        await instance.stop()

    @override
    async def succeed(self, worker: Worker) -> object:
        self._ends[worker].set_result(None)
        return await self._instances[worker].stop()

    @override
    async def fail(self, worker: Worker) -> object:
        self._ends[worker].set_exception(RuntimeError("failed"))
        return await self._instances[worker].stop()

    @override
    async def state(self) -> str:
        async with self._pool.connection() as connection:
            cursor = await connection.execute("select state::text, attempt from oban_jobs")
            return "; ".join(f"{state}, attempt={attempt}" for state, attempt in await cursor.fetchall()) or GONE

    @override
    async def close(self) -> None:
        await self._pool.close()
