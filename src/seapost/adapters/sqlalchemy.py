"""SQLAlchemy 2 over psycopg or asyncpg: append in the transaction of a Session or Connection.

Arguments, results and errors are those of `seapost.append`. What is not an error of Seapost's passes as SQLAlchemy
raises it (`DBAPIError` and its kinds). The statement goes through SQLAlchemy, so that its pool learns of a lost
connection and its events see the call.

A Session is flushed first, unless its autoflush is off: the append is the last statement of the business change, and
holds its lock on the delivery set no longer than needed.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Unpack, cast
from uuid import UUID

import psycopg
from sqlalchemy import Connection, bindparam, text
from sqlalchemy import event as events
from sqlalchemy.engine import TwoPhaseTransaction
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session
from sqlalchemy.orm import Session, scoped_session
from sqlalchemy.types import UserDefinedType
from typing_extensions import override

from seapost.contracts.envelope import PreparedEvent
from seapost.contracts.events import Event
from seapost.inbox.drivers import AsyncTransactions, Known, Transactions
from seapost.inbox.failures import TransactionLost
from seapost.model.errors import AppendOutsideTransaction, InvalidSetting
from seapost.outbox.append import EventOptions, envelopes_of, prepare
from seapost.store import inbox as store
from seapost.store import other_drivers
from seapost.store.arrays import ByteaArray
from seapost.store.inbox import NewReceipt
from seapost.store.other_drivers import APPEND_NAMED, COMMITTED_AT, translated_cause

DRIVERS: Final = frozenset({"psycopg", "psycopg_async", "asyncpg"})
THREADS: Final = 4

AppendTarget = Session | scoped_session[Any] | Connection
AsyncAppendTarget = AsyncSession | async_scoped_session[Any] | AsyncConnection


class _Envelopes(UserDefinedType[list[bytes]]):
    """bytea[]: handed to the driver as it is, which writes it in binary form."""

    cache_ok = True

    def get_col_spec(self, **_: object) -> str:
        """The name of the type."""
        return "BYTEA[]"


_APPEND: Final = text(APPEND_NAMED).bindparams(bindparam("envelopes", type_=_Envelopes()))
_COMMITTED_AT: Final = text(COMMITTED_AT)


def append(target: AppendTarget, event: Event, *, key: str, revision: int, **options: Unpack[EventOptions]) -> UUID:
    """Append one event to the transaction of a Session or Connection; return its id.

    A Session or Connection that is not in a transaction begins one, as for any other statement; it stays open until its
    owner commits. Arguments and errors as `seapost.append`.

    Raises:
        AppendOutsideTransaction: the connection commits every statement by itself (isolation level AUTOCOMMIT), the
            Session does not begin by itself and has not begun, or the transaction is of two phases: PostgreSQL does not
            prepare a transaction that wakes a dispatcher with NOTIFY.
        InvalidSetting: another database than PostgreSQL, or another driver than psycopg or asyncpg.
    """
    prepared = prepare(event, key=key, revision=revision, **options)
    _ = append_many(target, (prepared,))
    return prepared.event_id


async def append_async(
    target: AsyncAppendTarget, event: Event, *, key: str, revision: int, **options: Unpack[EventOptions]
) -> UUID:
    """The same as `append`, on an AsyncSession or AsyncConnection."""
    prepared = prepare(event, key=key, revision=revision, **options)
    _ = await append_many_async(target, (prepared,))
    return prepared.event_id


def append_many(target: AppendTarget, events: Iterable[PreparedEvent]) -> int:
    """Append at most 10,000 prepared events in one round trip; return how many were new. Errors as `append`."""
    envelopes = envelopes_of(events)
    if isinstance(target, Connection):
        return _append(target, envelopes)
    return _append_session(target() if isinstance(target, scoped_session) else target, envelopes)


async def append_many_async(target: AsyncAppendTarget, events: Iterable[PreparedEvent]) -> int:
    """The same as `append_many`, on an AsyncSession or AsyncConnection."""
    envelopes = envelopes_of(events)
    if isinstance(target, AsyncConnection):
        return await target.run_sync(_append, envelopes)
    session: AsyncSession = target() if isinstance(target, async_scoped_session) else target
    return await session.run_sync(_append_session, envelopes)


def _append_session(session: Session, envelopes: list[bytes]) -> int:
    if not session.autobegin and not session.in_transaction():
        raise AppendOutsideTransaction(
            "Append needs an open transaction: this Session does not begin by itself; "
            "use `with session.begin():` around the business change and the append"
        )
    if session.autoflush:
        session.flush()
    return _append(session.connection(), envelopes)


def _append(connection: Connection, envelopes: list[bytes]) -> int:
    _require_driver(connection)
    if _commits_by_itself(connection):
        raise AppendOutsideTransaction(
            "Append needs an open transaction: the connection has the isolation level AUTOCOMMIT; "
            "use another one for the business change and the append"
        )
    if isinstance(connection.get_transaction(), TwoPhaseTransaction):
        raise AppendOutsideTransaction(
            "Append does not work in a two-phase transaction: PostgreSQL does not prepare one that wakes a dispatcher"
        )
    if not envelopes:
        return 0
    with translated_cause():
        return int(connection.execute(_APPEND, {"envelopes": ByteaArray(envelopes)}).scalar_one())


def _require_driver(connection: Connection) -> None:
    if connection.dialect.name != "postgresql" or connection.dialect.driver not in DRIVERS:
        raise InvalidSetting(
            "Append and inbox work on PostgreSQL through psycopg or asyncpg, not on "
            f"{connection.dialect.name}+{connection.dialect.driver}."
        )


def _commits_by_itself(connection: Connection) -> bool:
    return bool(getattr(connection.connection.dbapi_connection, "autocommit", False))


# Inbox ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SessionTransaction:
    """One transaction of an inbox in a Session, which is what handlers get."""

    handed: Session

    def receive(self, consumer: str, receipts: Sequence[NewReceipt]) -> Known:
        """Write the receipts of new events; return the known ones by event, and `committed_at`."""
        driver = self.handed.connection().connection.driver_connection
        return store.receive_at(cast("psycopg.Connection[Any]", driver), consumer=consumer, receipts=receipts)

    def flush(self) -> None:
        """Send what the handler left in the Session."""
        self.handed.flush()

    def committed_at(self) -> datetime:
        """The time that receipts written by this transaction carry; raises when the transaction is failed."""
        return self.handed.connection().execute(_COMMITTED_AT).scalar_one()


@dataclass(frozen=True, slots=True)
class AsyncSessionTransaction:
    """One transaction of an inbox in an AsyncSession, which is what handlers get."""

    handed: AsyncSession

    async def receive(self, consumer: str, receipts: Sequence[NewReceipt]) -> Known:
        """Write the receipts of new events; return the known ones by event, and `committed_at`."""
        connection = await self.handed.connection()
        driver: Any = (await connection.get_raw_connection()).driver_connection
        if isinstance(driver, psycopg.AsyncConnection):
            return await store.receive_at_async(
                cast("psycopg.AsyncConnection[Any]", driver), consumer=consumer, receipts=receipts
            )
        return await other_drivers.receive_at(driver, consumer=consumer, receipts=receipts)

    async def flush(self) -> None:
        """Send what the handler left in the Session."""
        await self.handed.flush()

    async def committed_at(self) -> datetime:
        """The time that receipts written by this transaction carry; raises when the transaction is failed."""
        return (await (await self.handed.connection()).execute(_COMMITTED_AT)).scalar_one()


class SessionTransactions(Transactions):
    """For `Inbox(..., transactions=...)`: handlers are plain functions and get a Session.

    The Session is flushed after every handler and committed after the batch. `session.commit` is refused inside a
    handler, and `session.rollback` loses the receipt with everything else, so that the event is tried again;
    `session.begin_nested` is a savepoint.

    Args:
        sessions: makes Sessions, for instance a `sessionmaker`, on an engine over psycopg.
        threads: how many batches may run at a time; the engine's pool should have as many connections.
    """

    def __init__(self, sessions: Callable[[], Session], *, threads: int = THREADS) -> None:
        if threads < 1:
            raise InvalidSetting(f"An inbox has at least one thread, not {threads}.")
        self._sessions = sessions
        self._threads = threads

    @property
    @override
    def threads(self) -> int:
        """How many transactions may be open at a time, each in a thread of its own."""
        return self._threads

    @override
    def open(self) -> AbstractContextManager[SessionTransaction]:
        """Begin; commit at the end of the block, roll back when it raises."""
        return self._open()

    @override
    def close(self) -> None:
        """Nothing is kept: the engine belongs to the caller."""

    @contextmanager
    def _open(self) -> Generator[SessionTransaction]:
        with self._sessions() as session:
            with _kept_open(session.connection()):
                yield SessionTransaction(session)
            session.commit()


class AsyncSessionTransactions(AsyncTransactions):
    """For `Inbox(..., transactions=...)`: handlers are `async def` and get an AsyncSession; else `SessionTransactions`.

    Args:
        sessions: makes AsyncSessions, for instance an `async_sessionmaker`, on an engine over psycopg or asyncpg.
    """

    def __init__(self, sessions: Callable[[], AsyncSession]) -> None:
        self._sessions = sessions

    @override
    def open(self) -> AbstractAsyncContextManager[AsyncSessionTransaction]:
        """Begin; commit at the end of the block, roll back when it raises."""
        return self._open()

    @asynccontextmanager
    async def _open(self) -> AsyncGenerator[AsyncSessionTransaction]:
        async with self._sessions() as session:
            connection = await session.connection()
            opened = AsyncSessionTransaction(session)
            # Over asyncpg SQLAlchemy begins with its own first statement, and receipts do not go through SQLAlchemy.
            _ = await opened.committed_at()
            with _kept_open(connection.sync_connection):
                yield opened
            await session.commit()


@contextmanager
def _kept_open(connection: Connection | None) -> Generator[None]:
    """Within the block nobody commits the connection's transaction: who tries has it rolled back.

    A rollback needs no guard: whatever comes after it is another transaction, which `committed_at` shows.
    """
    assert connection is not None  # noqa: S101 - SQLAlchemy's type allows for one that is not started
    _require_driver(connection)
    if _commits_by_itself(connection) or isinstance(connection.get_transaction(), TwoPhaseTransaction):
        raise InvalidSetting("The transactions of an inbox are plain ones: neither AUTOCOMMIT nor two-phase.")

    def refuse(refused: Connection) -> None:
        # SQLAlchemy believes that a commit ends the transaction, and would hand the connection on as it is.
        refused.dialect.do_rollback(refused.connection)
        raise TransactionLost("A handler does not commit: the inbox does, together with the receipt.")

    events.listen(connection, "commit", refuse)
    try:
        yield
    finally:
        events.remove(connection, "commit", refuse)
