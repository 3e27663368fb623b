"""Commit order of results: the stream row keeps a later sequence back until the earlier one is decided (section 3)."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, LiteralString

import psycopg
import pytest
from psycopg import Connection

from tests.kit.database import TestDatabase
from tests.kit.eventually import eventually
from tests.kit.orbit.platform import Confirmed, Held, Place, Platform, assert_tasks_whole, found
from tests.kit.seeds import new_seed
from tests.kit.sessions import SessionFactory, Step

HEAD: Final[LiteralString] = "select last_sequence from orbit.event_streams where namespace_id = %s"
SCAN: Final[LiteralString] = """
select r.sequence, r.event_id from orbit.result_events as r
where r.namespace_id = %(namespace)s and r.sequence > %(after)s
  and r.sequence <= (select last_sequence from orbit.event_streams where namespace_id = %(namespace)s)
order by r.sequence"""
WRITERS: Final = 32
READERS: Final = 3
ROUNDS: Final = 4
QUEUES: Final = 8


def _confirm(place: Place, held: Held) -> Callable[[Connection[Any]], Confirmed]:
    def confirm(connection: Connection[Any]) -> Confirmed:
        return Platform(connection, place).confirm(held)

    return confirm


@pytest.mark.req(
    "orbit:JRN-02", "orbit:JRN-04", "orbit:JRN-05", "orbit:JRN-06", "orbit:JRN-08", "orbit:JRN-09", "orbit:JRN-13",
    "orbit:JRN-14", "orbit:T-R01", "orbit:T-R02", "F43",
)  # fmt: skip
@pytest.mark.parametrize("decision", ["commit", "rollback"])
def test_a_later_result_waits_until_the_earlier_is_decided(
    orbit_database: TestDatabase, sessions: SessionFactory, decision: str
) -> None:
    """A holds n uncommitted: B of another queue waits, the head shows n - 1 at once, another namespace goes on."""
    owner = orbit_database.connect(autocommit=True)
    place = found(owner, queues=("billing", "search"))
    one, two = Platform(owner, place, "billing"), Platform(owner, place, "search")
    foreign = Platform(owner, found(owner))
    one.finish()
    held_one, held_two = one.start(), two.start()
    a, b, reader = sessions(orbit_database, 3)
    assert a.call(_confirm(place, held_one)).sequence == 2
    late: Step[Confirmed] = b.start_call(_confirm(place, held_two))
    b.wait_until_blocked(by=a)
    assert reader.execute(HEAD, (place.namespace_id,)) == [(1,)]
    seen = reader.execute(SCAN, {"namespace": place.namespace_id, "after": 0})
    assert [sequence for sequence, _ in seen] == [1]
    assert foreign.finish().sequence == 1
    assert not late.done
    a.commit() if decision == "commit" else a.rollback()
    assert late.result().sequence == (3 if decision == "commit" else 2)
    b.commit()
    reader.rollback()
    seen = reader.execute(SCAN, {"namespace": place.namespace_id, "after": 1})
    assert [sequence for sequence, _ in seen] == ([2, 3] if decision == "commit" else [2])
    if decision == "rollback":
        assert one.confirm(held_one).sequence == 3
    assert_tasks_whole(owner)


@pytest.mark.req("orbit:JRN-01", "orbit:T-R19")
def test_neither_ids_nor_times_decide_the_order(orbit_database: TestDatabase, sessions: SessionFactory) -> None:
    """A result whose id and time are smaller but which commits later has the larger sequence, and none is missed."""
    owner = orbit_database.connect(autocommit=True)
    place = found(owner)
    platform = Platform(owner, place)
    held, other = platform.start(), platform.start()
    (slow,) = sessions(orbit_database, 1)
    receipt = platform.confirm(other)
    slow.execute("set local session_replication_role = replica")
    slow.call(_confirm(place, held))
    older: LiteralString = (
        "set event_id = 'evt_0', created_at = '2000-01-01Z' where type = 'task.succeeded' and task_id = %s"
    )
    slow.execute("update orbit.events " + older, (held.task_id,))
    slow.execute("update orbit.result_events " + older, (held.task_id,))
    slow.execute("set local session_replication_role = origin")
    slow.commit()
    order = owner.execute("select event_id, sequence from orbit.result_events order by sequence").fetchall()
    assert order == [(receipt.body["event_id"], 1), ("evt_0", 2)]
    after_first = owner.execute(SCAN, {"namespace": place.namespace_id, "after": 1}).fetchall()
    assert after_first == [(2, "evt_0")]


@pytest.mark.req("orbit:JRN-18", "orbit:JRN-15")
def test_one_transaction_numbers_its_results_in_a_row_and_only_at_read_committed(
    orbit_database: TestDatabase, sessions: SessionFactory
) -> None:
    """Three results of one transaction are 1, 2, 3; at another isolation level none is confirmed."""
    owner = orbit_database.connect(autocommit=True)
    platform = Platform(owner, found(owner))
    attempts = [platform.start() for _ in range(3)]
    (session,) = sessions(orbit_database, 1)
    session.execute("set transaction isolation level repeatable read")
    with pytest.raises(psycopg.Error) as refused:
        session.call(_confirm(platform.place, attempts[0]))
    assert refused.value.sqlstate == "55000"
    session.rollback()
    found_numbers = [session.call(_confirm(platform.place, held)).sequence for held in attempts]
    session.commit()
    assert found_numbers == [1, 2, 3]
    assert_tasks_whole(owner)


@pytest.mark.req("orbit:JRN-16")
def test_without_a_stream_row_nothing_is_confirmed(orbit_database: TestDatabase) -> None:
    """The confirmation fails and leaves nothing; with the row it succeeds."""
    owner = orbit_database.connect(autocommit=True)
    platform = Platform(owner, found(owner))
    held = platform.start()
    owner.execute("delete from orbit.event_stream_locks")
    with pytest.raises(psycopg.Error) as refused:
        platform.confirm(held)
    assert refused.value.sqlstate == "23514"
    assert platform.task(held.task_id)["state"] == "running"
    owner.execute("insert into orbit.event_stream_locks (namespace_id) values (%s)", (platform.place.namespace_id,))
    assert platform.confirm(held).sequence == 1


class Follower:
    """A reader that follows the journal by committed heads, as a subscription does."""

    def __init__(self, database: TestDatabase, namespace_id: str) -> None:
        self.seen: list[tuple[int, str]] = []
        self.looks = 0
        self._connection = database.connect(autocommit=True)
        self._namespace_id = namespace_id

    def look(self) -> None:
        """Read on from the last head."""
        after = self.seen[-1][0] if self.seen else 0
        self.seen += self._connection.execute(SCAN, {"namespace": self._namespace_id, "after": after}).fetchall()
        self.looks += 1

    def follow(self, end: threading.Event) -> None:
        """Read on until the end, and once more."""
        while not end.is_set():
            self.look()
        self.look()


def _write(
    connection: Connection[Any], place: Place, attempts: list[Held], readers: list[Follower], seed: int
) -> list[tuple[int, str]]:
    """Confirm each attempt; hold it until the readers have looked some times; then commit, or roll back and repeat."""
    chance = random.Random(seed)
    written: list[tuple[int, str]] = []
    for held in attempts:
        while True:
            confirmed = Platform(connection, place).confirm(held)
            wanted = [reader.looks + chance.randrange(3) for reader in readers]
            eventually(
                lambda wanted=wanted: all(r.looks >= w for r, w in zip(readers, wanted, strict=True)), what="the looks"
            )
            if chance.random() < 0.2:
                connection.rollback()
                continue
            connection.commit()
            written.append((confirmed.body["sequence"], confirmed.body["event_id"]))
            break
    return written


@pytest.mark.req("F43", "orbit:JRN-05", "orbit:JRN-06", "orbit:T-P01", "orbit:T-R02")
@pytest.mark.timeout(120)
def test_many_writers_and_readers_agree_on_one_order(orbit_database: TestDatabase) -> None:
    """32 writers hold their results as long as the readers' looks decide, a fifth rolls back: every reader sees all,
    once, in the order of the sequences, and never n + 1 before n is decided.
    """
    seed = new_seed()
    owner = orbit_database.connect(autocommit=True)
    place = found(owner, queues=[f"queue-{number}" for number in range(QUEUES)])
    work: list[list[Held]] = []
    for number in range(WRITERS):
        platform = Platform(owner, place, place.queues[number % QUEUES])
        work.append([platform.start() for _ in range(ROUNDS)])
    readers = [Follower(orbit_database, place.namespace_id) for _ in range(READERS)]
    end = threading.Event()
    with ThreadPoolExecutor(WRITERS + READERS) as threads:
        following = [threads.submit(reader.follow, end) for reader in readers]
        try:
            writing = [
                threads.submit(_write, orbit_database.connect(), place, attempts, readers, seed + number)
                for number, attempts in enumerate(work)
            ]
            written = sorted(line for future in writing for line in future.result(100))
        finally:
            end.set()
        for future in following:
            future.result(30)
    assert [sequence for sequence, _ in written] == list(range(1, WRITERS * ROUNDS + 1))
    for reader in readers:
        assert reader.seen == written
    assert_tasks_whole(owner)
    assert owner.execute("select deadlocks from pg_stat_database where datname = current_database()").fetchone() == (0,)


@pytest.mark.req("F45", "orbit:JRN-06", "orbit:JRN-07")
def test_rolled_back_results_leave_no_hole(orbit_database: TestDatabase) -> None:
    """After one rollback, then hundreds in a row, then many savepoints, the next result has the next number at once."""
    owner = orbit_database.connect(autocommit=True)
    platform = Platform(owner, found(owner))
    reader = Follower(orbit_database, platform.place.namespace_id)
    attempts = [platform.start() for _ in range(4)]
    session = orbit_database.connect()
    burning = Platform(session, platform.place)
    for burnt, held in zip((1, 300), attempts, strict=False):
        for _ in range(burnt):
            burning.confirm(attempts[3])
            session.rollback()
        receipt = platform.confirm(held)
        reader.look()
        assert reader.seen[-1] == (receipt.sequence, receipt.body["event_id"])
    for _ in range(100):
        with session.transaction(force_rollback=True):
            burning.confirm(attempts[3])
    assert burning.confirm(attempts[2]).sequence == 3
    session.commit()
    reader.look()
    assert [sequence for sequence, _ in reader.seen] == [1, 2, 3]
    assert owner.execute(
        "select count(*) from pg_class as c join pg_namespace as n on n.oid = c.relnamespace"
        " where n.nspname = 'orbit' and c.relkind = 'S'"
    ).fetchone() == (0,)
    assert_tasks_whole(owner)


@pytest.mark.req("F51", "orbit:JRN-13", "orbit:LCK-11")
def test_a_long_transaction_holds_back_only_its_own_stream(
    orbit_database: TestDatabase, sessions: SessionFactory
) -> None:
    """An open result stalls its namespace and can be named by process, age and program; another namespace, submissions,
    claims and readers go on; a transaction that only reads stalls nobody; nothing is skipped when it commits.
    """
    owner = orbit_database.connect(autocommit=True)
    place = found(owner, queues=("billing", "search"))
    one, two = Platform(owner, place, "billing"), Platform(owner, place, "search")
    foreign = Platform(owner, found(owner))
    held, waiting = one.start(), two.start()
    long, snapshot, stalled = sessions(orbit_database, 3)
    snapshot.execute("set transaction isolation level repeatable read")
    assert snapshot.execute(HEAD, (place.namespace_id,)) == [(0,)]
    long.execute("set application_name = 'a-slow-writer'")
    long.call(_confirm(place, held))
    assert [foreign.finish().sequence for _ in range(20)] == list(range(1, 21))
    two.submitted()
    assert len(two.claim()) == 1
    stalled.execute("set lock_timeout = '50ms'")
    step = stalled.start_call(_confirm(place, waiting))
    with pytest.raises(psycopg.errors.LockNotAvailable):
        step.result()
    stalled.rollback()
    stalled.execute("set lock_timeout = 0")
    step = stalled.start_call(_confirm(place, waiting))
    stalled.wait_until_blocked(by=long)
    ((name, aged),) = owner.execute(
        "select a.application_name, clock_timestamp() > a.xact_start from pg_stat_activity as a"
        " where a.pid = any(pg_blocking_pids(%s))",
        (stalled.process_id,),
    ).fetchall()
    assert (name, aged) == ("a-slow-writer", True)
    long.commit()
    assert step.result().sequence == 2
    stalled.commit()
    assert snapshot.execute(HEAD, (place.namespace_id,)) == [(0,)]
    reader = Follower(orbit_database, place.namespace_id)
    reader.look()
    assert [sequence for sequence, _ in reader.seen] == [1, 2]
    assert_tasks_whole(owner)


@pytest.mark.req("orbit:LCK-07", "orbit:T-R22")
def test_a_claim_gets_its_turn_among_workers_that_confirm_without_pause(orbit_database: TestDatabase) -> None:
    """16 workers confirm results of one queue one after the other; each claim of another gets the queue within 2 s."""
    owner = orbit_database.connect(autocommit=True)
    platform = Platform(owner, found(owner))
    owner.execute("update orbit.queues set max_running = 10000")
    for _ in range(16 * 40):
        platform.submitted()
    shares = [[held for _ in range(2) for held in platform.claim(16)] for _ in range(16)]
    end, confirmed = threading.Event(), [0] * 16

    def confirm(number: int) -> None:
        work = Platform(orbit_database.connect(autocommit=True), platform.place)
        for held in shares[number]:
            work.confirm(held)
            confirmed[number] += 1
            if end.is_set():
                return

    with ThreadPoolExecutor(16) as threads:
        running = [threads.submit(confirm, number) for number in range(16)]
        try:
            eventually(lambda: all(confirmed), what="every worker at work")
            owner.execute("set statement_timeout = '2s'")
            claims = 0
            while any(not future.done() for future in running) and claims < 20:
                assert len(platform.claim()) == 1
                claims += 1
        finally:
            end.set()
        for future in running:
            future.result(30)
    assert claims > 0
    assert_tasks_whole(owner)
