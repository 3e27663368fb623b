"""Scripted sessions: two connections whose steps a test interleaves by hand, waiting on the visible lock.

    first, second = sessions(database, 2)
    first.execute("update …")
    waiting = second.start("update …")       # does not return yet
    second.wait_until_blocked(by=first)      # the server itself says that it waits
    first.commit()
    waiting.result()

Each session has one thread, so its steps run in order and a blocked step blocks nobody else.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any, Final, Generic, LiteralString, Protocol, TypeVar

import psycopg
import pytest
from psycopg import Connection

from tests.kit.database import TestDatabase
from tests.kit.eventually import Parameters, eventually

STEP_SECONDS_MAX: Final = 30.0

ResultT = TypeVar("ResultT")
Rows = list[tuple[Any, ...]]


class Step(Generic[ResultT]):
    """A step that was started and may still wait for a lock."""

    def __init__(self, future: Future[ResultT]) -> None:
        self._future = future

    @property
    def done(self) -> bool:
        """Whether the step has ended, well or not."""
        return self._future.done()

    def result(self, timeout_seconds: float = STEP_SECONDS_MAX) -> ResultT:
        """Wait for the end; returns its rows or raises its error."""
        return self._future.result(timeout_seconds)


class Session:
    """One connection and the thread that runs its steps in order."""

    def __init__(self, database: TestDatabase, *, role: str | None = None) -> None:
        self._database = database
        self.connection: Connection = database.connect(role)
        self.process_id = self.connection.info.backend_pid
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"session-{self.process_id}")

    def start(self, query: LiteralString, parameters: Parameters | None = None) -> Step[Rows]:
        """Begin a statement without waiting for it."""
        return self.start_call(lambda connection: _rows(connection.execute(query, parameters)))

    def start_call(self, call: Callable[[Connection], ResultT]) -> Step[ResultT]:
        """Begin a call with this session's connection without waiting for it."""
        return Step(self._thread.submit(call, self.connection))

    def execute(self, query: LiteralString, parameters: Parameters | None = None) -> Rows:
        """Run a statement to its end."""
        return self.start(query, parameters).result()

    def call(self, call: Callable[[Connection], ResultT]) -> ResultT:
        """Run a call with this session's connection to its end."""
        return self.start_call(call).result()

    def commit(self) -> None:
        """Commit the open transaction."""
        self.start_call(Connection.commit).result()

    def rollback(self) -> None:
        """Roll the open transaction back."""
        self.start_call(Connection.rollback).result()

    def wait_until_blocked(self, *, by: Session | None = None) -> None:
        """Return as soon as the server shows this session waiting for a lock (of `by`, when named)."""
        with psycopg.connect(self._database.dsn, autocommit=True) as observer:
            wait_until_blocked(observer, self.process_id, by=None if by is None else by.process_id)

    def close(self) -> None:
        """Close the connection, cancelling a step that still waits."""
        if not self.connection.closed:
            self.connection.cancel_safe()
        self._thread.shutdown(wait=True)
        self.connection.close()


def wait_until_blocked(observer: Connection, process_id: int, *, by: int | None = None) -> None:
    """Return as soon as `process_id` is seen waiting for a lock that somebody (`by`, when named) holds."""

    def is_blocked() -> bool:
        row = observer.execute("select pg_blocking_pids(%s)", (process_id,)).fetchone()
        blockers: list[int] = [] if row is None else row[0]
        return bool(blockers) if by is None else by in blockers

    eventually(is_blocked, what=f"process {process_id} waiting for {by or 'a lock'}")


def _rows(cursor: psycopg.Cursor) -> Rows:
    return [] if cursor.description is None else cursor.fetchall()


class SessionFactory(Protocol):
    """What the fixture `sessions` is: `sessions(database, count, role=…)`."""

    def __call__(self, database: TestDatabase, count: int = 2, *, role: str | None = None) -> list[Session]:
        """Open `count` sessions; they are closed at the end of the test."""
        ...


@contextmanager
def _session_factory() -> Generator[SessionFactory]:
    with ExitStack() as stack:

        def make(database: TestDatabase, count: int = 2, *, role: str | None = None) -> list[Session]:
            made = [Session(database, role=role) for _ in range(count)]
            for session in made:
                stack.callback(session.close)
            return made

        yield make


@pytest.fixture
def sessions() -> Iterator[SessionFactory]:
    """Open scripted sessions on a database; request it after the database fixture."""
    with _session_factory() as factory:
        yield factory
