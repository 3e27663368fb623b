"""The history of a database: functions that show its durable facts as lines, all from one snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, LiteralString

import psycopg
from psycopg import IsolationLevel
from psycopg.rows import tuple_row

FETCHED_ROWS: Final = 2_000

_PARTS: Final[tuple[LiteralString, ...]] = (
    "select * from orbit.history_journal_v1(%s)",
    "select * from orbit.history_subscriptions_v1(%s)",
    "select * from orbit.history_audit_v1(%s)",
)


def history_lines(connection: psycopg.Connection[Any], *, namespace: str | None) -> Iterator[str]:
    """Yield the lines of one namespace, or of all, from one snapshot, a few thousand at a time.

    The connection is for this alone: it is left with the isolation level that the snapshot needs.
    """
    connection.autocommit = False
    connection.isolation_level = IsolationLevel.REPEATABLE_READ
    connection.read_only = True
    with connection.transaction():
        for part in _PARTS:
            with connection.cursor("orbit_history", row_factory=tuple_row) as cursor:
                cursor.itersize = FETCHED_ROWS
                _ = cursor.execute(part, (namespace,))
                for row in cursor:
                    yield row[0]
