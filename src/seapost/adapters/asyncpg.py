"""asyncpg: append in the connection's own transaction, and inbox handlers that work on an asyncpg connection.

Arguments, results and errors are those of `seapost.append_async`. What is not an error of Seapost's, such as
`asyncpg.SerializationError`, passes as asyncpg raises it. Connections come from `asyncpg.connect` or from a pool.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, Unpack
from uuid import UUID

from typing_extensions import override

from seapost.contracts.envelope import PreparedEvent
from seapost.contracts.events import Event
from seapost.inbox.drivers import AsyncTransactions, Known
from seapost.model.errors import AppendOutsideTransaction
from seapost.outbox.append import EventOptions, envelopes_of, prepare
from seapost.store import other_drivers as store
from seapost.store.inbox import NewReceipt
from seapost.store.other_drivers import AsyncpgConnection


async def append_async(
    connection: AsyncpgConnection, event: Event, *, key: str, revision: int, **options: Unpack[EventOptions]
) -> UUID:
    """Append one event to the connection's open transaction; return its id. Arguments and errors as `seapost.append`.

    Raises:
        AppendOutsideTransaction: no transaction is open; the event would commit alone.
    """
    prepared = prepare(event, key=key, revision=revision, **options)
    _ = await append_many_async(connection, (prepared,))
    return prepared.event_id


async def append_many_async(connection: AsyncpgConnection, events: Iterable[PreparedEvent]) -> int:
    """Append at most 10,000 prepared events in one round trip; return how many were new. Errors as `append_async`."""
    envelopes = envelopes_of(events)
    if not connection.is_in_transaction():
        raise AppendOutsideTransaction(
            "Append needs an open transaction: use `async with connection.transaction():` "
            "around the business change and the append"
        )
    return await store.append(connection, envelopes) if envelopes else 0


class Pool(Protocol):
    """What is used of `asyncpg.Pool`."""

    def acquire(self) -> Any:  # noqa: ANN401 - asyncpg's own context manager
        """A connection for the time of an `async with` block."""
        ...


@dataclass(frozen=True, slots=True)
class AsyncpgTransaction:
    """One transaction of an inbox on an asyncpg connection, which is what handlers get."""

    handed: AsyncpgConnection

    async def receive(self, consumer: str, receipts: Sequence[NewReceipt]) -> Known:
        """Write the receipts of new events; return the known ones by event, and `committed_at`."""
        return await store.receive_at(self.handed, consumer=consumer, receipts=receipts)

    async def flush(self) -> None:
        """Nothing is kept back: every statement of a handler was sent."""

    async def committed_at(self) -> datetime:
        """The time that receipts written by this transaction carry; raises when the transaction is failed."""
        return await store.committed_at(self.handed)


class AsyncpgTransactions(AsyncTransactions):
    """For `Inbox(..., transactions=...)`: handlers are `async def` and get an asyncpg connection.

    A handler may open `connection.transaction()`, which is a savepoint there; it never commits and never rolls back.

    Args:
        pool: belongs to the caller. Its sessions should carry time limits (`server_settings`): a handler that waits
            too long inside the transaction then loses it.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    @override
    def open(self) -> AbstractAsyncContextManager[AsyncpgTransaction]:
        """Begin on a connection of the pool; commit at the end of the block, roll back when it raises."""
        return self._open()

    @asynccontextmanager
    async def _open(self) -> AsyncGenerator[AsyncpgTransaction]:
        async with self._pool.acquire() as connection, connection.transaction():
            yield AsyncpgTransaction(connection)
