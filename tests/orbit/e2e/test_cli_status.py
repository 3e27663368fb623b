"""`orbit events status`: each reason for standing still, and what it costs to ask (OPS-06, F83, F51)."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from orbit.cli import main
from orbit.cli.exit_codes import ExitCode
from orbit.store import status
from tests.kit.commands import ORBIT, Running
from tests.kit.database import TestDatabase
from tests.kit.eventually import eventually
from tests.kit.orbit.scene import Scene
from tests.kit.sessions import SessionFactory

Look = Callable[..., dict[str, Any]]


@pytest.fixture
def look(orbit_database: TestDatabase, capsys: pytest.CaptureFixture[str]) -> Look:
    """Give a call that returns what the command says, by the name of the subscription."""

    def run(*arguments: str) -> dict[str, Any]:
        assert main.run(["events", "status", *arguments, "--dsn", orbit_database.dsn, "--json"]) is ExitCode.DONE
        document = json.loads(capsys.readouterr().out)
        return {**document, **{one["name"]: one for one in document["subscriptions"]}}

    return run


def _age_claims(scene: Scene, seconds: int) -> None:
    """Let that much time pass since every lease."""
    with scene.connection.transaction():
        scene.run("set local session_replication_role = replica")
        scene.run(
            "update orbit.event_deliveries set lease_expires_at = lease_expires_at - make_interval(secs => %s)"
            " where lease_expires_at is not null",
            seconds,
        )


@pytest.mark.req("orbit:OPS-06")
def test_status_follows_a_delivery_from_idle_to_acknowledged(orbit_scene: Scene, look: Look) -> None:
    """IDLE, then work that nobody pulls, then sent and unanswered, then moving, then IDLE again, with its figures."""
    subscription = orbit_scene.subscribe("orders")
    assert look()["orders"]["reason"] == "IDLE"
    _ = orbit_scene.results(3)
    waiting = look()["orders"]
    assert (waiting["reason"], waiting["lag"], waiting["pending_count"]) == ("NOT_PULLED", 3, 0)
    first = orbit_scene.lease(subscription, requested=2)
    assert look()["orders"]["reason"] is None, "a claim is under way and there is more"
    second = orbit_scene.lease(subscription)
    sent = look()["orders"]
    assert (sent["reason"], sent["leased"], sent["pending_count"], sent["lag"]) == ("AWAITING_ACK", 3, 3, 0)
    _ = orbit_scene.acknowledge(subscription, *first.leases, *second.leases)
    done = look()["orders"]
    assert (done["reason"], done["leased"], done["pending_count"]) == ("IDLE", 0, 0)


@pytest.mark.req("orbit:OPS-06", "orbit:LSE-15")
def test_status_tells_a_dead_consumer_from_a_slow_one(orbit_scene: Scene, look: Look) -> None:
    """A lease past its deadline is overdue; when nobody has claimed for a minute, nobody pulls."""
    subscription = orbit_scene.subscribe("orders")
    _ = orbit_scene.result()
    _ = orbit_scene.lease(subscription)
    _age_claims(orbit_scene, 31)
    lately = look()["orders"]
    assert (lately["reason"], lately["overdue"], lately["leased"]) == (None, 1, 1)
    _age_claims(orbit_scene, 30)
    assert look()["orders"]["reason"] == "NOT_PULLED"


@pytest.mark.req("orbit:OPS-06")
def test_status_names_the_backoff_and_its_end(
    orbit_scene: Scene, look: Look, orbit_database: TestDatabase, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was taken back waits, and the table says until when."""
    subscription = orbit_scene.subscribe("orders", max_attempts=9)
    _ = orbit_scene.result()
    (lease,) = orbit_scene.lease(subscription).leases
    orbit_scene.age_lease(lease.delivery_id)
    _ = orbit_scene.lease(subscription)
    orbit_scene.age_backoff(lease.delivery_id, seconds=-60)
    one = look()["orders"]
    assert one["reason"] == "BACKOFF"
    assert one["next_available_at"] is not None
    assert main.run(["events", "status", "--dsn", orbit_database.dsn]) is ExitCode.DONE
    assert "BACKOFF until " in capsys.readouterr().out


@pytest.mark.req("orbit:OPS-06", "orbit:MAT-04")
def test_status_names_a_full_window_with_what_is_exhausted(
    orbit_scene: Scene, look: Look, orbit_database: TestDatabase, capsys: pytest.CaptureFixture[str]
) -> None:
    """A window of exhausted deliveries stands still, and the reason says how many they are."""
    subscription = orbit_scene.subscribe("orders", max_pending=2, max_attempts=1)
    _ = orbit_scene.results(3)
    for lease in orbit_scene.lease(subscription).leases:
        orbit_scene.age_lease(lease.delivery_id)
    _ = orbit_scene.lease(subscription)
    one = look()["orders"]
    assert (one["reason"], one["expired"], one["pending_count"], one["lag"]) == ("WINDOW_FULL", 2, 2, 1)
    assert main.run(["events", "status", "--dsn", orbit_database.dsn]) is ExitCode.DONE
    assert "WINDOW_FULL (2 EXPIRED)" in capsys.readouterr().out


@pytest.mark.req("orbit:OPS-06", "orbit:MIG-12")
def test_status_names_pause_lost_history_and_placeholders(orbit_scene: Scene, look: Look) -> None:
    """What cannot move whatever a consumer does is said before everything else."""
    paused, lagging = orbit_scene.subscribe("paused"), orbit_scene.subscribe("lagging")
    _ = orbit_scene.results(12)
    _ = orbit_scene.rows(
        "select * from orbit.subscription_pause_v1(%s, %s, 1, null, 'k', %s)",
        orbit_scene.owner.sha256,
        paused,
        "0" * 64,
    )
    orbit_scene.run("update orbit.event_stream_locks set retained_from_sequence = 11")
    orbit_scene.run(
        "insert into orbit.event_subscriptions (subscription_id, namespace_id, name, legacy, status)"
        " values ('sub_old', %s, 'placeholder', true, 'DISABLED')",
        orbit_scene.namespace_id,
    )
    shown = look()
    reasons = {one["name"]: one["reason"] for one in shown["subscriptions"]}
    assert reasons == {"paused": "PAUSED", "lagging": "HISTORY_EXPIRED", "placeholder": "DISABLED"}
    (stream,) = shown["streams"]
    assert (stream["last_sequence"], stream["retained_from_sequence"], stream["results"]) == (12, 11, 2)
    assert lagging in {one["subscription_id"] for one in shown["subscriptions"]}


@pytest.mark.req("orbit:OPS-06")
def test_status_can_be_asked_for_one_namespace(orbit_scene: Scene, orbit_database: TestDatabase, look: Look) -> None:
    """Another namespace's subscriptions stay out; one that does not exist has an exit code of its own."""
    _ = orbit_scene.subscribe("orders")
    with psycopg.connect(orbit_database.dsn, autocommit=True) as connection:
        _ = Scene(connection, namespace="other").subscribe("mail")
    assert [one["name"] for one in look("--namespace", "other")["subscriptions"]] == ["mail"]
    assert len(look()["subscriptions"]) == 2
    assert main.run(["events", "status", "--namespace", "none", "--dsn", orbit_database.dsn]) is ExitCode.NOT_FOUND


@pytest.mark.req("F51", "orbit:OPS-06")
def test_status_names_who_holds_the_stream_and_who_waits(
    orbit_scene: Scene, orbit_database: TestDatabase, sessions: SessionFactory, look: Look
) -> None:
    """A transaction that holds the stream row is named with its application; the session that waits for it as well."""
    _ = orbit_scene.submit()
    (attempt,) = orbit_scene.claim()
    holder, waiter = sessions(orbit_database, 2)
    _ = holder.execute("set application_name = 'half-hour-job'")
    _ = holder.execute("select 1 from orbit.event_stream_locks for no key update")
    _ = waiter.execute("set application_name = 'patient'")
    confirming = waiter.start(
        "select response_json from orbit.attempt_confirm_v1(%s, %s, %s, 'succeeded', 'none', false, '1')",
        (orbit_scene.owner.sha256, attempt.attempt_id, attempt.secret_sha256),
    )
    waiter.wait_until_blocked(by=holder)
    (wait,) = look()["waits"]
    assert (wait["application"], wait["process_id"]) == ("patient", waiter.process_id)
    assert (wait["holder_application"], wait["holder_process_id"]) == ("half-hour-job", holder.process_id)
    assert wait["holder_transaction_seconds"] >= wait["waiting_seconds"]
    holder.rollback()
    assert confirming.result()


@pytest.mark.req("F77", "orbit:OPS-06")
async def test_a_session_with_an_old_snapshot_is_named(orbit_database: TestDatabase) -> None:
    """A dump or a forgotten transaction is found by its snapshot; one that only reads what is current is not."""
    async with (
        await psycopg.AsyncConnection.connect(orbit_database.dsn, application_name="long-report") as report,
        await psycopg.AsyncConnection.connect(orbit_database.dsn, autocommit=True) as looking,
    ):
        assert await status.snapshots(looking, older_than_seconds=0) == []
        _ = await report.execute("set transaction isolation level repeatable read")
        _ = await report.execute("select count(*) from orbit.namespaces")
        (found,) = await status.snapshots(looking, older_than_seconds=0)
        assert (found.application, found.process_id) == ("long-report", report.info.backend_pid)
        assert await status.snapshots(looking) == []


@pytest.mark.req("F83")
def test_status_probes_indexes_and_never_walks_a_table(orbit_scene: Scene) -> None:
    """Behind 5,000 acknowledged deliveries a look reads a bounded number of pages, with nothing analysed."""
    subscription = orbit_scene.subscribe("orders")
    _ = orbit_scene.result()
    _ = orbit_scene.lease(subscription)
    with orbit_scene.connection.transaction():
        orbit_scene.run("set local session_replication_role = replica")
        orbit_scene.run(
            "insert into orbit.event_deliveries (delivery_id, namespace_id, subscription_id, event_id, state, attempts,"
            " lease_epoch, legacy, event_sequence, attempt_budget, available_at, lease_secret_sha256,"
            " lease_connection_id, lease_expires_at, acked_at)"
            " select 'dlv_' || i, namespace_id, subscription_id, 'evt_' || i, 'ACKED', 1, 1, false, 10 + i, 20, now(),"
            " sha256('s'), 'conn', now(), now()"
            " from orbit.event_subscriptions cross join generate_series(1, 5000) as i"
        )
    orbit_scene.run("vacuum analyze orbit.event_deliveries")
    (plan,) = orbit_scene.row("explain (analyze, buffers, format json) select * from orbit.subscription_status")
    top = plan[0]["Plan"]
    assert top["Shared Hit Blocks"] + top["Shared Read Blocks"] < 200


@pytest.mark.req("orbit:OPS-06", "F85")
def test_status_can_be_watched_until_it_is_interrupted(orbit_database: TestDatabase, tmp_path: Path) -> None:
    """With --watch and --json one document follows another; Ctrl-C ends it with 130."""
    arguments = ("events", "status", "--watch", "--every", "0.5", "--json", "--dsn", orbit_database.dsn)
    with Running(*arguments, folder=tmp_path, program=ORBIT) as running:
        _ = eventually(lambda: len(running.stdout) >= 2, what="two looks")
        running.signal(signal.SIGINT)
        done = running.finish()
    assert done.code == ExitCode.INTERRUPTED
    assert all("subscriptions" in json.loads(line) for line in done.stdout.splitlines())
