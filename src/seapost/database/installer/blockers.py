"""Who blocks whom: the sessions a migration waits for, named while it waits (F63)."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

import psycopg
from psycopg import Connection

from seapost.database.pool import part_dsn

_BLOCKERS: Final = """
select a.pid, coalesce(nullif(a.application_name, ''), 'no application name'), coalesce(a.usename, 'no user'),
       coalesce(a.state, 'unknown'), coalesce(extract(epoch from clock_timestamp() - a.xact_start), 0)::float8
from unnest(pg_catalog.pg_blocking_pids(%s)) as b (pid)
join pg_catalog.pg_stat_activity as a on a.pid = b.pid
order by a.pid"""
_HOLDERS: Final = """
select a.pid, coalesce(nullif(a.application_name, ''), 'no application name'), coalesce(a.usename, 'no user'),
       coalesce(a.state, 'unknown'), coalesce(extract(epoch from clock_timestamp() - a.xact_start), 0)::float8
from pg_catalog.pg_locks as l
join pg_catalog.pg_stat_activity as a on a.pid = l.pid
where l.locktype = 'advisory' and l.granted and l.objsubid = 1
  and l.database = (select d.oid from pg_catalog.pg_database as d where d.datname = current_database())
  and (l.classid::bigint << 32) | l.objid::bigint = %s
order by a.pid"""


@dataclass(frozen=True, slots=True)
class Blocker:
    """A session that holds what another one waits for. Its query is not shown: it may hold payload."""

    process_id: int
    application: str
    user: str
    state: str
    transaction_seconds: float

    def __str__(self) -> str:
        return (
            f"process {self.process_id} ({self.application}, user {self.user}, {self.state}, "
            f"transaction open for {self.transaction_seconds:.0f} s)"
        )


def blockers_of(connection: Connection, process_id: int) -> tuple[Blocker, ...]:
    """The sessions that `process_id` waits for at this moment."""
    return tuple(Blocker(*row) for row in connection.execute(_BLOCKERS, (process_id,)))


def advisory_holders(connection: Connection, key: int) -> tuple[Blocker, ...]:
    """The sessions of this database that hold the advisory lock `key` (64 bits)."""
    return tuple(Blocker(*row) for row in connection.execute(_HOLDERS, (key,)))


def describe(blockers: tuple[Blocker, ...]) -> str:
    """The blockers in one line, for a message."""
    return "; ".join(map(str, blockers)) or "a session that has gone meanwhile"


class BlockerWatch:
    """Remembers, from a second connection, whom a session last waited for.

    When a lock timeout ends the wait, the server has already forgotten who was in the way; so a thread
    asks while the wait lasts. The watch only serves the message: without a second connection it is blank.
    """

    def __init__(self, dsn: str, process_id: int, *, every_seconds: float = 0.1) -> None:
        self._dsn = dsn
        self._process_id = process_id
        self._every_seconds = every_seconds
        self._stopped = threading.Event()
        self._last: tuple[Blocker, ...] = ()
        self._thread = threading.Thread(target=self._watch, name="seapost-migrate-watch", daemon=True)

    @property
    def last(self) -> tuple[Blocker, ...]:
        """The blockers seen last; empty when the session never waited."""
        return self._last

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        self._thread.join()

    def _watch(self) -> None:
        try:
            with psycopg.connect(part_dsn(self._dsn, "migrate-watch"), autocommit=True) as connection:
                while not self._stopped.wait(self._every_seconds):
                    self._last = blockers_of(connection, self._process_id) or self._last
        except psycopg.Error:
            return
