"""The journal's own functions: sequence, head and stream row (JRN-03 to JRN-21)."""

from __future__ import annotations

import psycopg
import pytest

from seapost.testing.databases import TestDatabase
from tests.kit.orbit.scene import QUEUE, Scene, opened_scene


@pytest.mark.req("orbit:JRN-14", "orbit:JRN-06", "orbit:JRN-03")
def test_sequences_begin_with_one_and_have_no_gap_even_after_a_rollback(orbit_scene: Scene) -> None:
    """1, 2, 3: a transaction that took the next one and rolled back leaves it to the next."""
    assert orbit_scene.head() == 0
    assert orbit_scene.result()["sequence"] == 1
    with orbit_scene.connection.transaction(force_rollback=True):
        assert orbit_scene.result()["sequence"] == 2
    assert [receipt["sequence"] for receipt in orbit_scene.results(2)] == [2, 3]
    assert orbit_scene.head() == 3


@pytest.mark.req("orbit:JRN-18")
def test_one_transaction_may_append_several_results(orbit_scene: Scene) -> None:
    """It holds the stream row once and gets consecutive sequences."""
    with orbit_scene.connection.transaction():
        assert [receipt["sequence"] for receipt in orbit_scene.results(3)] == [1, 2, 3]
    assert orbit_scene.head() == 3


@pytest.mark.req("orbit:JRN-13")
def test_namespaces_count_for_themselves(orbit_database: TestDatabase, orbit_scene: Scene) -> None:
    """Each stream begins with 1."""
    with opened_scene(orbit_database, namespace="other") as other:
        assert (orbit_scene.result()["sequence"], other.result()["sequence"]) == (1, 1)
        assert (orbit_scene.head(), other.head()) == (1, 1)


@pytest.mark.req("orbit:JRN-15")
@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_results_are_refused_at_another_isolation_level(orbit_scene: Scene, level: str) -> None:
    """The head would be that of an old snapshot; the whole confirmation is rolled back."""
    task_id = orbit_scene.submit()
    (attempt,) = orbit_scene.claim()
    orbit_scene.run("select set_config('default_transaction_isolation', %s, false)", level)
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="READ COMMITTED"):
        orbit_scene.confirm(attempt)
    orbit_scene.run("reset default_transaction_isolation")
    assert orbit_scene.value("select state from orbit.tasks where task_id = %s", task_id) == "running"
    assert orbit_scene.confirm(attempt)["sequence"] == 1


@pytest.mark.req("orbit:JRN-16", "orbit:OPS-05", "orbit:T-E11")
def test_a_namespace_without_a_stream_row_takes_no_results_and_is_not_ready(orbit_scene: Scene) -> None:
    """The confirmation fails whole, and readiness says why; with the row back it succeeds."""
    orbit_scene.submit()
    (attempt,) = orbit_scene.claim()
    assert orbit_scene.rows("select * from orbit.readiness_v1()") == []
    orbit_scene.run("create table public.kept as select * from orbit.event_stream_locks")
    orbit_scene.run("delete from orbit.event_stream_locks")
    with pytest.raises(psycopg.errors.CheckViolation, match="no stream row"):
        orbit_scene.confirm(attempt)
    assert orbit_scene.value("select * from orbit.readiness_v1()").endswith(
        f"{orbit_scene.namespace_id} has no stream row"
    )
    orbit_scene.run("insert into orbit.event_stream_locks select * from public.kept")
    assert orbit_scene.confirm(attempt)["sequence"] == 1


@pytest.mark.req("orbit:JRN-20")
def test_producers_lock_the_stream_row_and_never_rewrite_it(orbit_scene: Scene) -> None:
    """Its place in the table and its writing transaction stay what they were, however many results there are."""
    row = "select ctid::text, xmin::text, updated_at from orbit.event_stream_locks"
    before = orbit_scene.row(row)
    orbit_scene.results(5)
    assert orbit_scene.row(row) == before


@pytest.mark.req("orbit:JRN-20")
def test_a_cleanup_of_everything_does_not_reset_the_head(orbit_scene: Scene) -> None:
    """The head is at least the sequence before the retained boundary."""
    orbit_scene.results(2)
    orbit_scene.run("update orbit.event_stream_locks set retained_from_sequence = 10")
    assert orbit_scene.head() == 9
    assert orbit_scene.result(queue=QUEUE)["sequence"] == 10


@pytest.mark.req("orbit:JRN-09")
def test_reading_the_head_waits_for_nobody(orbit_database: TestDatabase, orbit_scene: Scene) -> None:
    """A producer that holds the stream row keeps no reader, and shows nothing before its commit."""
    with psycopg.connect(orbit_database.dsn) as producer:
        producer.execute("select * from orbit.event_stream_locks for no key update")
        orbit_scene.run("set lock_timeout = '1ms'")
        assert orbit_scene.head() == 0
