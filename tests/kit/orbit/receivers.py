"""The receiver example under `kill -9`: real processes of `examples.orbit.result_inbox`, and what their inboxes hold.

A receiver is started with a fail point, which it reaches at its first result, says so and sleeps; or without one.
Leases of a killed process are 30 s long. Where a test cannot wait, `Stage.age` ends them by hand and says so in the
history.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

import httpx
import psycopg

from orbit.access import administration
from orbit.history.checker import check_history
from orbit.history.exporting import export_history
from orbit.history.operations import Aged, Confirm, Create, digest_of
from orbit.history.reading import read_history
from orbit.history.recorder import HistoryRecorder
from orbit.history.verdict import Verdict
from orbit.sdk import ManagementClient, Worker
from orbit.store.database import Database
from tests.kit.commands import environment
from tests.kit.database import DatabaseServer, TestDatabase
from tests.kit.eventually import eventually
from tests.kit.orbit.database import new_orbit_database
from tests.kit.orbit.invariants import assert_invariants
from tests.kit.orbit.server import ServingProcess, serving_process
from tests.kit.tree import ROOT

FAILPOINTS: Final = ("before_tx", "in_tx", "after_commit", "after_ack_sent")
QUEUE: Final = "results"
ATTEMPTS_MAX: Final = 100
WAIT_SECONDS: Final = 60.0
HURRY_SECONDS: Final = 0.1

_AGE_LEASES: Final = """
update orbit.event_deliveries set lease_expires_at = clock_timestamp() - interval '1 millisecond'
where subscription_id = %s and state = 'LEASED' and lease_expires_at > clock_timestamp() returning delivery_id"""
_END_BACKOFF: Final = """
update orbit.event_deliveries set available_at = clock_timestamp()
where subscription_id = %s and state = 'PENDING' and available_at > clock_timestamp() returning delivery_id"""
_WAITING: Final = """
select (select count(*) from orbit.event_deliveries as d
        where d.subscription_id = s.subscription_id and d.state <> 'ACKED')
     + (select count(*) from orbit.result_events as r where r.queue_id = s.queue_id and r.sequence > s.cursor_sequence)
from orbit.event_subscriptions as s where s.subscription_id = %s"""
_JOURNAL: Final = "select event_id, sequence, type, task_id, snapshot_json from orbit.result_events"
_INBOX: Final = "select event_id, sequence, event_type, task_id, snapshot_text from inbox"
_COUNTERS: Final = "select event_type, n from result_counters"
_TASKS: Final = "select task_id, task_revision, state, needs_review, effect_uncertain, result_text from task_results"


@dataclass(frozen=True, slots=True)
class Contents:
    """What an inbox holds: its rows, its counters by type, and the last known state of each task."""

    inbox: list[tuple[Any, ...]]
    counters: dict[str, int]
    tasks: dict[str, tuple[Any, ...]]


class Stage:
    """A database, a server, a queue with results of all four types, and the history of it all.

    Args:
        recorder: gets the harness's own operations: confirmations, creations, and every lease that it ages.
    """

    def __init__(
        self, database: TestDatabase, serving: ServingProcess, folder: Path, recorder: HistoryRecorder
    ) -> None:
        self.database = database
        self.base_url = serving.base_url
        self.folder = folder
        self.token = asyncio.run(_credential(database.dsn))
        self._recorder = recorder
        self._lock = threading.Lock()
        self._numbers = 0
        self._client = httpx.Client(base_url=self.base_url, headers={"Authorization": f"Bearer {self.token}"})

    def close(self) -> None:
        """Close what it holds open."""
        self._client.close()

    def connect(self) -> psycopg.Connection:
        """A session that may change rows behind the functions' back; for one thread."""
        return psycopg.connect(self.database.dsn, autocommit=True, options="-c session_replication_role=replica")

    def subscribe(self, name: str) -> str:
        """Make a subscription to all results from the beginning; return its id."""
        key = f"create-{name}"
        operation = self._recorder.begin(Create, key=digest_of(key))
        with ManagementClient(self.base_url, self.token) as client:
            made = client.create_subscription(
                name=name, queue=QUEUE, from_sequence=0, max_attempts=ATTEMPTS_MAX, idempotency_key=key
            )
        receipt = digest_of(made.model_dump_json())
        self._recorder.end(operation, subscription=made.subscription_id, from_sequence=0, receipt=receipt)
        return made.subscription_id

    def produce(self, each: int = 5) -> None:
        """So many results of each of the four types; numbers are longer than any float has digits."""
        with Worker(self.base_url, self.token, worker_id="harness") as worker:
            for _ in range(each):
                self._cancel(worker.submit(QUEUE, {}).task_id)
            for _ in range(3 * each):
                worker.submit(QUEUE, {})
            left = 3 * each
            while left:
                for claim in worker.claim(QUEUE, max=min(16, left)):
                    left -= 1
                    outcome, effect = [("succeeded", "none"), ("failed", "none"), ("failed", "unknown")][left % 3]
                    self._numbers += 1
                    text = f'{{"n": {10**40 + self._numbers}, "x": {self._numbers}.500, "s": "\\u00e9 é"}}'
                    operation = self._recorder.begin(Confirm, task=claim.task_id, attempt=claim.attempt_id)
                    receipt = worker.confirm(claim, outcome=outcome, effect=effect, result_text=text)
                    self._recorder.end(
                        operation,
                        event=receipt.event_id,
                        event_type=receipt.event_type,
                        sequence=receipt.sequence,
                        receipt=digest_of(receipt.model_dump_json()),
                    )

    def _cancel(self, task_id: str) -> None:
        answer = self._client.post(
            f"/v1/tasks/{task_id}/cancel",
            json={"expected_revision": 1, "reason": "harness"},
            headers={"Idempotency-Key": f"cancel-{task_id}"},
        )
        assert answer.status_code == httpx.codes.OK, answer.text

    def resolve_reviews(self) -> int:
        """Give every task in review an authoritative result; return how many there were."""
        with psycopg.connect(self.database.dsn) as connection:
            rows = connection.execute(
                "select task_id, revision from orbit.tasks where state = 'needs_review'"
            ).fetchall()
        for task_id, revision in rows:
            answer = self._client.post(
                f"/v1/tasks/{task_id}/resolve",
                json={"expected_revision": revision, "outcome": "succeeded", "result": None, "reason": "harness"},
                headers={"Idempotency-Key": f"resolve-{task_id}"},
            )
            assert answer.status_code == httpx.codes.OK, answer.text
        return len(rows)

    def age(self, connection: psycopg.Connection, subscription: str, *, leases: bool) -> None:
        """End waiting by hand: backoffs always, and the leases of a process that is dead."""
        for statement in (_AGE_LEASES, _END_BACKOFF) if leases else (_END_BACKOFF,):
            with self._lock:
                aged = [row[0] for row in connection.execute(statement, (subscription,)).fetchall()]
                for delivery in aged:
                    self._recorder.end(self._recorder.begin(Aged, delivery=delivery))

    def journal(self) -> list[tuple[Any, ...]]:
        """The journal as an inbox must hold it."""
        with psycopg.connect(self.database.dsn) as connection:
            return sorted(connection.execute(_JOURNAL).fetchall())

    def verdict(self) -> Verdict:
        """Ask the database's invariants, and check the harness's history together with what the database says."""
        facts = self.folder / "database.jsonl"
        facts.unlink(missing_ok=True)
        with psycopg.connect(self.database.dsn) as connection:
            assert_invariants(connection)
        with psycopg.connect(self.database.dsn) as connection:
            export_history(connection, facts)
        return check_history(read_history(facts, self.folder / "harness.jsonl"))


async def _credential(dsn: str) -> str:
    async with Database(dsn, size_max=1) as database:
        made = await administration.bootstrap(
            database, namespace="kills", application="receiver", queues=(QUEUE,), event_access=True
        )
    return str(made["token"])


@contextmanager
def stage(server: DatabaseServer, folder: Path) -> Generator[Stage]:
    """Open a stage on a database of its own."""
    with ExitStack() as stack:
        database = new_orbit_database(server)
        stack.callback(server.drop, database)
        recorder = stack.enter_context(HistoryRecorder(folder / "harness.jsonl", process="harness"))
        serving = stack.enter_context(serving_process(database.dsn))
        yield stack.enter_context(closing(Stage(database, serving, folder, recorder)))


@dataclass
class Receiver:
    """One subscription, its inbox, and the process that serves it; for one thread.

    Attributes:
        address: an SQLite file or a PostgreSQL URL.
        kills: how often it was killed.
    """

    name: str
    stage: Stage
    address: str
    subscription: str = ""
    kills: int = 0
    lines: list[str] = field(default_factory=list[str])
    _process: subprocess.Popen[str] | None = None
    _reader: threading.Thread | None = None

    def __post_init__(self) -> None:
        self.subscription = self.stage.subscribe(self.name)
        self._eye = self.stage.connect()

    def start(self, failpoint: str | None = None) -> None:
        """Start the example; with a fail point it stops at its first result."""
        variables = {"ORBIT_TOKEN": self.stage.token}
        if failpoint is not None:
            variables["ORBIT_INBOX_FAILPOINT"] = failpoint
        self.lines = []
        options = ("--base-url", self.stage.base_url, "--subscription", self.subscription, "--db", self.address)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "examples.orbit.result_inbox", *options],
                cwd=ROOT,
                env=environment(variables),
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._process.stdout is not None
        self._reader = threading.Thread(target=self._read, args=(self._process.stdout, self.lines))
        self._reader.start()

    @staticmethod
    def _read(stream: IO[str], lines: list[str]) -> None:
        for line in stream:
            lines += [line.rstrip("\n")]  # looked at meanwhile

    def await_marker(self, failpoint: str, *, hurry: bool) -> bool:
        """Wait until the process says that it is there, or has nothing left; `hurry` ends backoffs meanwhile."""
        self._await(lambda: failpoint in self.lines or self._waiting() == 0, failpoint, hurry=hurry)
        return failpoint in self.lines

    def await_handled(self, count: int, *, hurry: bool) -> None:
        """Wait until it has handled so many results, or has none left."""
        self._await(lambda: len(self.lines) >= count or self._waiting() == 0, f"{count} results", hurry=hurry)

    def await_drained(self, *, hurry: bool) -> None:
        """Wait until every result of the queue is acknowledged."""
        self._await(lambda: self._waiting() == 0, "everything acknowledged", hurry=hurry)

    def kill(self, *, age: bool) -> None:
        """`kill -9`; `age` ends the leases that it leaves behind."""
        assert self._process is not None
        self._process.kill()
        assert self._process.wait(WAIT_SECONDS) == -9, self._said()
        self.kills += 1
        self._end()
        if age:
            self.stage.age(self._eye, self.subscription, leases=True)

    def stop(self) -> None:
        """Ask the process to end."""
        assert self._process is not None
        self._process.terminate()
        assert self._process.wait(WAIT_SECONDS) == 0, self._said()
        self._end()

    def close(self) -> None:
        """End whatever still runs."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(WAIT_SECONDS)
            self._end()
        self._eye.close()

    def attempts(self) -> list[int]:
        """Attempts of each delivery."""
        rows = self._eye.execute(
            "select attempts from orbit.event_deliveries where subscription_id = %s", (self.subscription,)
        )
        return [row[0] for row in rows]

    def states(self) -> dict[str, int]:
        """Number of deliveries by state."""
        query = "select state, count(*) from orbit.event_deliveries where subscription_id = %s group by state"
        return dict(self._eye.execute(query, (self.subscription,)).fetchall())

    def contents(self) -> Contents:
        """What the inbox holds, read by a connection of our own."""
        if self.address.startswith("postgresql://"):
            with psycopg.connect(self.address) as connection:
                found = [connection.execute(query).fetchall() for query in (_INBOX, _COUNTERS, _TASKS)]
        else:
            with closing(sqlite3.connect(self.address)) as database:
                found = [database.execute(query).fetchall() for query in (_INBOX, _COUNTERS, _TASKS)]
        return Contents(sorted(found[0]), dict(found[1]), {row[0]: row[1:] for row in found[2]})

    def _await(self, question: Callable[[], bool], what: str, *, hurry: bool) -> None:
        assert self._process is not None
        process = self._process
        hurried_at = 0.0

        def look() -> bool:
            nonlocal hurried_at
            if hurry and time.monotonic() - hurried_at > HURRY_SECONDS:
                hurried_at = time.monotonic()
                self.stage.age(self._eye, self.subscription, leases=False)
            assert process.poll() is None, self._said()
            return bool(question())

        eventually(look, what=f"{self.name}: {what}", deadline_seconds=WAIT_SECONDS)

    def _waiting(self) -> int:
        row = self._eye.execute(_WAITING, (self.subscription,)).fetchone()
        return 0 if row is None else int(row[0])

    def _end(self) -> None:
        assert self._process is not None
        assert self._reader is not None
        self._reader.join(WAIT_SECONDS)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process = None

    def _said(self) -> str:
        log = self._log.read_text(encoding="utf-8", errors="replace")
        return f"{self.name} ended; {self.lines[-3:]}; {log[-2000:]}"

    @property
    def _log(self) -> Path:
        return self.stage.folder / f"{self.name}.log"


def assert_received(receiver: Receiver, journal: Sequence[tuple[Any, ...]]) -> None:
    """The inbox is the journal, text for text; every business change happened once; all is acknowledged."""
    contents = receiver.contents()
    assert contents.inbox == list(journal), f"{receiver.name}: {len(contents.inbox)} of {len(journal)} results"
    assert sum(contents.counters.values()) == len(contents.inbox)
    for event_type, count in contents.counters.items():
        assert count == sum(row[2] == event_type for row in journal), f"{receiver.name}: {event_type} {count} times"
    last = {row[3]: json.loads(row[4]) for row in sorted(journal, key=lambda row: row[1])}
    for task_id, snapshot in last.items():
        revision, state, review, uncertain, text = contents.tasks[task_id]
        expected = (snapshot["revision"], snapshot["state"], snapshot["state"] == "needs_review")
        assert (revision, state, bool(review)) == expected
        assert bool(uncertain) == snapshot["effect_uncertain"]
        assert json.loads(text) == snapshot["result"]
    assert receiver.states() == {"ACKED": len(journal)}
