"""faststream-outbox: an outbox table, leases fenced by a token, finished rows deleted in batches when asked for."""

# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedFunctionDecorator=false
# The rival lives in an environment of its own, which the type checker does not see.

from __future__ import annotations

import asyncio
import time
from importlib.metadata import version
from typing import Any, Final

from faststream_outbox import OutboxBroker, make_outbox_table
from sqlalchemy import MetaData, text
from sqlalchemy.ext.asyncio import create_async_engine
from typing_extensions import override

from benchmarks.systems.system import Drained, Handler, System, payload

QUEUE: Final = "bench"
WORKERS: Final = 4
BATCH: Final = 500
FETCH_SECONDS_MIN: Final = 0.01


class FaststreamOutbox(System):
    """Rows are fetched and finished in batches of 500 by four workers: its fastest in our trials."""

    settings = f"asyncpg, {WORKERS} workers, fetch batch {BATCH}, terminal flush batch {BATCH}"

    def __init__(self) -> None:
        self._handler = Handler()
        self._engine: Any = None
        self._metadata = MetaData()
        self._table = make_outbox_table(self._metadata, table_name="outbox")

    @override
    def versions(self) -> dict[str, str]:
        return {name: version(name) for name in ("faststream-outbox", "faststream", "sqlalchemy", "asyncpg")}

    @override
    async def setup(self, dsn: str, *, install: bool) -> None:
        self._engine = create_async_engine(dsn.replace("postgresql://", "postgresql+asyncpg://", 1))
        if install:
            async with self._engine.begin() as connection:
                await connection.run_sync(self._metadata.create_all)

    @override
    async def append(self, count: int, batch: int) -> float:
        broker = self._broker()
        jobs = [payload(number) for number in range(count)]
        async with self._engine.connect() as connection:
            started = time.monotonic()
            for start in range(0, count, batch):
                async with connection.begin():
                    if batch == 1:
                        _ = await broker.publish(jobs[start], queue=QUEUE, session=connection)
                    else:
                        await broker.publish_batch(*jobs[start : start + batch], queue=QUEUE, session=connection)
            return time.monotonic() - started

    @override
    async def drain(self, count: int, *, shared: bool) -> Drained:
        self._handler.reset()
        broker = self._broker()
        await broker.start()
        await self._handler.until(count, shared=shared)
        drained = await self._handler.drained(self._left, shared=shared)
        await broker.stop()
        return drained

    @override
    async def latency(self, count: int, per_second: float) -> list[float]:
        self._handler.reset()
        broker = self._broker()
        await broker.start()
        await asyncio.sleep(1.0)

        async def append(number: int) -> None:
            async with self._engine.begin() as connection:
                _ = await broker.publish(payload(number), queue=QUEUE, session=connection)

        found = await self._handler.paced(count, per_second, append)
        await broker.stop()
        return found

    @override
    async def clear(self) -> None:
        async with self._engine.begin() as connection:
            _ = await connection.execute(text("truncate outbox"))

    @override
    async def close(self) -> None:
        await self._engine.dispose()

    async def _left(self) -> int:
        async with self._engine.connect() as connection:
            return (await connection.execute(text("select count(*) from outbox"))).scalar_one()

    def _broker(self) -> Any:  # noqa: ANN401 - the rival's own type
        broker = OutboxBroker(self._engine, outbox_table=self._table)

        @broker.subscriber(
            QUEUE,
            max_workers=WORKERS,
            fetch_batch_size=BATCH,
            terminal_flush_batch_size=BATCH,
            min_fetch_interval=FETCH_SECONDS_MIN,
        )
        async def handle(body: dict[str, Any]) -> None:
            self._handler.value(body)

        return broker
