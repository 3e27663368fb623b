"""Django ≥ 4.2: append inside `transaction.atomic`, and inbox handlers whose ORM calls run beside the receipt.

Arguments, results and errors are those of `seapost.append`. What is not an error of Seapost's passes as Django raises
it (`django.db.DatabaseError` and its kinds). The statement goes through Django's cursor, so that its checks, wrappers
and query log see it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Unpack, cast
from uuid import UUID

import psycopg
from django import db
from django.db import transaction
from typing_extensions import override

from seapost.contracts.envelope import PreparedEvent
from seapost.contracts.events import Event
from seapost.inbox.drivers import Known, Transactions
from seapost.model.errors import AppendOutsideTransaction, InvalidSetting
from seapost.outbox.append import EventOptions, envelopes_of, prepare
from seapost.store import inbox as store
from seapost.store.inbox import NewReceipt
from seapost.store.other_drivers import APPEND_FORMAT, translated_cause

THREADS: Final = 4


def append(
    event: Event, *, key: str, revision: int, using: str = db.DEFAULT_DB_ALIAS, **options: Unpack[EventOptions]
) -> UUID:
    """Append one event to the open transaction of a database of Django's; return its id.

    Args:
        event: as `seapost.append`, and so are `key`, `revision` and `options`.
        using: alias of the database; it must be the one that the business change is made in.

    Raises:
        AppendOutsideTransaction: no transaction is open; the event would commit alone.
        InvalidSetting: the database is not PostgreSQL.
    """
    prepared = prepare(event, key=key, revision=revision, **options)
    _ = append_many((prepared,), using=using)
    return prepared.event_id


def append_many(events: Iterable[PreparedEvent], *, using: str = db.DEFAULT_DB_ALIAS) -> int:
    """Append at most 10,000 prepared events in one round trip; return how many were new. Errors as `append`."""
    envelopes = envelopes_of(events)
    connection = _connection(using)
    if connection.get_autocommit():
        raise AppendOutsideTransaction(
            "Append needs an open transaction: use `with transaction.atomic(using=...):` "
            "around the business change and the append"
        )
    if not envelopes:
        return 0
    with translated_cause(), connection.cursor() as cursor:
        cursor.execute(APPEND_FORMAT, [envelopes])
        return int(cursor.fetchone()[0])


@dataclass(frozen=True, slots=True)
class DjangoTransaction:
    """One transaction of an inbox on a connection of Django's.

    Attributes:
        handed: what handlers get: Django's connection, `django.db.connections[using]`.
    """

    handed: Any

    def receive(self, consumer: str, receipts: Sequence[NewReceipt]) -> Known:
        """Write the receipts of new events; return the known ones by event, and `committed_at`."""
        return store.receive_at(self._driver(), consumer=consumer, receipts=receipts)

    def flush(self) -> None:
        """Nothing is kept back; but a handler must not leave a transaction that can only be rolled back."""
        self.handed.validate_no_broken_transaction()

    def committed_at(self) -> datetime:
        """The time that receipts written by this transaction carry; raises when the transaction is failed."""
        return store.committed_at(self._driver())

    def _driver(self) -> psycopg.Connection[Any]:
        """The connection below, which holds the same transaction."""
        return cast("psycopg.Connection[Any]", self.handed.connection)


class DjangoTransactions(Transactions):
    """For `Inbox(..., transactions=...)`: handlers are plain functions, and their ORM calls join the receipt.

    Handlers run inside `transaction.atomic(using=..., durable=True)`, in threads that each have a connection of
    Django's. `transaction.atomic` inside a handler is a savepoint; `transaction.commit` is refused by Django.

    Args:
        using: alias of the database. Queries of a handler must go to it; Django must use psycopg 3 for it.
        threads: how many batches may run at a time.
    """

    def __init__(self, using: str = db.DEFAULT_DB_ALIAS, *, threads: int = THREADS) -> None:
        if threads < 1:
            raise InvalidSetting(f"An inbox has at least one thread, not {threads}.")
        self._using = using
        self._threads = threads
        self._kept: dict[int, Any] = {}

    @property
    @override
    def threads(self) -> int:
        """How many transactions may be open at a time, each in a thread of its own."""
        return self._threads

    @override
    def open(self) -> AbstractContextManager[DjangoTransaction]:
        """Begin; commit at the end of the block, roll back when it raises."""
        return self._open()

    @override
    def close(self) -> None:
        """Close the connections that `CONN_MAX_AGE` has kept open."""
        while self._kept:
            _, connection = self._kept.popitem()
            connection.close()
            connection.dec_thread_sharing()

    @contextmanager
    def _open(self) -> Generator[DjangoTransaction]:
        connection = self._mine()
        connection.close_if_unusable_or_obsolete()
        try:
            with _atomic(self._using):
                if not isinstance(connection.connection, psycopg.Connection):
                    raise InvalidSetting("The inbox needs Django over psycopg 3; psycopg2 cannot carry its receipts.")
                yield DjangoTransaction(connection)
        finally:
            connection.close_if_unusable_or_obsolete()

    def _mine(self) -> Any:  # noqa: ANN401 - Django has no types
        """This thread's connection, noted so that `close` may close it from another thread."""
        connection = _connection(self._using)
        if id(connection) not in self._kept:
            connection.inc_thread_sharing()
            self._kept[id(connection)] = connection
        return connection


def _atomic(using: str) -> AbstractContextManager[None]:
    block: Any = transaction.atomic(using=using, durable=True)  # pyright: ignore[reportUnknownMemberType]
    return block


def _connection(using: str) -> Any:  # noqa: ANN401 - Django has no types
    connection: Any = cast("Any", db.connections)[using]
    if connection.vendor != "postgresql":
        raise InvalidSetting(f"Append and inbox need PostgreSQL; the database {using!r} is {connection.vendor}.")
    return connection
