"""psycopg as its users use it: a connection of either colour, a pool, a pipeline; and SQL as it is typed into psql."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AsyncExitStack, ExitStack
from typing import Any, Literal
from uuid import UUID

import psycopg
from psycopg_pool import ConnectionPool

from seapost.contracts.envelope import PreparedEvent
from seapost.contracts.events import Event
from seapost.outbox.append import append, append_async, append_many, append_many_async, prepare
from tests.kit.drivers.base import AsyncDriver, Driver, Rows

PREPARE_AFTER = 1


class Rollback(Exception):
    """Leaves a block of psycopg's or Django's with a rollback."""


def threshold(*, prepared: bool) -> int | None:
    """Prepare at the second use, so that the suite meets prepared statements; never behind a pooler that cannot."""
    return PREPARE_AFTER if prepared else None


class PsycopgSync(Driver):
    """`seapost.append` on a connection that begins by itself."""

    def __init__(self, dsn: str, *, prepared: bool, autocommit: bool) -> None:
        super().__init__(dsn, prepared=prepared, autocommit=autocommit)
        self.connection = self.connect()
        self.savepoints: list[ExitStack] = []

    def connect(self) -> psycopg.Connection[Any]:
        """The connection under test."""
        return psycopg.connect(
            self.dsn, autocommit=self.autocommit, prepare_threshold=threshold(prepared=self.prepared)
        )

    def begin(self) -> None:
        """The first statement begins."""

    def commit(self) -> None:
        """Commit."""
        self.connection.commit()

    def rollback(self) -> None:
        """Roll back."""
        self.connection.rollback()

    def begin_savepoint(self) -> None:
        """A nested block."""
        stack = ExitStack()
        stack.enter_context(self.connection.transaction())
        self.savepoints.append(stack)

    def end_savepoint(self, how: Literal["release", "rollback"]) -> None:
        """Leave the block."""
        error = psycopg.Rollback() if how == "rollback" else None
        self.savepoints.pop().__exit__(None if error is None else type(error), error, None)

    def execute(self, statement: str) -> Rows:
        """Run one statement."""
        cursor = self.connection.execute(statement.encode())
        # A pipeline knows no description before the answer is fetched.
        return cursor.fetchall() if cursor.description or statement.startswith("select") else []

    def append(self, event: Event, **options: Any) -> UUID:
        """Append one event."""
        return append(self.connection, event, **options)

    def append_many(self, events: Iterable[PreparedEvent]) -> int:
        """Append prepared events."""
        return append_many(self.connection, events)

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()


class PsycopgClientCursor(PsycopgSync):
    """A connection whose cursors write parameters into the statement."""

    def connect(self) -> psycopg.Connection[Any]:
        """The connection under test."""
        return psycopg.connect(self.dsn, autocommit=self.autocommit, cursor_factory=psycopg.ClientCursor)


class PsycopgPool(PsycopgSync):
    """A pool's connection for each transaction, which the pool commits."""

    def connect(self) -> psycopg.Connection[Any]:
        """Open the pool; its connection is taken by `begin`."""
        self.block = ExitStack()
        self.pool = ConnectionPool(
            self.dsn,
            min_size=1,
            max_size=1,
            open=True,
            kwargs={"autocommit": self.autocommit, "prepare_threshold": threshold(prepared=self.prepared)},
        )
        with self.pool.connection() as connection:
            return connection

    def begin(self) -> None:
        """Take a connection."""
        self.block = ExitStack()
        self.connection = self.block.enter_context(self.pool.connection())

    def commit(self) -> None:
        """Give it back."""
        self.block.close()

    def rollback(self) -> None:
        """Give it back with an error."""
        self.connection.rollback()
        self.block.close()

    def close(self) -> None:
        """Close the pool."""
        self.pool.close()


class PsycopgPipeline(PsycopgSync):
    """A connection in autocommit mode, in a pipeline, with an explicit transaction."""

    def connect(self) -> psycopg.Connection[Any]:
        """Connect in autocommit mode; the transaction is explicit."""
        self.block = ExitStack()
        return psycopg.connect(self.dsn, autocommit=True, prepare_threshold=threshold(prepared=self.prepared))

    def begin(self) -> None:
        """Open pipeline and transaction."""
        self.block = ExitStack()
        self.block.enter_context(self.connection.pipeline())
        self.block.enter_context(self.connection.transaction())

    def commit(self) -> None:
        """Leave both."""
        self.block.close()

    def rollback(self) -> None:
        """Leave both with an error."""
        error = psycopg.Rollback()
        self.block.__exit__(psycopg.Rollback, error, None)


class PsycopgAsync(AsyncDriver):
    """`seapost.append_async` on a connection that begins by itself."""

    def __init__(self, dsn: str, *, prepared: bool, autocommit: bool) -> None:
        super().__init__(dsn, prepared=prepared, autocommit=autocommit)
        self.connection: psycopg.AsyncConnection[Any] = self.run(
            psycopg.AsyncConnection.connect(dsn, autocommit=autocommit, prepare_threshold=threshold(prepared=prepared))
        )
        self.savepoints: list[AsyncExitStack] = []

    def begin(self) -> None:
        """The first statement begins."""

    def commit(self) -> None:
        """Commit."""
        self.run(self.connection.commit())

    def rollback(self) -> None:
        """Roll back."""
        self.run(self.connection.rollback())

    def begin_savepoint(self) -> None:
        """A nested block."""
        stack = AsyncExitStack()
        self.run(stack.enter_async_context(self.connection.transaction()))
        self.savepoints.append(stack)

    def end_savepoint(self, how: Literal["release", "rollback"]) -> None:
        """Leave the block."""
        error = psycopg.Rollback() if how == "rollback" else None
        self.run(self.savepoints.pop().__aexit__(None if error is None else type(error), error, None))

    def execute(self, statement: str) -> Rows:
        """Run one statement."""

        async def run() -> Rows:
            cursor = await self.connection.execute(statement.encode())
            return await cursor.fetchall() if cursor.description else []

        return self.run(run())

    async def append_async(self, event: Event, **options: Any) -> UUID:
        """Append one event."""
        return await append_async(self.connection, event, **options)

    async def append_many_async(self, events: Iterable[PreparedEvent]) -> int:
        """Append prepared events."""
        return await append_many_async(self.connection, events)

    def close(self) -> None:
        """Close the connection."""
        self.run(self.connection.close())
        self.runner.close()


class PlainSql(PsycopgSync):
    """SQL text without parameters, as from psql; transactions are typed too."""

    refuses_autocommit = False
    translates = False

    def connect(self) -> psycopg.Connection[Any]:
        """Nothing begins by itself."""
        return psycopg.connect(self.dsn, autocommit=True, prepare_threshold=None)

    def begin(self) -> None:
        """Begin."""
        self.execute("begin")

    def commit(self) -> None:
        """Commit."""
        self.execute("commit")

    def rollback(self) -> None:
        """Roll back."""
        self.execute("rollback")

    def begin_savepoint(self) -> None:
        """A savepoint."""
        self.execute("savepoint here")

    def end_savepoint(self, how: Literal["release", "rollback"]) -> None:
        """End the savepoint."""
        self.execute("release savepoint here" if how == "release" else "rollback to savepoint here")

    def append(self, event: Event, **options: Any) -> UUID:
        """Append one event."""
        prepared = prepare(event, **options)
        self.append_many((prepared,))
        return prepared.event_id

    def append_many(self, events: Iterable[PreparedEvent]) -> int:
        """The call as text, the envelopes as literals."""
        texts = ", ".join(f"'\\x{event.envelope.hex()}'" for event in events)
        ((new,),) = self.execute(f"select seapost.outbox_append_v1(array[{texts}]::bytea[])")
        return new
