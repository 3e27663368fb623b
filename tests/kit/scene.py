"""A producer's database, a consumers' database, and the real processes between them, for one fault test."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, LiteralString, Unpack
from uuid import UUID

import psycopg

from tests.kit import builders, handlers, invariants
from tests.kit.builders import PLACED
from tests.kit.database import TestDatabase
from tests.kit.eventually import eventually
from tests.kit.orders import Order, OrderOptions, Part
from tests.kit.processes import Nursery, Worker
from tests.kit.serving import free_port

END_SECONDS_MAX: Final = 90.0
PAUSE_SECONDS: Final = 0.02

_APPEND: Final = "select seapost.outbox_append_v1(%s)"
_UNENDED: Final = "select (select count(*) from seapost.delivery_ready) + (select count(*) from seapost.delivery_lease)"
_GONE: Final = """
select count(*) = 0 from pg_stat_activity
where datname = current_database() and application_name like %s and backend_type = 'client backend'"""

_TERMINATE: Final = """
select pg_terminate_backend(pid) from pg_stat_activity
where datname = current_database() and application_name like %s and backend_type = 'client backend'"""


class Side:
    """One of the two databases as an onlooker sees it; its session comes back when the server does."""

    def __init__(self, database: TestDatabase) -> None:
        self.database = database
        self._connection: psycopg.Connection[Any] | None = None

    def rows(self, query: LiteralString, *arguments: object) -> list[tuple[Any, ...]]:
        """Every row of a query; waits for a server that is away."""

        def look() -> list[list[tuple[Any, ...]]]:
            try:
                return [self.connection.execute(query, arguments or None, binary=True).fetchall()]
            except psycopg.OperationalError:
                self.close()
                return []

        (found,) = eventually(look, what=f"an answer to {query!r}")
        return found

    def value(self, query: LiteralString, *arguments: object) -> Any:  # noqa: ANN401 - a value of the database
        """The only value of a query."""
        ((found,),) = self.rows(query, *arguments)
        return found

    def count(self, table: LiteralString) -> int:
        """How many rows a table has."""
        return self.value("select count(*) from " + table)  # noqa: S608 - a literal

    def unended(self) -> int:
        """Deliveries that are neither acknowledged nor in quarantine."""
        return self.value(_UNENDED)

    @property
    def connection(self) -> psycopg.Connection[Any]:
        """A superuser's session in autocommit mode."""
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(self.database.dsn, autocommit=True)
        return self._connection

    def await_gone(self, part: str) -> None:
        """Wait until no session of a part of Seapost is left: what its process held open is rolled back then."""
        eventually(lambda: self.value(_GONE, f"seapost-{part}%"), what=f"no session of {part}")

    def terminate(self, part: str, *, least: int = 1) -> int:
        """End every session of a part of Seapost, and wait for so many of them; how many there were."""
        ended = 0

        def end() -> bool:
            nonlocal ended
            ended += len(self.rows(_TERMINATE, f"seapost-{part}%"))
            return ended >= least

        eventually(end, what=f"a session of {part}")
        return ended

    def close(self) -> None:
        """Give the session back."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class Scene:
    """Both sides and whoever was started; everybody is killed at the end.

    Attributes:
        port: where a consumer of this scene listens.
    """

    def __init__(
        self,
        source: TestDatabase,
        sink: TestDatabase,
        nursery: Nursery,
        folder: Path,
        *,
        destinations: tuple[str, ...] = handlers.DESTINATIONS,
    ) -> None:
        self.source = Side(source)
        self.sink = Side(sink)
        self.port = free_port()
        self.destinations = destinations
        self.workers: list[Worker] = []
        self._nursery = nursery
        self._folder = folder
        candidate = builders.definition("1", handlers.routes(destinations))
        for side in (self.source, self.sink):
            side.rows("select seapost.delivery_set_register_v1(%s, 'test', 'tester')", candidate)
        self.source.rows("select seapost.delivery_set_activate_v1('1', %s, 'tester')", builders.digest(candidate))
        self.sink.connection.execute(handlers.TABLES)

    # Producer ---------------------------------------------------------------------------------------------

    def append(self, count: int, event_type: str = PLACED, *, do: str = "apply") -> list[UUID]:
        """Append new events in one transaction; their ids in order."""
        envelopes = [handlers.envelope(event_type, do) for _ in range(count)]
        self.source.rows(_APPEND, envelopes)
        return [builders.event_id_of(text) for text in envelopes]

    # Processes --------------------------------------------------------------------------------------------

    def start(self, order: Order) -> Worker:
        """Start a process as ordered."""
        worker = self._nursery.start(order, self._folder)
        self.workers.append(worker)
        return worker

    def dispatcher(self, name: str = "dispatcher", **options: Unpack[OrderOptions]) -> Worker:
        """Start a dispatcher that receives in its own process."""
        return self.start(self._order("dispatcher", name, {"sink": self.sink.database.dsn, **options}))

    def caller(self, name: str = "dispatcher", **options: Unpack[OrderOptions]) -> Worker:
        """Start a dispatcher that calls the consumer over HTTP."""
        return self.start(self._order("dispatcher", name, {"url": f"http://127.0.0.1:{self.port}", **options}))

    def consumer(self, name: str = "consumer", **options: Unpack[OrderOptions]) -> Worker:
        """Start a consumer behind HTTP and return when it listens, or has died on the way."""
        options = {"sink": self.sink.database.dsn, "port": self.port, **options}
        worker = self.start(self._order("consumer", name, options))
        worker.await_report("ready")
        return worker

    def _order(self, part: Part, name: str, options: OrderOptions) -> Order:
        given: OrderOptions = {"source": self.source.database.dsn, "destinations": self.destinations, **options}
        return Order(part=part, name=name, **given)

    # Waiting and judging ----------------------------------------------------------------------------------

    def unended(self) -> int:
        """Deliveries that are neither acknowledged nor in quarantine."""
        return self.source.unended()

    def await_end(self, tend: Callable[[], object] | None = None, *, deadline_seconds: float = END_SECONDS_MAX) -> None:
        """Wait until every delivery has ended; `tend` is called between the looks."""
        ended = "the end of every delivery"
        self.await_true(lambda: self.unended() == 0, ended, tend, deadline_seconds=deadline_seconds)

    def await_true(
        self,
        question: Callable[[], object],
        what: str,
        tend: Callable[[], object] | None = None,
        *,
        deadline_seconds: float = END_SECONDS_MAX,
    ) -> None:
        """Wait for facts; on failure show what the processes have said."""
        pause = threading.Event()

        def look() -> bool:
            if question():
                return True
            if tend is not None:
                tend()
            pause.wait(PAUSE_SECONDS)
            return False

        try:
            eventually(look, what=what, deadline_seconds=deadline_seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}\n" + "\n".join(map(str, self.workers))) from None

    def end(self) -> None:
        """Let every living process stop in order, and see that each does."""
        for worker in self.workers:
            if worker.lives:
                worker.await_report("ready")  # before that nobody listens to the signal
                assert worker.end() == 0, str(worker)

    def assert_kept(self) -> None:
        """Everybody stops, and every invariant holds; asked in new sessions, since a server may have been restarted."""
        self.end()
        self.source.close()
        self.sink.close()
        invariants.assert_kept(self.source.connection, self.sink.connection)

    def outcomes(self, owner: str) -> dict[int | None, int]:
        """The attempts of one dispatcher by how they ended (1 to 4 as in the table, None: not yet)."""
        return dict(
            self.source.rows(
                "select f.outcome, count(*) from seapost.delivery_attempt_start as s"
                " left join seapost.delivery_attempt_finish as f"
                " on (f.event_id, f.attempt_id) = (s.event_id, s.attempt_id) where s.owner = %s group by 1",
                owner,
            )
        )

    def close(self) -> None:
        """Kill whoever still lives and give the sessions back."""
        for worker in self.workers:
            with suppress(ProcessLookupError):
                worker.kill()
        self.source.close()
        self.sink.close()


@contextmanager
def opened(scene: Scene) -> Generator[Scene]:
    """Close the scene at the end of the block."""
    try:
        yield scene
    finally:
        scene.close()
