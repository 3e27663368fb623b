"""The export of a history: what a database says, as lines that the checker reads, and what a damaged database says."""

from __future__ import annotations

from pathlib import Path
from typing import Final, LiteralString

import psycopg
import pytest

from orbit.history.checker import check_history
from orbit.history.exporting import export_history
from orbit.history.operations import Aged, digest_of
from orbit.history.reading import History, parse_line, read_history
from orbit.history.verdict import Invariant, Verdict
from orbit.store.history import history_lines
from tests.kit.database import TestDatabase
from tests.kit.orbit.scene import Scene, request_sha256

SECRET_RESULT: Final = '{"secret":"the result"}'


def live(scene: Scene) -> list[Aged]:
    """All four types, a requeue, a redelivery, a pause and a manual retry; return what the test did by hand."""
    subscription = scene.subscribe(max_pending=3, max_attempts=2)
    scene.result(SECRET_RESULT)
    scene.result(outcome="failed")
    scene.result(outcome="failed", effect="unknown")
    scene.row(
        "select * from orbit.task_cancel_v1(%s, %s, 1, 'test', %s, %s)",
        scene.owner.sha256,
        scene.submit(),
        scene.key(),
        request_sha256("cancel"),
    )
    scene.submit(policy="safe")
    (attempt,) = scene.claim()
    scene.confirm(attempt, outcome="failed", retryable=True)

    first, second, third = scene.lease(subscription).leases
    scene.acknowledge(subscription, second, third)
    scene.acknowledge(subscription, second)
    _switch(scene, "pause", subscription, revision=1)
    assert scene.lease(subscription).reason == "PAUSED"
    _switch(scene, "resume", subscription, revision=2)
    scene.age_lease(first.delivery_id)
    aged = [_aged(scene, first.delivery_id)]
    (fourth,) = scene.lease(subscription).leases
    scene.age_backoff(first.delivery_id)
    (again,) = scene.lease(subscription).leases
    assert (again.delivery_id, again.lease_epoch) == (first.delivery_id, 2)
    scene.acknowledge(subscription, fourth)
    scene.age_lease(first.delivery_id)
    aged.append(_aged(scene, first.delivery_id))
    assert scene.lease(subscription).leases == []  # the budget of 2 is used up
    scene.row(
        "select * from orbit.delivery_retry_v1(%s, %s, %s, %s, 'test', 5, %s, %s)",
        scene.owner.sha256,
        subscription,
        first.delivery_id,
        scene.value("select revision from orbit.event_deliveries where delivery_id = %s", first.delivery_id),
        scene.key(),
        request_sha256("retry"),
    )
    (last,) = scene.lease(subscription).leases
    assert last.lease_epoch == 3
    return aged


def _aged(scene: Scene, delivery: str) -> Aged:
    moment = scene.value("select clock_timestamp()")
    return Aged(id=f"aged-{moment}", process="test", begin=moment, end=moment, delivery=delivery)


def _switch(scene: Scene, verb: str, subscription: str, *, revision: int) -> None:
    statements: dict[str, LiteralString] = {
        "pause": "select * from orbit.subscription_pause_v1(%s, %s, %s, null, %s, %s)",
        "resume": "select * from orbit.subscription_resume_v1(%s, %s, %s, null, %s, %s)",
    }
    key, fingerprint = scene.key(), request_sha256(verb)
    scene.row(statements[verb], scene.owner.sha256, subscription, revision, key, fingerprint)


def lines_of(database: TestDatabase, namespace: str | None = None) -> list[str]:
    """The exported lines."""
    with psycopg.connect(database.dsn) as connection:
        return list(history_lines(connection, namespace=namespace))


def verdict_of(lines: list[str], aged: list[Aged]) -> Verdict:
    """Check exported lines, with the hand that moved leases."""
    return check_history(History.of([*(parse_line(text, where="export") for text in lines), *aged]))


def test_what_the_real_functions_leave_behind_keeps_every_promise(
    orbit_scene: Scene, orbit_database: TestDatabase
) -> None:
    """Every kind of line is exported, and nearly every invariant finds something to look at."""
    aged = live(orbit_scene)
    verdict = verdict_of(lines_of(orbit_database), aged)
    assert verdict.holds, verdict.violations
    unlooked = {invariant for invariant, count in verdict.checked.items() if not count}
    assert unlooked <= {Invariant.H7, Invariant.H9}  # keys are clients' words, and every backoff here was ended by hand


DAMAGE: Final[dict[str, tuple[Invariant, LiteralString]]] = {
    "a journal row deleted": (Invariant.H1, "delete from orbit.result_events where sequence = 2"),
    "a delivered event taken back": (Invariant.H8, "delete from orbit.result_events where sequence = 4"),
    "a commit time moved": (
        Invariant.H2,
        """update orbit.events as e set created_at = clock_timestamp() from orbit.result_events as r
           where r.event_id = e.event_id and r.sequence = 1""",
    ),
    "a delivery deleted": (Invariant.H3, "delete from orbit.event_deliveries where event_sequence = 3"),
    "a counter changed": (Invariant.H4, "update orbit.event_subscriptions set pending_count = 2"),
    "an epoch authorised twice": (
        Invariant.H5,
        """update orbit.audit_log set detail_json = replace(detail_json, '"lease_epoch":3', '"lease_epoch":2')
           where action = 'event.delivery.authorized'""",
    ),
    "a delivery after its acknowledgement": (
        Invariant.H6,
        """update orbit.audit_log set created_at = created_at - interval '1 minute'
           where action = 'event.delivery.acked'""",
    ),
    "a lease during the pause": (
        Invariant.H12,
        """update orbit.audit_log set created_at = created_at - interval '1 minute'
           where action = 'event.subscription.paused'""",
    ),
    "an audit row deleted": (Invariant.H13, "delete from orbit.audit_log where action = 'event.subscription.created'"),
    "an acknowledgement without its audit row": (
        Invariant.H13,
        "delete from orbit.audit_log where action = 'event.delivery.acked'",
    ),
    "a budget without a retry": (Invariant.H13, "update orbit.event_deliveries set attempt_budget = 90"),
}


def test_a_damaged_database_is_found_out_by_the_right_invariant(
    orbit_scene: Scene, orbit_database: TestDatabase
) -> None:
    """Each damage needs a superuser who switches the guards off; what it breaks is seen in the export alone."""
    aged = live(orbit_scene)
    connection = orbit_database.connect()
    for what, (invariant, statement) in DAMAGE.items():
        lines: list[str] = []
        connection.execute("set local session_replication_role = replica")
        assert connection.execute(statement).rowcount > 0, what
        for part in ("journal", "subscriptions", "audit"):
            lines += [row[0] for row in connection.execute(f"select orbit.history_{part}_v1(null)".encode())]
        connection.rollback()
        verdict = verdict_of(lines, aged)
        assert verdict.found[invariant], f"{what}: {verdict.violations}"


@pytest.mark.req("orbit:AUD-03")
def test_an_export_holds_no_secret_and_no_result(orbit_scene: Scene, orbit_database: TestDatabase) -> None:
    """Digests of snapshots only, and none that the database compares with anything."""
    live(orbit_scene)
    text = "\n".join(lines_of(orbit_database))
    assert "the result" not in text
    secrets = orbit_scene.rows("select encode(lease_secret_sha256, 'hex') from orbit.event_deliveries")
    for (digest,) in secrets:
        assert digest[:32] not in text


def test_one_namespace_is_exported_without_the_others(orbit_scene: Scene, orbit_database: TestDatabase) -> None:
    """An unknown namespace has no lines; none named is all."""
    live(orbit_scene)
    assert sorted(lines_of(orbit_database, "acme")) == sorted(lines_of(orbit_database)) != []
    assert lines_of(orbit_database, "nobody") == []


@pytest.mark.parametrize("role", ["orbit_operator", "orbit_auditor"])
def test_an_operator_may_export(orbit_scene: Scene, orbit_database: TestDatabase, role: str) -> None:
    """The functions are granted to those who look after the data; the runtime role has no use for them."""
    orbit_scene.result()
    assert len(orbit_database.connect(role).execute("select orbit.history_journal_v1(null)").fetchall()) == 2
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        orbit_database.connect("orbit_server").execute("select orbit.history_journal_v1(null)")


@pytest.mark.parametrize("text", ["", "plain", "größer 中文 😀", '{"schema_version":1}', "x" * 100_000])
def test_a_digest_made_in_sql_is_the_one_made_in_python(orbit_database: TestDatabase, text: str) -> None:
    """A client's digest of a snapshot can be compared with the journal's."""
    row = orbit_database.connect().execute("select orbit.history_digest(%s)", (text,)).fetchone()
    assert row == (digest_of(text),)


def test_an_export_never_writes_over_a_file(orbit_database: TestDatabase, tmp_path: Path) -> None:
    """A history is evidence; the new one goes to a new file, readable by its owner only."""
    path = tmp_path / "history.jsonl"
    with psycopg.connect(orbit_database.dsn) as connection:
        assert export_history(connection, path) == 0
    assert path.stat().st_mode & 0o777 == 0o600
    with psycopg.connect(orbit_database.dsn) as connection, pytest.raises(FileExistsError):
        export_history(connection, path)
    assert check_history(read_history(path)).holds
