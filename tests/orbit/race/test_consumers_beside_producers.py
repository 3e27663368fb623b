"""Claims and creations beside producers, withdrawn rights, faults and a moving boundary (sections 28.1 and 28.2)."""

from __future__ import annotations

from functools import partial
from typing import Any, Final, LiteralString

import psycopg
import pytest
from psycopg import Connection, sql

from tests.kit.database import TestDatabase
from tests.kit.eventually import eventually
from tests.kit.orbit.consuming import change, exhausted, on, retry, subscription
from tests.kit.orbit.invariants import assert_invariants
from tests.kit.orbit.scene import Scene
from tests.kit.sessions import SessionFactory

PAUSE_POINTS: Final = ("before the journal row", "after the journal row", "before the commit")


@pytest.mark.req("orbit:T-R03", "orbit:JRN-11", "orbit:SUB-09", "orbit:LCK-03")
@pytest.mark.parametrize("first", ["producer", "creation"])
def test_from_now_on_is_exact_while_results_are_being_confirmed(
    orbit_database: TestDatabase, orbit_scene: Scene, sessions: SessionFactory, first: str
) -> None:
    """Behind an uncommitted result n the start is n; before it the start is n - 1 and n is delivered."""
    orbit_scene.result()
    orbit_scene.submit()
    (attempt,) = orbit_scene.claim()
    producer, creator = sessions(orbit_database, 2)

    def confirm(connection: Connection[Any]) -> int:
        return on(orbit_scene, connection).confirm(attempt)["sequence"]

    def create(connection: Connection[Any]) -> str:
        return on(orbit_scene, connection).subscribe("now", from_sequence=None)

    if first == "producer":
        assert producer.call(confirm) == 2
        waiting = creator.start_call(create)
        creator.wait_until_blocked(by=producer)
        producer.commit()
        one = waiting.result()
        creator.commit()
    else:
        one = creator.call(create)
        late = producer.start_call(confirm)
        producer.wait_until_blocked(by=creator)
        creator.commit()
        assert late.result() == 2
        producer.commit()
    assert subscription(orbit_scene, one)["from_sequence"] == (2 if first == "producer" else 1)
    orbit_scene.result()
    sequences = [lease.event_sequence for lease in orbit_scene.lease(one).leases]
    assert sequences == ([3] if first == "producer" else [2, 3])
    assert_invariants(orbit_scene.connection)


@pytest.mark.req(
    "orbit:T-R01", "orbit:JRN-02", "orbit:JRN-08", "orbit:JRN-10", "orbit:MAT-12", "orbit:MAT-16", "orbit:SUB-16", "F46"
)
@pytest.mark.parametrize("point", PAUSE_POINTS)
def test_a_result_that_commits_late_is_never_passed_by_the_cursor(
    orbit_database: TestDatabase, orbit_scene: Scene, sessions: SessionFactory, point: str
) -> None:
    """Whatever point the producer of n is held at, a claim neither waits nor passes n; n and n + 1 come in order."""
    orbit_scene.add_queue("other")
    orbit_scene.result()
    one = orbit_scene.subscribe(max_attempts=100)
    orbit_scene.submit()
    (early,) = orbit_scene.claim()
    orbit_scene.submit(queue="other")
    (late,) = orbit_scene.claim(queue="other")
    slow, barrier, fast, consumer = sessions(orbit_database, 4)
    if point == "before the journal row":
        barrier.execute("lock table orbit.event_stream_locks in exclusive mode")
    elif point == "after the journal row":
        barrier.execute("lock table orbit.execution_receipts in exclusive mode")
    confirming = slow.start_call(lambda connection: on(orbit_scene, connection).confirm(early)["sequence"])
    if point == "before the commit":
        assert confirming.result() == 2
    else:
        slow.wait_until_blocked(by=barrier)
    following = fast.start_call(lambda connection: on(orbit_scene, connection).confirm(late)["sequence"])
    fast.wait_until_blocked()

    def claimed(connection: Connection[Any]) -> list[int]:
        return [lease.event_sequence for lease in on(orbit_scene, connection).lease(one).leases]

    assert consumer.call(claimed) == [1]
    consumer.commit()
    assert consumer.call(claimed) == []
    consumer.commit()
    assert subscription(orbit_scene, one)["cursor_sequence"] == 1
    barrier.rollback()
    steps = [(slow, confirming), (fast, following)]
    eventually(lambda: confirming.done or following.done, what="the first of the two")
    for session, step in sorted(steps, key=lambda pair: not pair[1].done):
        step.result()
        session.commit()
    sequence = confirming.result()
    assert {sequence, following.result()} == {2, 3}
    assert consumer.call(claimed) == [sequence]
    consumer.commit()
    assert subscription(orbit_scene, one)["cursor_sequence"] == 3
    assert_invariants(orbit_scene.connection)


def hold_all(table: str, connection: Connection[Any]) -> None:
    """Lock every row of a table."""
    connection.execute(sql.SQL("select 1 from {} for update").format(sql.Identifier("orbit", table)))


@pytest.mark.req("orbit:T-R18", "orbit:LCK-05", "orbit:LCK-06", "orbit:JRN-09", "orbit:LCK-10")
def test_consumers_and_managers_never_wait_for_stream_queue_quota_or_tasks(
    orbit_database: TestDatabase, orbit_scene: Scene, sessions: SessionFactory
) -> None:
    """A session holds them all; every operation of the consumer's side finishes."""
    orbit_scene.result()
    one = orbit_scene.subscribe(max_attempts=1)
    lease = exhausted(orbit_scene, one)
    orbit_scene.result()
    (holder,) = sessions(orbit_database, 1)
    tables = (
        "namespaces", "applications", "credentials", "application_quotas", "queues", "tasks", "task_attempts",
        "event_stream_locks", "events", "result_events",
    )  # fmt: skip
    for table in tables:
        holder.call(partial(hold_all, table))
    orbit_scene.run("set lock_timeout = '1s'")
    orbit_scene.lease(one)
    retry(orbit_scene, one, lease.delivery_id)
    orbit_scene.acknowledge(one, lease)
    change(orbit_scene, "pause", one, 1)
    change(orbit_scene, "resume", one, 2)
    who = orbit_scene.owner.sha256
    orbit_scene.value("select orbit.subscription_get_v1(%s, %s)", who, one)
    orbit_scene.rows("select * from orbit.subscription_list_v1(%s, null, null, 9, null, null)", who)
    orbit_scene.rows("select * from orbit.delivery_list_v1(%s, %s, null, 9, null)", who, one)
    orbit_scene.value("select orbit.delivery_get_v1(%s, %s, %s)", who, one, lease.delivery_id)
    orbit_scene.rows("select * from orbit.subscription_hello_v1(%s, %s)", who, one)
    orbit_scene.value("select orbit.delivery_waiting_v1(%s, null, null)", one)
    holder.rollback()


@pytest.mark.req("orbit:T-R15", "orbit:AUT-12", "orbit:LCK-07")
@pytest.mark.parametrize("what", ["revoked", "action", "queue", "application", "namespace"])
def test_a_right_that_is_withdrawn_stops_what_begins_after_it(
    orbit_database: TestDatabase, orbit_scene: Scene, sessions: SessionFactory, what: str
) -> None:
    """The withdrawal waits for nobody; the claim in flight ends whole, the next claim and ACK are refused."""
    orbit_scene.results(2)
    one = orbit_scene.subscribe()
    statements: dict[str, tuple[LiteralString, str]] = {
        "revoked": ("update orbit.credentials set revoked_at = clock_timestamp()", "OB001"),
        "action": ("update orbit.credentials set actions = '{events:read}'", "OB004"),
        "queue": ("update orbit.credentials set all_queues = false", "OB005"),
        "application": ("update orbit.applications set enabled = false", "OB003"),
        "namespace": ("update orbit.namespaces set enabled = false", "OB002"),
    }
    statement, code = statements[what]
    (consumer,) = sessions(orbit_database, 1)
    leases = consumer.call(lambda connection: on(orbit_scene, connection).lease(one, requested=1)).leases
    orbit_scene.run("set lock_timeout = '1s'")
    orbit_scene.run(statement)
    consumer.commit()
    assert orbit_scene.value("select count(*) from orbit.event_deliveries where state = 'LEASED'") == 1
    for call in (lambda: orbit_scene.lease(one), lambda: orbit_scene.acknowledge(one, *leases)):
        with pytest.raises(psycopg.Error) as refused:
            call()
        assert refused.value.sqlstate == code
    assert_invariants(orbit_scene.connection)


@pytest.mark.req("orbit:T-C10", "orbit:MAT-03", "orbit:AUD-04")
@pytest.mark.parametrize("where", ["event_subscriptions", "audit_log", "event_deliveries"])
def test_a_claim_that_fails_on_its_way_leaves_nothing(orbit_scene: Scene, where: LiteralString) -> None:
    """A fault at the cursor, an audit row or a lease takes back the new deliveries too; then each comes once."""
    orbit_scene.result()
    one = orbit_scene.subscribe()
    orbit_scene.lease(one, requested=0)
    orbit_scene.results(2)
    orbit_scene.run(
        "create function public.fault() returns trigger language plpgsql as"
        " $$ begin raise exception using errcode = 'XX999', message = 'fault'; end $$"
    )
    moment: LiteralString = "insert" if where == "audit_log" else "update"
    orbit_scene.run(
        "create trigger zz_fault before "
        + moment
        + " on orbit."
        + where
        + " for each row execute function public.fault()"
    )
    before = subscription(orbit_scene, one)
    with pytest.raises(psycopg.Error) as failed:
        orbit_scene.lease(one)
    assert failed.value.sqlstate == "XX999"
    assert orbit_scene.value("select array_agg(state) from orbit.event_deliveries") == ["PENDING"]
    assert subscription(orbit_scene, one) == before
    orbit_scene.run("drop trigger zz_fault on orbit." + where)
    assert [lease.event_sequence for lease in orbit_scene.lease(one).leases] == [1, 2, 3]
    assert_invariants(orbit_scene.connection)


@pytest.mark.req("orbit:MIG-15", "orbit:MIG-17", "orbit:MIG-18", "F48")
def test_a_boundary_that_moves_between_scan_and_commit_skips_nothing_silently(
    orbit_database: TestDatabase, orbit_scene: Scene, sessions: SessionFactory
) -> None:
    """The claim that scanned before delivers what it scanned; the next one says that history is gone."""
    orbit_scene.results(12)
    one = orbit_scene.subscribe(max_pending=2)
    (consumer,) = sessions(orbit_database, 1)
    leases = consumer.call(lambda connection: on(orbit_scene, connection).lease(one)).leases
    orbit_scene.run("update orbit.event_stream_locks set retained_from_sequence = 11")
    consumer.commit()
    assert [lease.event_sequence for lease in leases] == [1, 2]
    assert [row[2] for row in orbit_scene.acknowledge(one, *leases)] == [None, None]
    with pytest.raises(psycopg.Error) as refused:
        orbit_scene.lease(one)
    assert refused.value.sqlstate == "OB022"
    assert subscription(orbit_scene, one)["cursor_sequence"] == 2
