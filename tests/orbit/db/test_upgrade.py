"""From version 12 to 13 with history in the database (MIG-05 to MIG-14, MIG-22, MIG-23)."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from orbit.store import migrations
from seapost.testing.databases import TestDatabase
from tests.kit.orbit.scene import Scene, opened_scene
from tests.kit.orbit.schema_histories import NEWEST, HistoryUpTo

Row = tuple[Any, ...]

OLD_EVENTS = "select * from orbit.events where event_id like 'evt_old%%' order by event_id"
PLACED: tuple[tuple[str, int, int], ...] = (("PENDING", 0, 0), ("LEASED", 3, 4), ("EXPIRED", 37, 37), ("ACKED", 2, 2))


def _fill(connection: psycopg.Connection[Row]) -> None:
    """Rows as the platform before result subscriptions wrote them."""
    connection.execute("insert into orbit.namespaces (namespace_id, name) values ('ns_old', 'acme'), ('ns_2', 'other')")
    connection.execute(
        "insert into orbit.events (event_id, namespace_id, queue_id, task_id, type, task_revision)"
        " select 'evt_old' || n, 'ns_old', 'q_old', 'task_old' || n, 'task.succeeded', 3 from generate_series(1, 5) n"
    )
    connection.execute(
        "insert into orbit.event_subscriptions (subscription_id, namespace_id, name)"
        " values ('sub_old', 'ns_old', 'old')"
    )
    for number, (state, attempts, epoch) in enumerate(PLACED, start=1):
        connection.execute(
            "insert into orbit.event_deliveries (delivery_id, namespace_id, subscription_id, event_id, state, attempts,"
            " lease_epoch) values (%s, 'ns_old', 'sub_old', %s, %s, %s, %s)",
            (f"dlv_{number}", f"evt_old{number}", state, attempts, epoch),
        )


def _tables(connection: psycopg.Connection[Row]) -> set[str]:
    rows = connection.execute(
        "select relname::text from pg_class where relnamespace = 'orbit'::regnamespace and relkind = 'r'"
    )
    return {row[0] for row in rows}


@pytest.fixture
def old_connection(orbit_empty_database: TestDatabase, history_up_to: HistoryUpTo) -> psycopg.Connection[Row]:
    """Give a session on a database at version 12 with history in it."""
    migrations.up(orbit_empty_database.dsn, tree=history_up_to(NEWEST - 1).tree)
    connection = orbit_empty_database.connect(autocommit=True)
    _fill(connection)
    return connection


@pytest.mark.req("orbit:T-M01", "orbit:MIG-01", "orbit:MIG-12", "orbit:MIG-13", "orbit:MIG-22", "orbit:MIG-23")
def test_placeholders_are_kept_disabled_and_keep_their_counts(
    orbit_empty_database: TestDatabase, old_connection: psycopg.Connection[Row]
) -> None:
    """Exactly two new tables; attempts and epoch stay, the budget covers what was used, pending counts the open."""
    before = _tables(old_connection)
    migrations.up(orbit_empty_database.dsn)
    assert _tables(old_connection) - before == {"event_stream_locks", "result_events"}
    subscriptions = old_connection.execute(
        "select legacy, status, owner_credential_id, queue_id, types, from_sequence, cursor_sequence, pending_count,"
        " revision from orbit.event_subscriptions"
    ).fetchall()
    assert subscriptions == [(True, "DISABLED", None, None, None, None, 0, 3, 1)]
    deliveries = old_connection.execute(
        "select legacy, state, attempts, lease_epoch, attempt_budget, event_sequence, revision"
        " from orbit.event_deliveries order by delivery_id"
    ).fetchall()
    assert deliveries == [
        (True, "PENDING", 0, 0, 20, None, 1),
        (True, "LEASED", 3, 4, 20, None, 1),
        (True, "EXPIRED", 37, 37, 37, None, 1),
        (True, "ACKED", 2, 2, 20, None, 1),
    ]


@pytest.mark.req("orbit:MIG-14", "orbit:JRN-16")
def test_every_namespace_of_before_has_a_stream_row(
    orbit_empty_database: TestDatabase, old_connection: psycopg.Connection[Row]
) -> None:
    """Retained from 1, nothing in it yet."""
    migrations.up(orbit_empty_database.dsn)
    streams = old_connection.execute(
        "select namespace_id, last_sequence, retained_from_sequence from orbit.event_streams order by namespace_id"
    ).fetchall()
    assert streams == [("ns_2", 0, 1), ("ns_old", 0, 1)]
    assert old_connection.execute("select * from orbit.readiness_v1()").fetchall() == []


@pytest.mark.req("orbit:T-M02", "orbit:MIG-06", "orbit:MIG-10", "orbit:MIG-11")
def test_old_events_stay_as_they_are_and_get_no_results(
    orbit_empty_database: TestDatabase, old_connection: psycopg.Connection[Row]
) -> None:
    """Not a byte changes, no journal row is made up, a subscription from 0 begins with the first new result: 1."""
    before = old_connection.execute(OLD_EVENTS).fetchall()
    migrations.up(orbit_empty_database.dsn)
    assert old_connection.execute(OLD_EVENTS).fetchall() == before
    assert len(before) == 5
    assert old_connection.execute("select count(*) from orbit.result_events").fetchone() == (0,)
    with opened_scene(orbit_empty_database) as scene:
        assert scene.namespace_id == "ns_old"
        subscription_id = scene.subscribe(from_sequence=0)
        assert scene.lease(subscription_id).leases == []
        receipt = scene.result("1")
        assert receipt["sequence"] == 1
        assert [one.event_id for one in scene.lease(subscription_id).leases] == [receipt["event_id"]]


@pytest.mark.req("orbit:T-M02", "orbit:MIG-12", "orbit:MIG-22")
def test_a_placeholder_is_out_of_reach_of_every_credential(
    orbit_empty_database: TestDatabase, old_connection: psycopg.Connection[Row]
) -> None:
    """It is not there for anybody, and its name stays taken."""
    migrations.up(orbit_empty_database.dsn)
    with opened_scene(orbit_empty_database) as scene:
        for attempt in (lambda: scene.lease("sub_old"), lambda: _read(scene)):
            with pytest.raises(psycopg.Error) as caught:
                attempt()
            assert caught.value.sqlstate == "OB016"
        with pytest.raises(psycopg.Error) as caught:
            scene.subscribe("old")
        assert caught.value.sqlstate == "OB018"
    assert old_connection.execute("select pending_count from orbit.event_subscriptions").fetchone() == (3,)


def _read(scene: Scene) -> None:
    scene.rows("select orbit.subscription_get_v1(%s, 'sub_old')", scene.owner.sha256)


@pytest.mark.req("orbit:T-M03", "orbit:MIG-07", "orbit:MIG-08", "orbit:SRC-21")
def test_a_writer_of_before_is_refused_afterwards(
    orbit_empty_database: TestDatabase, old_connection: psycopg.Connection[Row]
) -> None:
    """It writes a result's state event and knows no journal: its commit fails, and nothing of it stays."""
    migrations.up(orbit_empty_database.dsn)
    with pytest.raises(psycopg.errors.CheckViolation), old_connection.transaction():
        old_connection.execute(
            "insert into orbit.events (event_id, namespace_id, queue_id, task_id, type, task_revision)"
            " values ('evt_late', 'ns_old', 'q_old', 'task_late', 'task.succeeded', 3)"
        )
    assert old_connection.execute("select count(*) from orbit.events").fetchone() == (5,)


@pytest.mark.req("orbit:MIG-03", "orbit:MIG-09", "orbit:AUT-08")
def test_the_upgrade_changes_no_credential(
    orbit_empty_database: TestDatabase, old_connection: psycopg.Connection[Row]
) -> None:
    """A credential of before has the actions that it had; none of the three new ones comes by itself."""
    old_connection.execute(
        "insert into orbit.credentials (credential_id, namespace_id, application_id, name, token_sha256, actions)"
        " values ('cred_old', 'ns_old', 'app_old', 'old', sha256('x'), '{tasks:read}')"
    )
    before = old_connection.execute("select * from orbit.credentials").fetchall()
    migrations.up(orbit_empty_database.dsn)
    assert old_connection.execute("select * from orbit.credentials").fetchall() == before
