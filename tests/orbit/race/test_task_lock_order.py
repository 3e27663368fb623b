"""The lock order of the task path, read off the server: what a call waits for, and what it holds by then (LCK-01).

A second session holds one row. The call under test runs into it; `pg_locks` shows the table at which it waits, and a
third session finds out, without waiting, which of the other rows are taken. Doing that at every row gives the order.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Barrier
from typing import Any, Final, LiteralString

import psycopg
import pytest
from psycopg import Connection

from tests.kit.database import TestDatabase
from tests.kit.orbit.platform import Held, Place, Platform, Row, assert_tasks_whole, found
from tests.kit.seeds import new_seed
from tests.kit.sessions import SessionFactory

LOCKS: Final[dict[str, LiteralString]] = {
    "application_quotas": "select from orbit.application_quotas where application_id = %(application)s for update",
    "queues": "select from orbit.queues where queue_id = %(queue)s for update",
    "tasks": "select from orbit.tasks where task_id = %(task)s for update",
    "task_attempts": "select from orbit.task_attempts where attempt_id = %(attempt)s for update",
    "permits": "select from orbit.permits where attempt_id = %(attempt)s for update",
    "event_stream_locks": "select from orbit.event_stream_locks where namespace_id = %(namespace)s for update",
}
SHOWN_BY: Final[dict[str, LiteralString]] = {"for update": "for key share", "for no key update": "for share"}
"""The weakest lock that a lock of the key's kind excludes; `for key share` passes everything but `for update`."""
WAITED_FOR: Final = """
select relation::regclass::text from pg_locks
where pid = %s and locktype = 'tuple' and relation::regclass::text like 'orbit.%%'"""


@dataclass(frozen=True)
class Stage:
    """A task in the state that an operation needs."""

    place: Place
    held: Held
    revision: int

    @property
    def names(self) -> dict[str, str]:
        """Keys of the rows that are locked."""
        return {
            "application": self.place.application_id,
            "queue": self.place.queue_ids[0],
            "task": self.held.task_id,
            "attempt": self.held.attempt_id,
            "namespace": self.place.namespace_id,
        }


Operation = Callable[[Platform, Stage], Any]


def _started(platform: Platform, policy: str = "unsafe") -> Stage:
    return Stage(platform.place, platform.start(policy=policy), 2)


def _lost(platform: Platform) -> Stage:
    stage = _started(platform)
    platform.lose(stage.held)
    return stage


def _in_review(platform: Platform) -> Stage:
    stage = _started(platform)
    platform.confirm(stage.held, "failed", effect="unknown")
    return Stage(stage.place, stage.held, 3)


def _ready(platform: Platform) -> Stage:
    return Stage(platform.place, Held(platform.submitted(), "none", 0, bytes(32)), 1)


OPERATIONS: Final[dict[str, tuple[Callable[[Platform], Stage], Operation, list[str]]]] = {
    "submit": (_ready, lambda platform, _: platform.submitted(), ["application_quotas"]),
    "claim": (_ready, lambda platform, _: platform.claim(), ["queues", "tasks"]),
    "confirm": (
        _started,
        lambda platform, stage: platform.confirm(stage.held),
        ["queues", "tasks", "task_attempts", "permits", "event_stream_locks"],
    ),
    "confirm with safe retry": (
        _started,
        lambda platform, stage: platform.confirm(stage.held, "failed", retryable=True),
        ["queues", "tasks", "task_attempts", "permits"],
    ),
    "cancel": (
        _started,
        lambda platform, stage: platform.cancel(stage.held.task_id, stage.revision),
        ["queues", "tasks", "task_attempts", "permits", "event_stream_locks"],
    ),
    "resolve": (
        _in_review,
        lambda platform, stage: platform.resolve(stage.held.task_id, stage.revision),
        ["queues", "tasks", "event_stream_locks"],
    ),
    "recover": (
        _lost,
        lambda platform, stage: platform.recover(stage.held),
        ["queues", "tasks", "task_attempts", "permits", "event_stream_locks"],
    ),
    "heartbeat": (_started, lambda platform, stage: platform.heartbeat(stage.held), ["task_attempts"]),
}


def _taken(connection: Connection[Any], names: dict[str, str], left_out: str) -> set[str]:
    """Which rows somebody holds at this moment in the mode of LCK-07; the row of `left_out` is not asked for."""
    taken: set[str] = set()
    for table, query in LOCKS.items():
        mode = "for no key update" if table == "event_stream_locks" else "for update"
        if table != left_out and _refuses(connection, query, SHOWN_BY[mode], names):
            taken.add(table)
            assert mode == "for update" or not _refuses(connection, query, "for key share", names)
    return taken


def _refuses(connection: Connection[Any], query: LiteralString, mode: LiteralString, names: dict[str, str]) -> bool:
    try:
        connection.execute(query.replace("for update", mode) + " nowait", names)
    except psycopg.errors.LockNotAvailable:
        return True
    finally:
        connection.rollback()
    return False


@pytest.mark.req("orbit:LCK-01", "orbit:LCK-07", "orbit:LCK-08", "orbit:LCK-14", "orbit:T-R16")
@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_takes_its_locks_in_the_one_order(
    orbit_database: TestDatabase, sessions: SessionFactory, name: str
) -> None:
    """Stopped at each of its rows in turn, it holds exactly those that come before it, and at the end all of them."""
    prepare, operation, order = OPERATIONS[name]
    owner = orbit_database.connect(autocommit=True)
    place = found(owner, max_open_tasks=1000)
    blocker, worker, probe = sessions(orbit_database, 3)
    for position, table in enumerate(order):
        platform = Platform(owner, place)
        stage = prepare(platform)
        blocker.execute(LOCKS[table], stage.names)
        step = worker.start_call(lambda connection, stage=stage: operation(Platform(connection, place), stage))
        worker.wait_until_blocked(by=blocker)
        assert owner.execute(WAITED_FOR, (worker.process_id,)).fetchall() == [(f"orbit.{table}",)]
        assert probe.call(lambda c, stage=stage, table=table: _taken(c, stage.names, table)) == set(order[:position])
        blocker.rollback()
        step.result()
        held_at_end = probe.call(lambda c, stage=stage: _taken(c, stage.names, "none"))
        assert held_at_end == set(order)
        worker.commit()
        owner.execute("delete from orbit.permits; update orbit.tasks set state = 'succeeded' where state = 'queued'")


@pytest.mark.req("orbit:LCK-09")
def test_a_claim_locks_its_tasks_by_their_key(orbit_database: TestDatabase, sessions: SessionFactory) -> None:
    """Whatever order the tasks are handed out in, they are locked from the lowest id on."""
    owner = orbit_database.connect(autocommit=True)
    platform = Platform(owner, found(owner))
    ids = sorted(platform.submitted() for _ in range(3))
    for place, task_id in enumerate(reversed(ids)):  # the highest id is the oldest
        owner.execute(
            "update orbit.tasks set available_at = clock_timestamp() - make_interval(hours => %s) where task_id = %s",
            (9 - place, task_id),
        )
    blocker, worker, probe = sessions(orbit_database, 3)
    blocker.execute("select from orbit.tasks where task_id = %s for update", (ids[1],))
    step = worker.start_call(lambda connection: Platform(connection, platform.place).claim(3))
    worker.wait_until_blocked(by=blocker)
    free = [
        task_id
        for (task_id,) in probe.execute("select task_id from orbit.tasks order by task_id for update skip locked")
    ]
    assert free == ids[2:]
    probe.rollback()
    blocker.rollback()
    assert [held.task_id for held in step.result()] == ids[::-1]


@pytest.mark.req("orbit:IDM-08", "orbit:LCK-01")
@pytest.mark.parametrize("verb", ["cancel", "resolve"])
def test_a_twin_request_waits_at_the_identity_and_holds_nothing(
    orbit_database: TestDatabase, sessions: SessionFactory, verb: str
) -> None:
    """The identity comes before every row; the twin then gets the stored answer, and there is one effect."""
    owner = orbit_database.connect(autocommit=True)
    platform = Platform(owner, found(owner))
    stage = _started(platform) if verb == "cancel" else _in_review(platform)
    first, second, probe = sessions(orbit_database, 3)

    def request(connection: Connection[Any]) -> Row:
        return getattr(Platform(connection, stage.place), verb)(stage.held.task_id, stage.revision, key="twin")

    original = first.call(request)
    step = second.start_call(request)
    second.wait_until_blocked(by=first)
    assert owner.execute(WAITED_FOR, (second.process_id,)).fetchall() == []
    first.commit()
    replay = step.result()
    assert (replay[:3], replay[3]) == ((original[0], original[1], True), None)
    assert probe.call(lambda connection: _taken(connection, stage.names, "none")) == set()
    second.commit()
    assert_tasks_whole(owner)


@pytest.mark.req("orbit:LCK-02", "orbit:T-R17", "orbit:MAT-06")
def test_no_operation_on_tasks_meets_subscriptions_or_deliveries(
    orbit_database: TestDatabase, sessions: SessionFactory
) -> None:
    """With both tables locked against every reader, submit, claim, heartbeat, confirm, cancel, resolve, recover end."""
    owner = orbit_database.connect(autocommit=True)
    platform = Platform(owner, found(owner))
    (blocker,) = sessions(orbit_database, 1)
    blocker.execute("lock table orbit.event_subscriptions, orbit.event_deliveries in access exclusive mode")
    held = platform.start()
    platform.heartbeat(held)
    platform.confirm(held, "failed", effect="unknown")
    platform.resolve(held.task_id, 3)
    held = platform.start()
    platform.cancel(held.task_id, 2)
    held = platform.start()
    platform.lose(held)
    assert platform.recover(held)[0] is True
    assert platform.confirm(platform.start()).sequence == 5
    assert not blocker.connection.closed


@pytest.mark.req("orbit:TSK-11", "orbit:SRC-08", "orbit:T-R21")
@pytest.mark.parametrize("same", [True, False])
def test_two_confirmations_at_once_make_one_result(
    orbit_database: TestDatabase, sessions: SessionFactory, same: bool
) -> None:
    """The second waits for the first, then gets its receipt, or a conflict when it says something else."""
    owner = orbit_database.connect(autocommit=True)
    platform = Platform(owner, found(owner))
    held = platform.start()
    first, second = sessions(orbit_database, 2)
    receipt = first.call(lambda connection: Platform(connection, platform.place).confirm(held, result="1.00"))
    text = "1.00" if same else "1.0"
    step = second.start_call(lambda connection: Platform(connection, platform.place).confirm(held, result=text))
    second.wait_until_blocked(by=first)
    first.commit()
    if same:
        again = step.result()
        assert (again.text, again.replayed) == (receipt.text, True)
    else:
        with pytest.raises(psycopg.Error) as refused:
            step.result()
        assert refused.value.sqlstate == "OB011"
    second.rollback()
    assert len(platform.journal()) == 1
    assert_tasks_whole(owner)


@pytest.mark.req("orbit:TSK-20", "orbit:LCK-01")
def test_a_heartbeat_that_comes_too_late_is_refused(orbit_database: TestDatabase, sessions: SessionFactory) -> None:
    """A heartbeat waits for the confirmation that ends its attempt, and learns of the end; before it, it counts."""
    owner = orbit_database.connect(autocommit=True)
    platform = Platform(owner, found(owner))
    held = platform.start()
    first, second = sessions(orbit_database, 2)
    first.call(lambda connection: Platform(connection, platform.place).confirm(held))
    late = second.start_call(lambda connection: Platform(connection, platform.place).heartbeat(held))
    second.wait_until_blocked(by=first)
    first.commit()
    with pytest.raises(psycopg.Error) as refused:
        late.result()
    assert refused.value.sqlstate == "OB010"
    second.rollback()
    held = platform.start()
    platform.lose(held)
    first.call(lambda connection: Platform(connection, platform.place).heartbeat(held))
    recovery = second.start_call(lambda connection: Platform(connection, platform.place).recover(held))
    second.wait_until_blocked(by=first)
    first.commit()
    assert recovery.result()[0] is False


@pytest.mark.req("orbit:T-R16", "orbit:LCK-01", "orbit:LCK-09")
def test_every_verb_at_once_on_the_same_tasks_never_deadlocks(orbit_database: TestDatabase) -> None:
    """Eight sessions do anything to the tasks of two queues at the same time; claims take up to three at once."""
    seed = new_seed()
    owner = orbit_database.connect(autocommit=True)
    place = found(owner, queues=("billing", "search"))
    refused: set[str | None] = set()
    barrier = Barrier(8)

    def work(number: int) -> None:
        chance = random.Random(seed + number)
        platform = Platform(orbit_database.connect(autocommit=True), place, place.queues[number % 2])
        barrier.wait(30)
        for _ in range(60):
            try:
                _do_anything(platform, chance)
            except psycopg.Error as error:
                refused.add(error.sqlstate)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))
    assert refused <= {"OB008", "OB009", "OB010", "OB011", "OB012", "OB014"}
    assert owner.execute("select deadlocks from pg_stat_database where datname = current_database()").fetchone() == (0,)
    assert_tasks_whole(owner)


def _do_anything(platform: Platform, chance: random.Random) -> None:
    """One random operation on whatever task or attempt of the queue is there."""
    if chance.random() < 0.3:
        platform.submitted(policy=chance.choice(["safe", "unsafe"]), max_attempts=2)
        return
    if chance.random() < 0.4:
        platform.claim(chance.randrange(1, 4))
        return
    rows = platform.rows(
        "select t.task_id, t.revision, a.attempt_id, a.number, a.lease_secret_sha256 from orbit.tasks as t"
        " join orbit.task_attempts as a on a.attempt_id = t.current_attempt_id"
        " where t.queue_id = %s and t.state in ('running', 'needs_review')",
        platform.queue_id,
    )
    if not rows:
        return
    task_id, revision, attempt_id, attempt_number, secret = chance.choice(rows)
    held = Held(task_id, attempt_id, attempt_number, secret)
    verb = chance.randrange(6)
    if verb == 0:
        platform.cancel(task_id, revision)
    elif verb == 1:
        platform.resolve(task_id, revision)
    elif verb == 2:
        platform.heartbeat(held)
    elif verb == 3:
        platform.lose(held)
        platform.recover(held)
    else:
        platform.confirm(held, chance.choice(["succeeded", "failed"]), effect=chance.choice(["none", "unknown"]))
