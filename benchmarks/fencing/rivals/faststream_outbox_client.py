"""faststream-outbox: a claim is lost when its lease is older than the time to live of the next fetch."""

# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedFunctionDecorator=false
# The rival lives in an environment of its own, which the type checker does not see.

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any, Final

from faststream_outbox import OutboxBroker, make_outbox_table
from faststream_outbox.client import OutboxClient
from sqlalchemy import MetaData, text
from sqlalchemy.ext.asyncio import create_async_engine
from typing_extensions import override

from benchmarks.fencing.scenario import GONE, Scenario, Worker

QUEUE: Final = "work"
LEASE_SECONDS: Final = 0.1


class FaststreamOutbox(Scenario):
    """The client that the subscriber's loops use."""

    packages = ("faststream-outbox",)
    calls = "delete_with_lease after a fetch past the lease"

    def __init__(self) -> None:
        self._metadata = MetaData()
        self._table = make_outbox_table(self._metadata, table_name="outbox")
        self._engine: Any = None
        self._client: Any = None
        self._messages: dict[Worker, Any] = {}

    @override
    async def open(self, dsn: str) -> None:
        url = dsn.replace("postgresql://", "postgresql+asyncpg://", 1)
        self._engine = create_async_engine(url)
        self._client = OutboxClient(self._engine, self._table)
        async with self._engine.begin() as connection:
            await connection.run_sync(self._metadata.create_all)

    @override
    async def append(self) -> None:
        broker = OutboxBroker(self._engine, outbox_table=self._table)
        async with self._engine.begin() as connection:
            _ = await broker.publish({}, queue=QUEUE, session=connection)

    @override
    async def claim(self, worker: Worker) -> None:
        async with self._engine.connect() as connection:
            found = await self._client.fetch(connection, [QUEUE], limit=1, lease_ttl_seconds=LEASE_SECONDS)
        if not found:
            raise LookupError(worker)
        self._messages[worker] = found[0]

    @override
    async def lose(self) -> None:
        await asyncio.sleep(2 * LEASE_SECONDS)

    @override
    async def succeed(self, worker: Worker) -> object:
        message = self._messages[worker]
        async with self._engine.begin() as connection:
            return await self._client.delete_with_lease(connection, message.id, message.acquired_token)

    @override
    async def fail(self, worker: Worker) -> object:
        message, now = self._messages[worker], datetime.now(UTC)
        async with self._engine.begin() as connection:
            return await self._client.mark_pending_with_lease(
                connection,
                message.id,
                message.acquired_token,
                delay_seconds=0.0,
                attempts_count=message.attempts_count + 1,
                first_attempt_at=now,
                last_attempt_at=now,
            )

    @override
    async def state(self) -> str:
        async with self._engine.connect() as connection:
            rows = await connection.execute(text("select acquired_token is not null, attempts_count from outbox"))
            found = [f"{'leased' if row[0] else 'pending'}, attempts={row[1]}" for row in rows]
        return "; ".join(found) or GONE

    @override
    async def close(self) -> None:
        await self._engine.dispose()
