"""The stage of one round: two databases, a crew that delivers, a producer that goes on, and what the producers know.

Every event of a round has a business row, `placed_order`, written in its own transaction: that table, and nothing of
Seapost, says what was committed.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NamedTuple, Unpack

from psycopg import conninfo

from seapost.database.embedded import EmbeddedServer
from tests.fault.matrix.measure import Limits, Machine
from tests.kit import builders, handlers, producer
from tests.kit.builders import PLACED, SHIPPED
from tests.kit.database import TestDatabase
from tests.kit.orders import Order, OrderOptions
from tests.kit.processes import Nursery, Worker
from tests.kit.scene import Scene

LEASE_SECONDS: Final = 1.0
LIMITS: Final = Limits(lease_seconds=LEASE_SECONDS, recovery_seconds=5.0, grace_seconds=4.0)
LINE: Final[dict[str, Any]] = {"lease_seconds": LEASE_SECONDS, "timeout_seconds": 3.0, "batch_size": 50}
PROCESS: Final[dict[str, Any]] = {"drain_seconds": 2.0, "give_back_seconds": 1.0}
TIMEOUTS: Final = {"statement_seconds": 4.0, "lock_seconds": 1.0, "idle_in_transaction_seconds": 1.0}
"""Of the consumers' sessions, shorter than by default as the lease is. A consumer that freezes inside its transaction
keeps its events from everybody until the last of these ends it."""
CONSUMER: Final = "consumer"
DISPATCHERS: Final = ("dispatcher-1", "dispatcher-2")

_APPEND: Final = "select seapost.outbox_append_v1(%s)"
_ROWS: Final = """
insert into public.placed_order (event_id, number, event_type)
select event_id, 0, %s from unnest(%s::uuid[]) as e(event_id)"""
_NOW: Final = "select clock_timestamp()"
_OPEN: Final = """
select exists (
    select from (select event_id from seapost.delivery_ready union all select event_id from seapost.delivery_lease) as o
    join seapost.event as e on e.event_id = o.event_id where e.created_at <= %s)"""
_LAST: Final = """
select extract(epoch from max(a.acknowledged_at) - %s::timestamptz)::float8
from seapost.delivery_acknowledgement as a join seapost.event as e on e.event_id = a.event_id
where e.created_at <= %s"""
_RATE: Final = """
select count(*) / extract(epoch from max(a.acknowledged_at) - min(s.started_at))::float8
from seapost.delivery_acknowledgement as a
join seapost.delivery_attempt_start as s on (s.event_id, s.attempt_id) = (a.event_id, a.attempt_id)
where a.event_id = any (%s)"""


class Home(StrEnum):
    """A database server.

    SHARED is quick and outlives every round; OWN keeps every commit that it answered, takes few connections and may be
    crashed; SMALL lies on a disk that can be filled.
    """

    SHARED = "shared"
    OWN = "own"
    SMALL = "small"


class Homes(NamedTuple):
    """Where the two databases of a round lie."""

    source: Home
    sink: Home


ALL_SHARED: Final = Homes(Home.SHARED, Home.SHARED)
Beneath = tuple[EmbeddedServer | None, EmbeddedServer | None]
"""The embedded servers under the two databases."""


@dataclass
class Ledger:
    """What the producers of a round know of their own transactions, by event id."""

    committed: set[str] = field(default_factory=set[str])
    doubtful: set[str] = field(default_factory=set[str])
    doomed: set[str] = field(default_factory=set[str])

    def read(self, worker: Worker) -> None:
        """Take in what one producer has reported."""
        words = {"committed ": self.committed, "trying ": self.doubtful, "in doubt ": self.doubtful}
        for line in worker.reports:
            for word, known in {**words, "doomed ": self.doomed}.items():
                if line.startswith(word):
                    known.update(line.removeprefix(word).split())


class Stage(Scene):
    """One round's databases and processes.

    Attributes:
        rng: every choice of the round.
        over_http: whether the crew calls a consumer process, or receives in the dispatchers themselves.
        homes, servers: where the two databases lie.
        held: what stands between the processes, closed with the stage.
        machine: how much of it others take.
    """

    def __init__(
        self,
        source: TestDatabase,
        sink: TestDatabase,
        nursery: Nursery,
        folder: Path,
        *,
        rng: random.Random,
        homes: Homes = ALL_SHARED,
        servers: Beneath = (None, None),
    ) -> None:
        super().__init__(source, sink, nursery, folder)
        self.source.connection.execute(producer.TABLES)
        self.rng = rng
        self.over_http = rng.random() < 0.5
        self.homes = homes
        self.servers = servers
        self.held = ExitStack()
        self.schedule = ["over HTTP" if self.over_http else "in process"]
        self.ledger = Ledger()
        self.staff: dict[str, Worker] = {}
        self.machine = Machine(self._roots)
        self._posts: dict[str, Callable[[], Worker]] = {}
        self._feeder: Worker | None = None

    def plan(self, step: str) -> None:
        """Write one seeded choice into the schedule."""
        self.schedule.append(step)

    def linger(self, least_seconds: float, most_seconds: float) -> float:
        """Let the work go on for a time that the seed has chosen; how long it was."""
        seconds = self.rng.uniform(least_seconds, most_seconds)
        threading.Event().wait(seconds)
        return seconds

    def now(self) -> datetime:
        """The time of the producer's database."""
        return self.source.value(_NOW)

    def _roots(self) -> list[int]:
        """The servers, which are nobody's children."""
        return [server.process_id or 0 for server in self.servers if server is not None]

    # Crew -------------------------------------------------------------------------------------------------

    def start_crew(
        self,
        *,
        consumer: OrderOptions | None = None,
        first: OrderOptions | None = None,
        second: OrderOptions | None = None,
    ) -> None:
        """Start two dispatchers, and the consumer where calls go over HTTP; options replace parts of their orders."""
        if self.over_http:
            told: OrderOptions = {"consumer_timeouts": TIMEOUTS, **(consumer or {})}
            self.hire(CONSUMER, lambda: self.consumer(CONSUMER, **told))
        for name, options in zip(DISPATCHERS, (first, second), strict=True):
            self.hire(name, lambda name=name, options=options: self.deliverer(name, **(options or {})))

    def hire(self, name: str, start: Callable[[], Worker]) -> Worker:
        """Start somebody who is to be replaced when dead."""
        self._posts[name] = start
        self.staff[name] = start()
        return self.staff[name]

    def tend(self) -> None:
        """Replace whoever has died."""
        for name, start in self._posts.items():
            if not self.staff[name].lives:
                self.staff[name] = start()

    def deliverer(self, name: str, **options: Unpack[OrderOptions]) -> Worker:
        """Start a dispatcher of this stage; nobody replaces it unless it is hired."""
        start = self.caller if self.over_http else self.dispatcher
        told: OrderOptions = {
            "destination_settings": LINE,
            "dispatcher_settings": PROCESS,
            "consumer_timeouts": TIMEOUTS,
            **options,
        }
        return start(name, **told)

    def dispatchers(self) -> list[Worker]:
        """The living dispatchers, whoever started them."""
        return [worker for worker in self.workers if worker.order.part == "dispatcher" and worker.lives]

    # Load -------------------------------------------------------------------------------------------------

    def load(self, placed: int, shipped: int) -> list[str]:
        """Commit so many events of each kind with their business rows; their ids."""
        made: list[str] = []
        connection = self.source.connection
        with connection.transaction():
            for event_type, count in ((PLACED, placed), (SHIPPED, shipped)):
                envelopes = [handlers.envelope(event_type) for _ in range(count)]
                ids = [str(builders.event_id_of(text)) for text in envelopes]
                connection.execute(_APPEND, (envelopes,))
                connection.execute(_ROWS, (event_type, ids))
                made += ids
        self.ledger.committed.update(made)
        return made

    def burst(self, placed: int = 300, shipped: int = 100) -> None:
        """Commit a load and return when it is being worked on."""
        self.load(placed, shipped)
        self.await_true(
            lambda: self.source.count("seapost.delivery_lease") > 0 or self.unended() == 0, "work under way"
        )

    def rate(self, placed: int, shipped: int) -> float:
        """Deliveries per second of one fixed load on an idle crew, from first claim to last acknowledgement."""
        made = self.load(placed, shipped)
        self.await_end()
        return self.source.value(_RATE, made)

    def feed(self, dsn: str = "") -> Worker:
        """Start the producer that goes on."""
        dsn = conninfo.make_conninfo(dsn or self.source.database.dsn, application_name="seapost-producer")
        self._feeder = self.start(Order(part="feeder", name="feeder", source=dsn, seed=self.rng.getrandbits(32)))
        self._feeder.await_report("ready")
        return self._feeder

    def fed(self) -> int:
        """Transactions that the producer that goes on knows to be committed."""
        assert self._feeder is not None
        return sum(line.startswith("committed ") for line in self._feeder.reports)

    def kill_feeder(self) -> None:
        """Kill the producer that goes on, wherever it is, and start another one."""
        assert self._feeder is not None
        self._feeder.kill()
        self.feed()

    def stop_feeding(self) -> None:
        """End the producer that goes on, and take in what the producers know."""
        if self._feeder is not None and self._feeder.lives:
            self._feeder.end()
        for worker in self.workers:
            if worker.order.part in {"feeder", "producer"}:
                self.ledger.read(worker)

    # Looking ----------------------------------------------------------------------------------------------

    def await_recovery(self, since: datetime) -> float:
        """Wait until everything committed before `since` has been delivered; seconds until the last of it was."""
        self.await_true(lambda: not self.source.value(_OPEN, since), "recovery")
        return max(0.0, self.source.value(_LAST, since, since) or 0.0)

    def close(self) -> None:
        """Kill whoever still lives, take away what stands between, give the sessions back."""
        super().close()
        self.held.close()
