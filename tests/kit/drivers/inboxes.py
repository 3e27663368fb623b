"""An inbox in the transactions of each library; its handlers do what the payload of the event tells them.

| Word | The handler |
|---|---|
| `apply` | writes its effect |
| `fail`, `retry`, `reject` | writes its effect and raises |
| `swallow` | hides an error of the database that aborted the transaction |
| `savepoint` | writes its effect; what it tried in a savepoint failed and is gone |
| `late` | writes an effect that the database refuses at the commit |
| `end`, `undo` | commits or rolls back with the library's means, which is refused or found |
| `commit` | commits in SQL text |
| `die` | ends its own server process |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, Final
from uuid import UUID

import asyncpg
from django.db import transaction
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session

from seapost.adapters.asyncpg import AsyncpgTransactions
from seapost.adapters.sqlalchemy import AsyncSessionTransactions, SessionTransactions
from seapost.inbox.drivers import AsyncTransactions, Transactions
from seapost.inbox.inbox import Inbox
from seapost.inbox.received import Received
from seapost.model.errors import Reject, Retry
from tests.kit.consumer import NAME, Ordered
from tests.kit.drivers.django_drivers import add_database, atomic, connections
from tests.kit.drivers.sqlalchemy_drivers import async_engine_of, engine_of
from tests.kit.drivers.urls import url_of

from seapost.adapters.django import DjangoTransactions  # isort: skip - Django wants its settings first

POOL_SIZE: Final = 4
BROKEN: Final = "select 1 / 0"
DIE: Final = "select pg_terminate_backend(pg_backend_pid())"


def effect(event_id: UUID, colour: str) -> str:
    """The statement of the one effect; the colour `late` breaks a rule that is checked at the commit."""
    return f"insert into public.effect (event_id, colour) values ('{event_id}', '{colour}')"  # noqa: S608 - of the test


def obey(word: str) -> None:
    """Raise what the word says."""
    match word:
        case "fail":
            raise LookupError
        case "retry":
            raise Retry("not yet", after_seconds=7.5)
        case "reject":
            raise Reject("never", code="schema_invalid")
        case _:
            pass


class Blocking(ABC):
    """A library whose handlers are plain functions."""

    def __init__(self, dsn: str, *, prepared: bool) -> None:
        self.dsn = dsn
        self.prepared = prepared

    @asynccontextmanager
    async def inbox(self) -> AsyncGenerator[Inbox]:
        """The inbox; at the end everything is closed."""
        async with AsyncExitStack() as stack:
            inbox = Inbox(NAME, transactions=await self.open(stack))
            inbox.consumer(Ordered)(self.handle)
            yield inbox

    @abstractmethod
    async def open(self, stack: AsyncExitStack) -> Transactions:
        """The transactions of the library."""

    @abstractmethod
    def execute(self, handed: Any, statement: str) -> None:
        """Run one statement in the transaction."""

    @abstractmethod
    def savepoint(self, handed: Any) -> Any:
        """A block that is a savepoint."""

    @abstractmethod
    def end(self, handed: Any) -> None:
        """Commit, which never keeps anything."""

    @abstractmethod
    def undo(self, handed: Any) -> None:
        """Roll back, which never keeps anything."""

    def handle(self, handed: Any, event: Ordered, received: Received) -> None:
        """Do what the event says."""
        self.execute(handed, effect(received.event_id, "late" if event.do == "late" else "sync"))
        match event.do:
            case "swallow":
                with suppress(Exception):
                    self.execute(handed, BROKEN)
            case "savepoint":
                with suppress(Exception), self.savepoint(handed):
                    self.execute(handed, effect(received.event_id, "undone"))
                    self.execute(handed, BROKEN)
            case "end":
                self.end(handed)
            case "undo":
                self.undo(handed)
            case "commit":
                self.execute(handed, "commit")
            case "die":
                self.execute(handed, DIE)
            case _:
                obey(event.do)


class AlchemyInbox(Blocking):
    """A Session over psycopg."""

    async def open(self, stack: AsyncExitStack) -> Transactions:
        """A pool of the engine's own."""
        engine = engine_of(self.dsn, prepared=self.prepared, pool_size=POOL_SIZE)
        stack.callback(engine.dispose)
        return SessionTransactions(lambda: Session(engine), threads=POOL_SIZE)

    def execute(self, handed: Session, statement: str) -> None:
        """Run one statement."""
        handed.execute(text(statement))

    def savepoint(self, handed: Session) -> Any:
        """`begin_nested`."""
        return handed.begin_nested()

    def end(self, handed: Session) -> None:
        """Commit."""
        handed.commit()

    def undo(self, handed: Session) -> None:
        """Roll back."""
        handed.rollback()


class DjangoInbox(Blocking):
    """Django's connection, kept open between transactions."""

    async def open(self, stack: AsyncExitStack) -> Transactions:  # noqa: ARG002 - the inbox closes what Django keeps
        """A database of Django's own."""
        self.alias = add_database(self.dsn, prepared=self.prepared, max_age_seconds=None)
        return DjangoTransactions(self.alias, threads=POOL_SIZE)

    def execute(self, handed: Any, statement: str) -> None:
        """Run one statement, as the ORM would: on the connection of this alias and thread."""
        assert handed is connections[self.alias]
        with handed.cursor() as cursor:
            cursor.execute(statement)

    def savepoint(self, handed: Any) -> Any:
        """A block inside the block."""
        return atomic(handed.alias)

    def end(self, handed: Any) -> None:
        """Commit."""
        transaction.commit(using=handed.alias)  # pyright: ignore[reportUnknownMemberType]

    def undo(self, handed: Any) -> None:
        """Roll back."""
        transaction.rollback(using=handed.alias)  # pyright: ignore[reportUnknownMemberType]


class DjangoClientBindingInbox(DjangoInbox):
    """Django's default: parameters are written into the statement by the client, and no connection is kept."""

    async def open(self, stack: AsyncExitStack) -> Transactions:
        """A database of Django's own."""
        transactions = await super().open(stack)
        connections.settings[self.alias].update(OPTIONS={}, CONN_MAX_AGE=0)
        return transactions


class Awaiting(ABC):
    """A library whose handlers are `async def`."""

    def __init__(self, dsn: str, *, prepared: bool) -> None:
        self.dsn = dsn
        self.prepared = prepared

    @asynccontextmanager
    async def inbox(self) -> AsyncGenerator[Inbox]:
        """The inbox; at the end everything is closed."""
        async with AsyncExitStack() as stack:
            inbox = Inbox(NAME, transactions=await self.open(stack))
            inbox.consumer(Ordered)(self.handle)
            yield inbox

    @abstractmethod
    async def open(self, stack: AsyncExitStack) -> AsyncTransactions:
        """The transactions of the library."""

    @abstractmethod
    async def execute(self, handed: Any, statement: str) -> None:
        """Run one statement in the transaction."""

    @abstractmethod
    def savepoint(self, handed: Any) -> Any:
        """A block that is a savepoint."""

    @abstractmethod
    async def end(self, handed: Any) -> None:
        """Commit, which never keeps anything."""

    @abstractmethod
    async def undo(self, handed: Any) -> None:
        """Roll back, which never keeps anything."""

    async def handle(self, handed: Any, event: Ordered, received: Received) -> None:
        """Do what the event says."""
        await self.execute(handed, effect(received.event_id, "late" if event.do == "late" else "async"))
        match event.do:
            case "swallow":
                with suppress(Exception):
                    await self.execute(handed, BROKEN)
            case "savepoint":
                with suppress(Exception):
                    async with self.savepoint(handed):
                        await self.execute(handed, effect(received.event_id, "undone"))
                        await self.execute(handed, BROKEN)
            case "end":
                await self.end(handed)
            case "undo":
                await self.undo(handed)
            case "commit":
                await self.execute(handed, "commit")
            case "die":
                await self.execute(handed, DIE)
            case _:
                obey(event.do)


class AsyncAlchemyInbox(Awaiting):
    """An AsyncSession over asyncpg."""

    driver = "asyncpg"

    async def open(self, stack: AsyncExitStack) -> AsyncTransactions:
        """A pool of the engine's own."""
        engine = async_engine_of(self.dsn, self.driver, prepared=self.prepared, pool_size=POOL_SIZE)
        stack.push_async_callback(engine.dispose)
        return AsyncSessionTransactions(lambda: AsyncSession(engine))

    async def execute(self, handed: AsyncSession, statement: str) -> None:
        """Run one statement."""
        await handed.execute(text(statement))

    def savepoint(self, handed: AsyncSession) -> Any:
        """`begin_nested`."""
        return handed.begin_nested()

    async def end(self, handed: AsyncSession) -> None:
        """Commit."""
        await handed.commit()

    async def undo(self, handed: AsyncSession) -> None:
        """Roll back."""
        await handed.rollback()


class AsyncAlchemyPsycopgInbox(AsyncAlchemyInbox):
    """An AsyncSession over psycopg."""

    driver = "psycopg"


class AsyncpgInbox(Awaiting):
    """A connection of an asyncpg pool; it has no means to commit but SQL text."""

    async def open(self, stack: AsyncExitStack) -> AsyncTransactions:
        """A pool."""
        library: Any = asyncpg
        pool = await library.create_pool(
            url_of(self.dsn), min_size=1, max_size=POOL_SIZE, statement_cache_size=100 if self.prepared else 0
        )
        stack.push_async_callback(pool.close)
        return AsyncpgTransactions(pool)

    async def execute(self, handed: Any, statement: str) -> None:
        """Run one statement."""
        await handed.execute(statement)

    def savepoint(self, handed: Any) -> Any:
        """A block inside the block."""
        return handed.transaction()

    async def end(self, handed: Any) -> None:
        """Commit."""
        raise NotImplementedError

    async def undo(self, handed: Any) -> None:
        """Roll back."""
        raise NotImplementedError


INBOXES: Final[Mapping[str, type[Blocking | Awaiting]]] = {
    "sqlalchemy": AlchemyInbox,
    "sqlalchemy-async-psycopg": AsyncAlchemyPsycopgInbox,
    "sqlalchemy-async-asyncpg": AsyncAlchemyInbox,
    "asyncpg": AsyncpgInbox,
    "django": DjangoInbox,
    "django-client-binding": DjangoClientBindingInbox,
}
