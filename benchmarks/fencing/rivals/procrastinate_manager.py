"""Procrastinate: a claim is lost when the worker's heartbeat is stale and the stalled job is put back."""

# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedFunctionDecorator=false
# The rival lives in an environment of its own, which the type checker does not see.

from __future__ import annotations

from typing import Any

import procrastinate
from procrastinate.jobs import Status
from typing_extensions import override

from benchmarks.fencing.scenario import GONE, Scenario, Worker


class Procrastinate(Scenario):
    """The job manager, as the worker and the documented recovery of stalled jobs use it."""

    packages = ("procrastinate",)
    calls = "finish_job after get_stalled_jobs and retry_job"

    def __init__(self) -> None:
        self._app: Any = None
        self._jobs: dict[Worker, Any] = {}

    @override
    async def open(self, dsn: str) -> None:
        self._app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=dsn))
        await self._app.open_async()
        await self._app.schema_manager.apply_schema_async()

    @override
    async def append(self) -> None:
        @self._app.task(name="work")
        async def work() -> None:
            pass

        _ = await work.defer_async()

    @override
    async def claim(self, worker: Worker) -> None:
        manager = self._app.job_manager
        job = await manager.fetch_job(queues=None, worker_id=await manager.register_worker())
        if job is None:
            raise LookupError(worker)
        self._jobs[worker] = job

    @override
    async def lose(self) -> None:
        manager = self._app.job_manager
        for job in await manager.get_stalled_jobs(seconds_since_heartbeat=0):
            await manager.retry_job(job)

    @override
    async def succeed(self, worker: Worker) -> object:
        return await self._app.job_manager.finish_job(self._jobs[worker], Status.SUCCEEDED, delete_job=False)

    @override
    async def fail(self, worker: Worker) -> object:
        return await self._app.job_manager.retry_job(self._jobs[worker])

    @override
    async def state(self) -> str:
        rows = await self._app.connector.execute_query_all_async("select status, attempts from procrastinate_jobs")
        return "; ".join(f"{row['status']}, attempts={row['attempts']}" for row in rows) or GONE

    @override
    async def close(self) -> None:
        await self._app.close_async()
