"""What a producer of the suite can do, and the thread that it does it in.

A driver blocks and belongs to one thread, as connections of Django do; an asynchronous one has an event loop of its own
there. `Producer` is the test's handle: its calls run in that thread, and `start` does not wait for them.
"""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, ClassVar, Literal, TypeVar
from uuid import UUID

import psycopg
import pytest

from seapost.contracts.envelope import PreparedEvent
from seapost.contracts.events import Event
from seapost.database.sqlstates import driver_error, sqlstate_of
from seapost.model.errors import SeapostError

ResultT = TypeVar("ResultT")
Rows = list[tuple[Any, ...]]

WAIT_SECONDS = 30.0


class Driver(ABC):
    """A connection of one library in one mode; transactions and savepoints are the library's own.

    Attributes:
        refuses_autocommit: False where nothing stands between the user and the server that could refuse.
        translates: whether errors of class SP arrive as exceptions of Seapost.
        autocommit: the connection commits every statement by itself unless told otherwise.
    """

    refuses_autocommit: ClassVar[bool] = True
    translates: ClassVar[bool] = True

    def __init__(self, dsn: str, *, prepared: bool, autocommit: bool) -> None:
        self.dsn = dsn
        self.prepared = prepared
        self.autocommit = autocommit

    @abstractmethod
    def begin(self) -> None:
        """Begin a transaction."""

    @abstractmethod
    def commit(self) -> None:
        """Commit it."""

    @abstractmethod
    def rollback(self) -> None:
        """Roll it back."""

    @abstractmethod
    def begin_savepoint(self) -> None:
        """Begin a savepoint inside it."""

    @abstractmethod
    def end_savepoint(self, how: Literal["release", "rollback"]) -> None:
        """End the innermost savepoint."""

    @abstractmethod
    def execute(self, statement: str) -> Rows:
        """Run one statement without parameters."""

    @abstractmethod
    def append(self, event: Event, **options: Any) -> UUID:
        """Append one event."""

    @abstractmethod
    def append_many(self, events: Iterable[PreparedEvent]) -> int:
        """Append prepared events."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection, whatever state it is in."""


class AsyncDriver(Driver):
    """A driver whose library is asynchronous."""

    def __init__(self, dsn: str, *, prepared: bool, autocommit: bool) -> None:
        super().__init__(dsn, prepared=prepared, autocommit=autocommit)
        self.runner = asyncio.Runner()

    def run(self, coroutine: Coroutine[Any, Any, ResultT]) -> ResultT:
        """Run a coroutine to its end in this driver's loop."""
        return self.runner.run(coroutine)

    def append(self, event: Event, **options: Any) -> UUID:
        """Append one event."""
        return self.run(self.append_async(event, **options))

    def append_many(self, events: Iterable[PreparedEvent]) -> int:
        """Append prepared events."""
        return self.run(self.append_many_async(events))

    def append_for(self, events: Iterable[PreparedEvent], seconds: float) -> int:
        """Append, but be cancelled after `seconds`."""
        return self.run(asyncio.wait_for(self.append_many_async(events), seconds))

    @abstractmethod
    async def append_async(self, event: Event, **options: Any) -> UUID:
        """Append one event."""

    @abstractmethod
    async def append_many_async(self, events: Iterable[PreparedEvent]) -> int:
        """Append prepared events."""


DriverClass = Callable[..., Driver]


class Producer:
    """A driver in its thread."""

    def __init__(
        self, kind: type[Driver], dsn: str, *, prepared: bool = True, autocommit: bool = False, role: str | None = None
    ) -> None:
        self._thread = ThreadPoolExecutor(1, kind.__name__)
        self._role = role
        self.kind = kind
        self.driver = self.call(lambda: kind(dsn, prepared=prepared, autocommit=autocommit))

    def start(self, function: Callable[[], ResultT]) -> Future[ResultT]:
        """Begin a call in the driver's thread."""
        return self._thread.submit(function)

    def call(self, function: Callable[[], ResultT]) -> ResultT:
        """Run a call in the driver's thread."""
        return self.start(function).result(WAIT_SECONDS)

    def execute(self, statement: str) -> Rows:
        """Run one statement."""
        return self.call(lambda: self.driver.execute(statement))

    def append(self, event: Event, **options: Any) -> UUID:
        """Append one event."""
        return self.call(lambda: self.driver.append(event, **options))

    def append_many(self, events: Iterable[PreparedEvent]) -> int:
        """Append prepared events."""
        return self.call(lambda: self.driver.append_many(events))

    @contextmanager
    def transaction(self, *settings: str, then: Literal["commit", "rollback"] = "commit") -> Generator[None]:
        """A transaction of the producer's role; rolled back also when the block raises.

        `settings` are those of `set transaction`.
        """
        self.call(self.driver.begin)
        try:
            for setting in settings:
                self.execute(f"set transaction {setting}")
            if self._role is not None:
                self.execute(f"set local role {self._role}")
            yield
        except BaseException:
            with contextlib.suppress(Exception):  # a lost connection cannot be rolled back, and needs not be
                self.call(self.driver.rollback)
            raise
        self.call(self.driver.commit if then == "commit" else self.driver.rollback)

    @contextmanager
    def savepoint(self, *, then: Literal["release", "rollback"] = "release") -> Generator[None]:
        """A savepoint; rolled back to also when the block raises."""
        self.call(self.driver.begin_savepoint)
        try:
            yield
        except BaseException:
            self.call(lambda: self.driver.end_savepoint("rollback"))
            raise
        self.call(lambda: self.driver.end_savepoint(then))

    @contextmanager
    def lost(self) -> Generator[None]:
        """The block raises what the library raises over a lost connection or a cancelled call."""
        with pytest.raises(Exception) as caught:  # noqa: PT011 - what is raised differs by library
            yield
        assert not isinstance(caught.value, AssertionError | SeapostError), caught.value

    @contextmanager
    def refused(self, sqlstate: str, kind: type[SeapostError] | None = None) -> Generator[None]:
        """The block raises this SQLSTATE: as `kind` where the driver translates, else as the library's own error."""
        with pytest.raises(Exception) as caught:  # noqa: PT011 - what is raised differs by library
            yield
        error = caught.value
        if isinstance(error, SeapostError):
            assert error.sqlstate == sqlstate, error
            assert type(error) is kind
            assert error.__cause__ is not None
            return
        if isinstance(error, psycopg.errors.PipelineAborted):  # what a pipeline says in a failed transaction
            assert sqlstate == "25P02"
            return
        assert kind is None or not self.kind.translates, repr(error)
        said = driver_error(error)
        assert said is not None, repr(error)
        assert sqlstate_of(said) == sqlstate, repr(error)

    def close(self) -> None:
        """Close the driver and end its thread."""
        try:
            self.call(self.driver.close)
        finally:
            self._thread.shutdown(wait=True)
