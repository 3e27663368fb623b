"""The receiver's own database: an inbox row and the business change in one local transaction.

The inbox is keyed by `event_id`. Whatever is delivered again finds its row and changes nothing. A business row is keyed
by the task and only moves forward, because results of one task may arrive in another order than they happened.

`task.needs_review` is neither success nor failure: somebody has to look, and an authoritative result may follow.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, LiteralString, Protocol

import psycopg

from orbit.sdk import Category, ReceivedEvent

FAILPOINT_VARIABLE: Final = "ORBIT_INBOX_FAILPOINT"
ASLEEP_SECONDS: Final = 3600

TABLES: Final = (
    """create table if not exists inbox (
        event_id text primary key, delivery_id text not null, sequence bigint not null, event_type text not null,
        task_id text not null, task_revision bigint not null, snapshot_text text not null,
        received_at text not null)""",
    """create table if not exists task_results (
        task_id text primary key, task_revision bigint not null, state text not null, needs_review integer not null,
        effect_uncertain integer not null, result_text text not null, event_id text not null)""",
    "create table if not exists result_counters (event_type text primary key, n integer not null)",
)
REMEMBER: Final = """
    insert into inbox (event_id, delivery_id, sequence, event_type, task_id, task_revision, snapshot_text, received_at)
    values ({event_id}, {delivery_id}, {sequence}, {event_type}, {task_id}, {task_revision}, {snapshot_text},
            {received_at})
    on conflict (event_id) do nothing"""
APPLY: Final = """
    insert into task_results (task_id, task_revision, state, needs_review, effect_uncertain, result_text, event_id)
    values ({task_id}, {task_revision}, {state}, {needs_review}, {effect_uncertain}, {result_text}, {event_id})
    on conflict (task_id) do update
    set task_revision = excluded.task_revision, state = excluded.state, needs_review = excluded.needs_review,
        effect_uncertain = excluded.effect_uncertain, result_text = excluded.result_text, event_id = excluded.event_id
    where excluded.task_revision > task_results.task_revision"""
COUNT: Final = """
    insert into result_counters (event_type, n) values ({event_type}, 1)
    on conflict (event_type) do update set n = result_counters.n + 1"""

COLUMNS: Final[tuple[LiteralString, ...]] = (
    "event_id",
    "delivery_id",
    "sequence",
    "event_type",
    "task_id",
    "task_revision",
    "snapshot_text",
    "received_at",
    "state",
    "needs_review",
    "effect_uncertain",
    "result_text",
)
SQLITE: Final[dict[str, LiteralString]] = {name: f":{name}" for name in COLUMNS}
POSTGRES: Final[dict[str, LiteralString]] = {name: f"%({name})s" for name in COLUMNS}
"""How the two drivers write a parameter."""


class Store(Protocol):
    """A database that takes events."""

    def apply(self, event: ReceivedEvent) -> bool:
        """Store an event and its business change; return False when it was there already. Commits before it returns."""
        ...

    def close(self) -> None:
        """Close the database."""
        ...


def open_store(address: str) -> Store:
    """Open the inbox and make its tables: a PostgreSQL address, or the name of an SQLite file."""
    if address.startswith(("postgresql://", "postgres://")):
        return PostgresStore(address)
    return SqliteStore(address)


class SqliteStore:
    """An inbox in one file. One connection serves all handlers, one after the other."""

    def __init__(self, file: str) -> None:
        self._lock = threading.Lock()
        self._database = sqlite3.connect(file, isolation_level=None, check_same_thread=False, timeout=30)
        for statement in ("pragma journal_mode = wal", "pragma synchronous = full", *TABLES):
            self._database.execute(statement).close()

    def apply(self, event: ReceivedEvent) -> bool:
        """Store one event; the write lock is taken at once, so that nothing can come between look and write."""
        values = values_of(event)
        with self._lock:
            database = self._database
            database.execute("begin immediate")
            try:
                is_new = database.execute(REMEMBER.format(**SQLITE), values).rowcount == 1
                if is_new:
                    database.execute(APPLY.format(**SQLITE), values)
                    database.execute(COUNT.format(**SQLITE), values)
                failpoint("in_tx")
                database.execute("commit")
            except BaseException:
                database.execute("rollback")
                raise
        return is_new

    def close(self) -> None:
        """Close the file."""
        self._database.close()


class PostgresStore:
    """An inbox in PostgreSQL. One connection serves all handlers, one after the other."""

    def __init__(self, address: str) -> None:
        self._lock = threading.Lock()
        self._database = psycopg.connect(address, autocommit=True)
        for statement in TABLES:
            self._database.execute(statement)

    def apply(self, event: ReceivedEvent) -> bool:
        """Store one event; a twin in another process waits at the inbox's key and then finds the row."""
        values = values_of(event)
        with self._lock, self._database.transaction():
            is_new = self._database.execute(REMEMBER.format(**POSTGRES), values).rowcount == 1
            if is_new:
                self._database.execute(APPLY.format(**POSTGRES), values)
                self._database.execute(COUNT.format(**POSTGRES), values)
            failpoint("in_tx")
        return is_new

    def close(self) -> None:
        """Close the connection."""
        self._database.close()


def values_of(event: ReceivedEvent) -> Mapping[str, str | int]:
    """What is stored of an event; the texts are exact, digit for digit."""
    return {
        "event_id": event.event_id,
        "delivery_id": event.delivery_id,
        "sequence": event.sequence,
        "event_type": event.event_type,
        "task_id": event.snapshot["task_id"],
        "task_revision": event.snapshot["revision"],
        "snapshot_text": event.snapshot_text,
        "received_at": datetime.now(UTC).isoformat(),
        "state": event.snapshot["state"],
        "needs_review": int(event.category is Category.REVIEW),
        "effect_uncertain": int(event.snapshot["effect_uncertain"]),
        "result_text": event.result_text,
    }


def failpoint(name: str) -> None:
    """For the regression that kills this process: say where we are, and stay there (EXM-08)."""
    if os.environ.get(FAILPOINT_VARIABLE) == name:
        print(name, flush=True)
        time.sleep(ASLEEP_SECONDS)
