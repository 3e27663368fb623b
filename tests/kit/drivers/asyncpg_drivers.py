"""asyncpg: a connection, and a pool's connection for each transaction."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, cast
from uuid import UUID

import asyncpg

from seapost.adapters.asyncpg import append_async, append_many_async
from seapost.contracts.envelope import PreparedEvent
from seapost.contracts.events import Event
from tests.kit.drivers.base import AsyncDriver, Rows
from tests.kit.drivers.urls import url_of

CACHE_SIZE = 100
library = cast("Any", asyncpg)
"""asyncpg has no types."""


class Asyncpg(AsyncDriver):
    """`append_async` on a connection; asyncpg is in autocommit mode until a transaction is started."""

    def __init__(self, dsn: str, *, prepared: bool, autocommit: bool) -> None:
        super().__init__(dsn, prepared=prepared, autocommit=autocommit)
        self.blocks: list[Any] = []
        self.connection: Any = None
        self.run(self.open())

    async def open(self) -> None:
        """Connect."""
        self.connection = await library.connect(url_of(self.dsn), **self.settings())

    def settings(self) -> dict[str, Any]:
        """Without a statement cache behind a pooler that cannot prepare."""
        return {"statement_cache_size": CACHE_SIZE if self.prepared else 0}

    def begin(self) -> None:
        """Start a transaction."""
        self.begin_savepoint()

    def commit(self) -> None:
        """Commit it."""
        self.end_savepoint("release")

    def rollback(self) -> None:
        """Roll it back."""
        self.end_savepoint("rollback")

    def begin_savepoint(self) -> None:
        """A block inside the block."""
        block = self.connection.transaction()
        self.run(block.start())
        self.blocks.append(block)

    def end_savepoint(self, how: Literal["release", "rollback"]) -> None:
        """End the innermost block."""
        block = self.blocks.pop()
        self.run(block.commit() if how == "release" else block.rollback())

    def execute(self, statement: str) -> Rows:
        """Run one statement."""
        if statement.startswith("select"):
            return [tuple(row) for row in self.run(self.connection.fetch(statement))]
        self.run(self.connection.execute(statement))
        return []

    async def append_async(self, event: Event, **options: Any) -> UUID:
        """Append one event."""
        return await append_async(self.connection, event, **options)

    async def append_many_async(self, events: Iterable[PreparedEvent]) -> int:
        """Append prepared events."""
        return await append_many_async(self.connection, events)

    def close(self) -> None:
        """Close the connection."""
        self.connection.terminate()
        self.runner.close()


class AsyncpgPool(Asyncpg):
    """A pool of one; outside a transaction the connection is taken too."""

    async def open(self) -> None:
        """Open the pool and take its connection."""
        self.pool = await library.create_pool(url_of(self.dsn), min_size=1, max_size=1, **self.settings())
        self.connection = await self.pool.acquire()

    def begin(self) -> None:
        """Give the connection back, take it again, and start a transaction."""

        async def take_again() -> None:
            await self.pool.release(self.connection)
            self.connection = await self.pool.acquire()

        self.run(take_again())
        super().begin()

    def close(self) -> None:
        """Close the pool."""

        async def end() -> None:
            self.pool.terminate()

        self.run(end())
        self.runner.close()
