"""A subscriber's inbox: one file, with the result and the business change in one transaction.

`applied` has no key and never refuses a row: a result that was applied twice is there twice, and is found.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from orbit.sdk import ReceivedEvent

_TABLES: Final = """
create table if not exists inbox (
    event_id text primary key, sequence integer not null, event_type text not null, task_id text not null,
    snapshot_text text not null);
create table if not exists applied (event_id text not null);
create table if not exists met (event_id text not null);
create table if not exists tasks (task_id text primary key, revision integer not null, state text not null);"""


@dataclass(frozen=True, slots=True)
class Entry:
    """One result as the subscriber has it."""

    sequence: int
    event_type: str
    task_id: str
    snapshot_text: str


class Inbox:
    """The inbox of one process; used by one thread at a time."""

    def __init__(self, file: Path) -> None:
        self._database = sqlite3.connect(file, isolation_level=None, timeout=30)
        self._database.execute("pragma journal_mode = wal").close()
        self._database.execute("pragma synchronous = full").close()
        self._database.executescript(_TABLES).close()

    def apply(self, event: ReceivedEvent, task_id: str, revision: int, state: str) -> bool:
        """Store a result and move its task forward; return False when it was there already."""
        entry = (event.event_id, event.sequence, event.event_type, task_id, event.snapshot_text)
        database = self._database
        database.execute("begin immediate").close()
        try:
            inserted = database.execute("insert into inbox values (?, ?, ?, ?, ?) on conflict do nothing", entry)
            if is_new := inserted.rowcount == 1:
                database.execute("insert into applied values (?)", (event.event_id,)).close()
                database.execute(
                    "insert into tasks values (?, ?, ?) on conflict (task_id) do update "
                    "set revision = excluded.revision, state = excluded.state where excluded.revision > tasks.revision",
                    (task_id, revision, state),
                ).close()
            else:
                database.execute("insert into met values (?)", (event.event_id,)).close()
            database.execute("commit").close()
        except BaseException:
            database.execute("rollback").close()
            raise
        return is_new

    def close(self) -> None:
        """Close the file."""
        self._database.close()


@dataclass(frozen=True, slots=True)
class Contents:
    """What an inbox holds in the end.

    Attributes:
        entries: results by event id.
        applied: how many business changes there were.
        distinct: of how many results.
        met: how often a result came that was there already.
        states: last known state by task.
    """

    entries: dict[str, Entry]
    applied: int
    distinct: int
    met: int
    states: dict[str, str]


def read_inbox(file: Path) -> Contents:
    """Read an inbox that nobody writes any more."""
    with closing(sqlite3.connect(file)) as database:
        database.executescript(_TABLES).close()
        rows = database.execute("select event_id, sequence, event_type, task_id, snapshot_text from inbox").fetchall()
        applied, distinct = database.execute("select count(*), count(distinct event_id) from applied").fetchone()
        (met,) = database.execute("select count(*) from met").fetchone()
        states = dict(database.execute("select task_id, state from tasks").fetchall())
    return Contents({row[0]: Entry(*row[1:]) for row in rows}, applied, distinct, met, states)
