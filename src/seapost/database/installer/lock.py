"""One installer at a time: a session lock taken before anything is read (F62).

The lock is an advisory lock of 64 bits with a namespace of its own (F84). It is polled for, not waited for:
a statement that waits holds a snapshot, and a concurrent index of the installer in front would wait for that.
The server releases it when its holder dies.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import psycopg
from psycopg import Connection

from seapost.database.installer.blockers import advisory_holders, describe
from seapost.model.errors import MigrationBlocked

_POLL_SECONDS_MAX: Final = 0.25


def installer_key(schema: str) -> int:
    """Key of the installer's advisory lock for one schema of the current database."""
    digest = hashlib.sha256(f"seapost.installer/{schema}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


@contextmanager
def installer_lock(connection: Connection, schema: str, *, wait_seconds: float) -> Generator[bool]:
    """Hold the installer's lock; yields whether another installer was waited for.

    Raises:
        MigrationBlocked: the lock was not free within `wait_seconds`; the message names its holder.
    """
    key = installer_key(schema)
    deadline = time.monotonic() + wait_seconds
    pause_seconds = 0.01
    waited = False
    while not _try_lock(connection, key):
        waited = True
        if time.monotonic() >= deadline:
            raise MigrationBlocked(
                f"Another migration of this database has not ended within {wait_seconds:.0f} s; nothing was changed.",
                detail=describe(advisory_holders(connection, key)),
            )
        threading.Event().wait(pause_seconds)
        pause_seconds = min(_POLL_SECONDS_MAX, pause_seconds * 2)
    try:
        yield waited
    finally:
        if not connection.closed:
            _unlock(connection, key)


def _try_lock(connection: Connection, key: int) -> bool:
    row = connection.execute("select pg_catalog.pg_try_advisory_lock(%s)", (key,)).fetchone()
    return row is not None and bool(row[0])


def _unlock(connection: Connection, key: int) -> None:
    try:
        connection.execute("select pg_catalog.pg_advisory_unlock(%s)", (key,))
    except psycopg.OperationalError:
        return  # the session is gone, and the lock with it
