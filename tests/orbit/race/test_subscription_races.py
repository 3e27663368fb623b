"""Claims, ACKs, creations, pauses and retries that meet: one takes effect, then the other (section 28.1)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg import Connection

from tests.kit.database import TestDatabase
from tests.kit.eventually import eventually
from tests.kit.orbit.consuming import at_once, change, delivery, exhausted, on, retry, subscription
from tests.kit.orbit.invariants import assert_invariants
from tests.kit.orbit.scene import CONNECTION, Scene
from tests.kit.sessions import Session, SessionFactory


def counted(answers: list[Any], code: str) -> int:
    """How many answers are this SQLSTATE."""
    return sum(1 for one in answers if one == code)


@pytest.mark.req("orbit:T-R04", "orbit:SUB-05", "orbit:SUB-21")
def test_no_more_than_sixty_four_subscriptions_come_of_eighty_at_once(
    orbit_database: TestDatabase, orbit_scene: Scene
) -> None:
    """A legacy row counts too: 63 new ones and 17 refusals."""
    orbit_scene.run(
        "insert into orbit.event_subscriptions (subscription_id, namespace_id, name, legacy, status)"
        " select 'sub_old', namespace_id, 'old', true, 'DISABLED' from orbit.namespaces"
    )
    answers = at_once(orbit_database, orbit_scene, 16, lambda scene, number: [
        _state(lambda name=f"s-{number}-{turn}": scene.subscribe(name)) for turn in range(5)
    ])  # fmt: skip
    flat = [one for several in answers for one in several]
    assert (counted(flat, "OB019"), counted(flat, "made")) == (17, 63)
    assert orbit_scene.value("select count(*) from orbit.event_subscriptions") == 64
    assert_invariants(orbit_scene.connection)


@pytest.mark.req("orbit:SUB-05", "orbit:SUB-21")
def test_a_creation_counts_after_the_creation_before_it_is_decided(
    orbit_database: TestDatabase, orbit_scene: Scene, sessions: SessionFactory
) -> None:
    """63 exist and the 64th is uncommitted: the 65th waits for it and is then refused, whatever the timing."""
    orbit_scene.run(
        "insert into orbit.event_subscriptions (subscription_id, namespace_id, name, legacy, status)"
        " select 'sub_old_' || n, namespace_id, 'old-' || n, true, 'DISABLED'"
        " from orbit.namespaces cross join generate_series(1, 63) as n"
    )
    holder, other = sessions(orbit_database, 2)
    first = holder.call(lambda connection: _state(lambda: on(orbit_scene, connection).subscribe("first")))
    late = other.start_call(lambda connection: _state(lambda: on(orbit_scene, connection).subscribe("late")))
    eventually(lambda: late.done or _is_blocked(orbit_scene, other, holder), what="the late creation")
    assert not late.done
    holder.commit()
    assert (first, late.result()) == ("made", "OB019")
    other.rollback()
    assert orbit_scene.value("select count(*) from orbit.event_subscriptions") == 64


def _is_blocked(scene: Scene, waiting: Session, holder: Session) -> bool:
    return holder.process_id in scene.value("select pg_blocking_pids(%s)", waiting.process_id)


def _state(call: Callable[[], object]) -> str:
    try:
        call()
    except psycopg.Error as error:
        return error.sqlstate or repr(error)
    return "made"


@pytest.mark.req("orbit:T-R05", "orbit:SUB-04")
def test_one_of_ten_creations_gets_the_name(orbit_database: TestDatabase, orbit_scene: Scene) -> None:
    """Ten keys, one name."""
    answers = at_once(orbit_database, orbit_scene, 10, lambda scene, _: _state(lambda: scene.subscribe("one")))
    assert sorted(answers) == ["OB018"] * 9 + ["made"]


@pytest.mark.req("orbit:T-R06", "orbit:IDM-08", "orbit:RTY-06", "orbit:AUD-05")
@pytest.mark.parametrize("verb", ["create", "pause", "retry"])
def test_ten_requests_with_one_key_are_one_effect(orbit_database: TestDatabase, orbit_scene: Scene, verb: str) -> None:
    """Ten equal answers, one audit row, one identity."""
    orbit_scene.result()
    one = orbit_scene.subscribe(max_attempts=1)
    lease = exhausted(orbit_scene, one)
    audited: LiteralString = "select count(*) from orbit.audit_log"
    before = orbit_scene.value(audited)

    def work(scene: Scene, _: int) -> object:
        match verb:
            case "create":
                return scene.subscribe("twin", key="k")
            case "pause":
                return change(scene, "pause", one, 1, key="k")[1]
            case _:
                return retry(scene, one, lease.delivery_id, revision=3, key="k")

    answers = at_once(orbit_database, orbit_scene, 10, work)
    assert all(answer == answers[0] for answer in answers)
    assert not str(answers[0]).startswith("OB")
    assert orbit_scene.value(audited) == before + 1
    assert_invariants(orbit_scene.connection)


@pytest.mark.req("orbit:T-R07", "orbit:LSE-17", "orbit:LSE-18", "orbit:LSE-19", "orbit:LSE-28")
@pytest.mark.parametrize("first", ["ack", "claim"])
def test_ack_and_redelivery_are_decided_by_the_subscription_lock(
    orbit_database: TestDatabase, orbit_scene: Scene, sessions: SessionFactory, first: str
) -> None:
    """Whoever has the lock first wins; the other one sees it."""
    orbit_scene.result()
    one = orbit_scene.subscribe()
    (lease,) = orbit_scene.lease(one).leases
    orbit_scene.age_lease(lease.delivery_id)
    orbit_scene.lease(one)
    orbit_scene.age_backoff(lease.delivery_id)
    holder, other = sessions(orbit_database, 2)
    work: dict[str, Callable[[Connection[Any]], Any]] = {
        "ack": lambda connection: on(orbit_scene, connection).acknowledge(one, lease)[0][2],
        "claim": lambda connection: [found.lease_epoch for found in on(orbit_scene, connection).lease(one).leases],
    }
    second = "claim" if first == "ack" else "ack"
    early = holder.call(work[first])
    waiting = other.start_call(work[second])
    other.wait_until_blocked(by=holder)
    holder.commit()
    late = waiting.result()
    other.commit()
    expected: dict[str, tuple[object, object]] = {"ack": (None, []), "claim": ([2], "DELIVERY_LEASE_LOST")}
    assert (early, late) == expected[first]
    assert_invariants(orbit_scene.connection)


@pytest.mark.req("orbit:T-R07", "orbit:LSE-28")
def test_times_are_read_after_the_wait_for_the_lock(
    orbit_database: TestDatabase, orbit_scene: Scene, sessions: SessionFactory
) -> None:
    """A claim that waited leases for 30 seconds from when it got the lock, not from when it began."""
    orbit_scene.result()
    one = orbit_scene.subscribe()
    holder, other = sessions(orbit_database, 2)
    holder.execute("select 1 from orbit.event_subscriptions for update")
    waiting = other.start_call(lambda connection: on(orbit_scene, connection).lease(one))
    other.wait_until_blocked(by=holder)
    ((released_at,),) = holder.execute("select clock_timestamp()")
    holder.commit()
    waiting.result()
    other.commit()
    deadline = orbit_scene.value("select lease_expires_at - interval '30 seconds' from orbit.event_deliveries")
    assert deadline >= released_at


@pytest.mark.req("orbit:T-R08", "orbit:LSE-04", "orbit:SUB-17", "orbit:AUD-05")
def test_ten_acks_with_one_proof_are_one_ack(orbit_database: TestDatabase, orbit_scene: Scene) -> None:
    """One is effective, nine are duplicates with its time."""
    orbit_scene.result()
    one = orbit_scene.subscribe()
    (lease,) = orbit_scene.lease(one).leases
    answers = at_once(orbit_database, orbit_scene, 10, lambda scene, _: scene.acknowledge(one, lease)[0][2:])
    assert sorted(answer[2] for answer in answers) == [False] + [True] * 9
    assert len({answer[1] for answer in answers}) == 1
    assert subscription(orbit_scene, one)["pending_count"] == 0
    assert_invariants(orbit_scene.connection)


@pytest.mark.req("orbit:T-R09", "orbit:T-R10", "orbit:LSE-10", "orbit:LSE-26", "orbit:LSE-27")
def test_claims_at_once_lease_nothing_twice_and_no_more_than_the_capacity(
    orbit_database: TestDatabase, orbit_scene: Scene
) -> None:
    """Eight claims: four of one connection with capacity 4, four of connections of their own."""
    orbit_scene.results(30)
    one = orbit_scene.subscribe()

    def work(scene: Scene, number: int) -> list[str]:
        connection_id = CONNECTION if number < 4 else f"conn_{number:032x}"
        found = [scene.lease(one, capacity=4, requested=3, connection_id=connection_id) for _ in range(3)]
        return [lease.delivery_id for claimed in found for lease in claimed.leases]

    answers = at_once(orbit_database, orbit_scene, 8, work)
    leased = [delivery_id for several in answers for delivery_id in several]
    assert len(leased) == len(set(leased)) == 20
    held = orbit_scene.rows(
        "select count(*) from orbit.event_deliveries where state = 'LEASED' group by lease_connection_id"
    )
    assert held == [(4,)] * 5
    assert_invariants(orbit_scene.connection)


@pytest.mark.req("orbit:T-R11", "orbit:T-R12", "orbit:PAU-01", "orbit:PAU-03")
@pytest.mark.parametrize("first", ["pause", "other"])
@pytest.mark.parametrize("other", ["claim", "ack"])
def test_a_pause_stops_the_claim_behind_it_and_no_ack(
    orbit_database: TestDatabase, orbit_scene: Scene, sessions: SessionFactory, first: str, other: str
) -> None:
    """Claim before the pause: complete. Behind it: nothing is delivered or materialised. An ACK succeeds both ways."""
    orbit_scene.results(2)
    one = orbit_scene.subscribe(max_pending=1)
    (lease,) = orbit_scene.lease(one).leases
    orbit_scene.results(1)
    if other == "claim":
        orbit_scene.acknowledge(one, lease)
    holder, behind = sessions(orbit_database, 2)

    def pause(connection: Connection[Any]) -> str:
        return json.loads(change(on(orbit_scene, connection), "pause", one, 1)[1])["status"]

    def consume(connection: Connection[Any]) -> Any:  # noqa: ANN401 - either answer
        scene = on(orbit_scene, connection)
        return scene.acknowledge(one, lease)[0][2] if other == "ack" else scene.lease(one).reason

    steps = [pause, consume] if first == "pause" else [consume, pause]
    early = holder.call(steps[0])
    waiting = behind.start_call(steps[1])
    behind.wait_until_blocked(by=holder)
    holder.commit()
    late = waiting.result()
    behind.commit()
    status, reason = (early, late) if first == "pause" else (late, early)
    assert status == "PAUSED"
    assert reason == (None if other == "ack" else "PAUSED" if first == "pause" else "DELIVERED")
    materialised = orbit_scene.value("select count(*) from orbit.event_deliveries")
    assert materialised == (2 if (first, other) == ("other", "claim") else 1)
    assert_invariants(orbit_scene.connection)


@pytest.mark.req("orbit:T-R13", "orbit:RTY-09", "orbit:LSE-05")
@pytest.mark.parametrize("first", ["ack", "retry"])
def test_retry_and_late_ack_of_an_exhausted_delivery(
    orbit_database: TestDatabase, orbit_scene: Scene, sessions: SessionFactory, first: str
) -> None:
    """ACK first: nothing to retry. Retry first: the old proof still counts."""
    orbit_scene.result()
    one = orbit_scene.subscribe(max_attempts=1)
    lease = exhausted(orbit_scene, one)
    holder, behind = sessions(orbit_database, 2)
    work: dict[str, Callable[[Connection[Any]], Any]] = {
        "ack": lambda connection: on(orbit_scene, connection).acknowledge(one, lease)[0][2:5:2],
        "retry": lambda connection: retry(on(orbit_scene, connection), one, lease.delivery_id, revision=3)["state"],
    }
    holder.call(work[first])
    waiting = behind.start_call(work["retry" if first == "ack" else "ack"])
    behind.wait_until_blocked(by=holder)
    holder.commit()
    if first == "ack":
        with pytest.raises(psycopg.Error) as refused:
            waiting.result()
        assert refused.value.sqlstate == "OB024"
        behind.rollback()
    else:
        assert waiting.result() == (None, False)
        behind.commit()
    assert delivery(orbit_scene, lease.delivery_id)["state"] == "ACKED"
    assert_invariants(orbit_scene.connection)


@pytest.mark.req("orbit:T-R14", "orbit:RTY-08")
def test_one_of_two_retries_with_the_same_revision_counts(orbit_database: TestDatabase, orbit_scene: Scene) -> None:
    """The budget grows once; after the delivery expired again the old revision is refused."""
    orbit_scene.result()
    one = orbit_scene.subscribe(max_attempts=1)
    lease = exhausted(orbit_scene, one)
    answers = at_once(
        orbit_database,
        orbit_scene,
        2,
        lambda scene, _: retry(scene, one, lease.delivery_id, revision=3, additional=1)["attempt_budget"],
    )
    assert sorted(map(str, answers)) == ["2", "OB024"]
    assert exhausted(orbit_scene, one).attempts == 2
    with pytest.raises(psycopg.Error) as refused:
        retry(orbit_scene, one, lease.delivery_id, revision=3)
    assert refused.value.sqlstate == "OB014"
    assert delivery(orbit_scene, lease.delivery_id)["attempt_budget"] == 2
