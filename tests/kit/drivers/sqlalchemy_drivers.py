"""SQLAlchemy: Session and Connection over psycopg, AsyncSession and AsyncConnection over psycopg and asyncpg."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal
from uuid import UUID

from sqlalchemy import Connection, CursorResult, Engine, NestedTransaction, Result, create_engine, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession, create_async_engine
from sqlalchemy.orm import Session, SessionTransaction

from seapost.adapters.sqlalchemy import append, append_async, append_many, append_many_async
from seapost.contracts.envelope import PreparedEvent
from seapost.contracts.events import Event
from tests.kit.drivers.base import AsyncDriver, Driver, Rows
from tests.kit.drivers.psycopg_drivers import threshold
from tests.kit.drivers.urls import url_of


def engine_of(dsn: str, *, prepared: bool, autocommit: bool = False, **options: Any) -> Engine:
    """An engine over psycopg."""
    return create_engine(
        url_of(dsn, "postgresql+psycopg"),
        connect_args={"prepare_threshold": threshold(prepared=prepared)},
        **({"isolation_level": "AUTOCOMMIT"} if autocommit else {}),
        **options,
    )


def async_engine_of(
    dsn: str,
    driver: str,
    *,
    prepared: bool,
    autocommit: bool = False,
    **options: Any,
) -> AsyncEngine:
    """An engine over psycopg or asyncpg; without prepared statements behind a pooler that cannot."""
    arguments: dict[str, Any] = {"prepare_threshold": threshold(prepared=prepared)}
    if driver == "asyncpg":
        arguments = {} if prepared else {"statement_cache_size": 0, "prepared_statement_cache_size": 0}
    return create_async_engine(
        url_of(dsn, f"postgresql+{driver}"),
        connect_args=arguments,
        **({"isolation_level": "AUTOCOMMIT"} if autocommit else {}),
        **options,
    )


def _rows(result: Result[Any]) -> Rows:
    has_rows = isinstance(result, CursorResult) and result.returns_rows
    return [tuple(row) for row in result] if has_rows else []


class AlchemyConnection(Driver):
    """A Core Connection over psycopg; it begins by itself."""

    def __init__(self, dsn: str, *, prepared: bool, autocommit: bool) -> None:
        super().__init__(dsn, prepared=prepared, autocommit=autocommit)
        self.engine = engine_of(dsn, prepared=prepared, autocommit=autocommit)
        self.target: Connection | Session = self.open()
        self.savepoints: list[NestedTransaction | SessionTransaction] = []

    def open(self) -> Connection | Session:
        """What appends are given."""
        return self.engine.connect()

    def begin(self) -> None:
        """Begin explicitly."""
        self.target.begin()

    def commit(self) -> None:
        """Commit."""
        self.target.commit()

    def rollback(self) -> None:
        """Roll back."""
        self.target.rollback()

    def begin_savepoint(self) -> None:
        """`begin_nested`."""
        self.savepoints.append(self.target.begin_nested())

    def end_savepoint(self, how: Literal["release", "rollback"]) -> None:
        """End the innermost one."""
        block = self.savepoints.pop()
        block.commit() if how == "release" else block.rollback()

    def execute(self, statement: str) -> Rows:
        """Run one statement."""
        return _rows(self.target.execute(text(statement)))

    def append(self, event: Event, **options: Any) -> UUID:
        """Append one event."""
        return append(self.target, event, **options)

    def append_many(self, events: Iterable[PreparedEvent]) -> int:
        """Append prepared events."""
        return append_many(self.target, events)

    def close(self) -> None:
        """Close the connection and its engine."""
        self.target.close()
        self.engine.dispose()


class AlchemySession(AlchemyConnection):
    """An ORM Session over psycopg; it begins by itself."""

    def open(self) -> Connection | Session:
        """What appends are given."""
        return Session(self.engine)

    def begin(self) -> None:
        """The first statement begins."""


class AsyncAlchemyConnection(AsyncDriver):
    """A Core AsyncConnection over asyncpg."""

    driver = "asyncpg"

    def __init__(self, dsn: str, *, prepared: bool, autocommit: bool) -> None:
        super().__init__(dsn, prepared=prepared, autocommit=autocommit)
        self.engine = async_engine_of(dsn, self.driver, prepared=prepared, autocommit=autocommit)
        self.target: AsyncConnection | AsyncSession = self.run(self.open())
        self.savepoints: list[Any] = []

    async def open(self) -> AsyncConnection | AsyncSession:
        """What appends are given."""
        return await self.engine.connect()

    def begin(self) -> None:
        """Begin explicitly."""
        self.run(_started(self.target.begin()))

    def commit(self) -> None:
        """Commit."""
        self.run(self.target.commit())

    def rollback(self) -> None:
        """Roll back."""
        self.run(self.target.rollback())

    def begin_savepoint(self) -> None:
        """`begin_nested`."""
        self.savepoints.append(self.run(_started(self.target.begin_nested())))

    def end_savepoint(self, how: Literal["release", "rollback"]) -> None:
        """End the innermost one."""
        block = self.savepoints.pop()
        self.run(block.commit() if how == "release" else block.rollback())

    def execute(self, statement: str) -> Rows:
        """Run one statement."""

        async def run() -> Rows:
            return _rows(await self.target.execute(text(statement)))

        return self.run(run())

    async def append_async(self, event: Event, **options: Any) -> UUID:
        """Append one event."""
        return await append_async(self.target, event, **options)

    async def append_many_async(self, events: Iterable[PreparedEvent]) -> int:
        """Append prepared events."""
        return await append_many_async(self.target, events)

    def close(self) -> None:
        """Close the connection and its engine."""
        self.run(self.target.close())
        self.run(self.engine.dispose())
        self.runner.close()


class AsyncAlchemySession(AsyncAlchemyConnection):
    """An AsyncSession over asyncpg."""

    async def open(self) -> AsyncConnection | AsyncSession:
        """What appends are given."""
        return AsyncSession(self.engine)


class AsyncAlchemyPsycopg(AsyncAlchemySession):
    """An AsyncSession over psycopg."""

    driver = "psycopg"


async def _started(block: Any) -> Any:
    return await block
