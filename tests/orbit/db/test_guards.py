"""What the database itself refuses, whoever writes: facts, journal, snapshots, subscriptions, deliveries (23.4)."""

from __future__ import annotations

import uuid
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import LiteralString

import psycopg
import pytest
from psycopg import sql

from tests.kit.database import DatabaseServer
from tests.kit.orbit.database import new_orbit_database
from tests.kit.orbit.scene import Scene, opened_scene

EVENT = (
    "insert into orbit.events (event_id, namespace_id, queue_id, task_id, type, task_revision)"
    " values (%s, %s, %s, %s, %s, 7)"
)
JOURNAL = (
    "insert into orbit.result_events (event_id, namespace_id, queue_id, task_id, type, sequence, snapshot_json)"
    " values (%s, %s, %s, %s, %s, %s, %s)"
)
RESTRICT = psycopg.errors.RestrictViolation
CHECK = psycopg.errors.CheckViolation


def _snapshot(task_id: str, queue_id: str, /, **changed: str) -> str:
    members = {
        "schema_version": "1",
        "task_id": f'"{task_id}"',
        "queue_id": f'"{queue_id}"',
        "state": '"succeeded"',
        "revision": "7",
        "effect_uncertain": "false",
        "current_attempt_id": "null",
        "result": "null",
    } | changed
    return "{" + ",".join(f'"{name}":{text}' for name, text in members.items() if text) + "}"


@contextmanager
def _rolled_back(scene: Scene) -> Generator[None]:
    """A transaction that checks its deferred triggers and leaves nothing behind."""
    with scene.connection.transaction(force_rollback=True):
        yield
        scene.run("set constraints all immediate")


def _ids() -> tuple[str, str]:
    return f"evt_{uuid.uuid4().hex}", f"task_{uuid.uuid4().hex}"


def _set(table: str, changes: LiteralString, condition: LiteralString = "true") -> sql.Composed:
    return sql.SQL("update {} set {} where {}").format(
        sql.Identifier("orbit", table), sql.SQL(changes), sql.SQL(condition)
    )


def _write(
    scene: Scene,
    *,
    event: bool = True,
    kind: str = "task.succeeded",
    namespace_id: str | None = None,
    event_queue_id: str | None = None,
    sequence: int = 3,
    snapshot: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Write a journal row, with its state event or without, check what is deferred, and roll back."""
    event_id, task_id = _ids()
    namespace_id = namespace_id or scene.namespace_id
    with _rolled_back(scene):
        if event:
            scene.run(EVENT, event_id, namespace_id, event_queue_id or scene.queue_id, task_id, kind)
        text = _snapshot(task_id, scene.queue_id, **snapshot)
        scene.run(JOURNAL, event_id, namespace_id, scene.queue_id, task_id, kind, sequence, text)


def _run(scene: Scene, *statements: LiteralString | sql.Composed) -> None:
    """Run statements, check what is deferred, and roll back."""
    with _rolled_back(scene):
        for statement in statements:
            scene.run(statement)


@pytest.fixture(scope="module")
def told(database_server: DatabaseServer) -> Iterator[Scene]:
    """Give a scene in which two results exist, one delivered, one leased; its tests leave nothing behind."""
    database = new_orbit_database(database_server)
    with opened_scene(database) as scene:
        subscription_id = scene.subscribe()
        scene.results(2)
        (first, _) = scene.lease(subscription_id).leases
        scene.acknowledge(subscription_id, first)
        yield scene
    database_server.drop(database)


@pytest.mark.req("orbit:T-N19", "orbit:SRC-21")
def test_a_result_event_without_its_journal_row_is_refused_at_commit(told: Scene) -> None:
    """Alone, or beside a journal row that tells another queue, it does not commit; a plain state event does."""
    event_id, task_id = _ids()
    with pytest.raises(CHECK, match="has no journal row"), _rolled_back(told):
        told.run(EVENT, event_id, told.namespace_id, told.queue_id, task_id, "task.succeeded")
    with pytest.raises(CHECK, match=r"has no (journal row|state event)"):
        _write(told, event_queue_id="q_other")
    with _rolled_back(told):
        told.run(EVENT, event_id, told.namespace_id, told.queue_id, task_id, "task.requeued")


@pytest.mark.req("orbit:T-N19", "orbit:SRC-21", "orbit:SRC-11")
def test_a_journal_row_without_its_event_is_refused_at_commit(told: Scene) -> None:
    """The journal tells of state events only, each under the same id."""
    with pytest.raises(CHECK, match="has no state event"):
        _write(told, event=False)


@pytest.mark.req("orbit:T-N19", "orbit:SRC-01", "orbit:SRC-02")
@pytest.mark.parametrize("kind", ["task.requeued", "task.created", "task.started", "task.finished"])
def test_only_the_four_result_types_enter_the_journal(told: Scene, kind: str) -> None:
    """A requeued task is no result; neither is any other type."""
    with pytest.raises(CHECK):
        _write(told, event=False, kind=kind, snapshot={"state": f'"{kind.removeprefix("task.")}"'})


@pytest.mark.req("orbit:T-N19", "orbit:JRN-14", "orbit:JRN-21", "orbit:JRN-06")
@pytest.mark.parametrize(
    ("sequence", "error"),
    [(4, CHECK), (2, psycopg.errors.UniqueViolation), (0, CHECK), (3, None)],
)
def test_a_sequence_is_the_next_one_or_refused(told: Scene, sequence: int, error: type[psycopg.Error] | None) -> None:
    """After two results only 3 is free: 4 leaves a gap, 2 is taken, 0 does not exist."""
    if error is None:
        _write(told, sequence=sequence)
        return
    with pytest.raises(error):
        _write(told, sequence=sequence)


@pytest.mark.req("orbit:T-N19", "orbit:JRN-16")
def test_a_journal_row_of_a_namespace_without_a_stream_is_refused(told: Scene) -> None:
    """A namespace whose stream row is missing takes no results."""
    with pytest.raises(CHECK, match="has no stream row"):
        _write(told, namespace_id="ns_none", sequence=1)


@pytest.mark.req("orbit:T-N19", "orbit:IDM-11")
def test_an_identity_without_a_response_is_refused_at_commit(told: Scene) -> None:
    """A committed identity always has the response that a replay returns."""
    with pytest.raises(CHECK, match="no response"), _rolled_back(told):
        told.run(
            "insert into orbit.idempotency_records (identity_sha256, namespace_id, credential_id, action,"
            " request_sha256) values (repeat('a', 64), 'ns', 'cred', 'task.submit', repeat('b', 64))"
        )


@pytest.mark.req("orbit:T-N20", "orbit:SRC-16", "orbit:SRC-22", "orbit:SRC-23", "orbit:AUD-08")
@pytest.mark.parametrize("table", ["result_events", "events", "execution_receipts", "audit_log"])
def test_facts_are_never_changed_removed_or_emptied(told: Scene, table: str) -> None:
    """Not even by a superuser, as long as the guards are on."""
    for statement in ("update {} set created_at = now()", "delete from {}", "truncate {}"):
        with pytest.raises(RESTRICT, match="immutable"):
            _run(told, sql.SQL(statement).format(sql.Identifier("orbit", table)))


@pytest.mark.req("orbit:T-N20", "orbit:SRC-23")
@pytest.mark.parametrize("table", ["event_subscriptions", "event_deliveries"])
def test_subscriptions_and_deliveries_are_never_removed(told: Scene, table: str) -> None:
    """They move, but they do not go."""
    for statement in ("delete from {}", "truncate {}"):
        with pytest.raises(RESTRICT, match="immutable"):
            _run(told, sql.SQL(statement).format(sql.Identifier("orbit", table)))


@pytest.mark.req("orbit:T-N20", "orbit:SRC-12", "orbit:SRC-13", "orbit:SRC-18")
@pytest.mark.parametrize(
    "changed",
    [
        {"revision": ""},
        {"current_attempt_id": ""},
        {"result": ""},
        {"result": 'null,"input":"secret"'},
        {"result": 'null,"result":1'},
        {"effect_uncertain": 'false,"effect_uncertain":false'},
        {"schema_version": "2"},
        {"state": '"failed"'},
        {"task_id": '"task_other"'},
        {"queue_id": '"q_other"'},
        {"revision": "0"},
        {"revision": '"7"'},
        {"effect_uncertain": "null"},
        {"current_attempt_id": "1"},
        {"result": "{"},
        {"result": "nul"},
        {"result": "NaN"},
        {"result": "1 2"},
    ],
    ids=str,
)
def test_a_snapshot_that_is_not_exactly_one_is_refused(told: Scene, changed: dict[str, str]) -> None:
    """A missing, extra or doubled member, a wrong state or id, a result that is no JSON."""
    with pytest.raises((CHECK, psycopg.errors.InvalidTextRepresentation)):
        _write(told, snapshot=changed)


@pytest.mark.req("orbit:SRC-12", "orbit:SRC-15", "orbit:SRC-18")
@pytest.mark.parametrize(
    "result",
    ["null", "1", "1.00", "123456789012345678901234567890", '"\\u0000"', '{"a":[1,{"b":"}"}]}', " [1] ", '"雪"'],
)
def test_a_snapshot_takes_every_json_text_as_its_result(told: Scene, result: str) -> None:
    """Byte for byte, characters that jsonb refuses included."""
    event_id, task_id = _ids()
    text = _snapshot(task_id, told.queue_id, result=result, current_attempt_id='"att_1"')
    with _rolled_back(told):
        told.run(EVENT, event_id, told.namespace_id, told.queue_id, task_id, "task.succeeded")
        told.run(JOURNAL, event_id, told.namespace_id, told.queue_id, task_id, "task.succeeded", 3, text)
        assert told.value("select snapshot_json from orbit.result_events where event_id = %s", event_id) == text


@pytest.mark.req("orbit:T-N21", "orbit:SUB-19", "orbit:SUB-20", "orbit:SUB-22")
@pytest.mark.parametrize(
    "change",
    [
        "subscription_id = 'sub_x'",
        "namespace_id = 'ns_x'",
        "name = 'another'",
        "legacy = true, status = 'DISABLED', revision = revision + 1",
        "owner_credential_id = 'cred_x'",
        "queue_id = 'q_x'",
        "types = '{task.failed}'",
        "from_sequence = from_sequence + 1",
        "max_pending = max_pending + 1",
        "max_attempts = max_attempts + 1",
        "cursor_sequence = cursor_sequence - 1",
        "revision = revision + 1",
        "revision = revision - 1",
        "status = 'PAUSED'",
        "status = 'PAUSED', revision = revision + 2",
        "pending_count = -1",
        "pending_count = max_pending + 1",
        "status = 'STOPPED', revision = revision + 1",
    ],
)
def test_a_subscription_suffers_no_other_change_than_its_own(told: Scene, change: LiteralString) -> None:
    """Frozen fields stay, the cursor never goes back, the revision counts changes of the status and nothing else."""
    with pytest.raises((RESTRICT, CHECK)):
        _run(told, _set("event_subscriptions", change))


@pytest.mark.req("orbit:T-N21", "orbit:SUB-20")
@pytest.mark.parametrize(
    "change",
    ["cursor_sequence = cursor_sequence + 1", "pending_count = 0", "status = 'PAUSED', revision = revision + 1"],
)
def test_a_subscription_may_move(told: Scene, change: LiteralString) -> None:
    """What claims, acknowledgements and a pause do passes the guard."""
    _run(told, _set("event_subscriptions", change))


@pytest.mark.req("orbit:T-N21", "orbit:LSE-01", "orbit:LSE-24", "orbit:RTY-04")
@pytest.mark.parametrize(
    "change",
    [
        "delivery_id = 'dlv_x', state = 'PENDING'",
        "namespace_id = 'ns_x', state = 'PENDING'",
        "subscription_id = 'sub_x', state = 'PENDING'",
        "event_id = 'evt_x', state = 'PENDING'",
        "event_sequence = 99, state = 'PENDING'",
        "created_at = now(), state = 'PENDING'",
        "legacy = true, state = 'PENDING'",
        "state = 'LEASED'",
        "state = 'EXPIRED'",
        "state = 'PENDING', revision = revision",
        "state = 'PENDING', revision = revision + 2",
        "state = 'PENDING', attempts = attempts + 1",
        "state = 'PENDING', attempts = attempts - 1",
        "state = 'PENDING', lease_epoch = lease_epoch + 1",
        "state = 'PENDING', lease_epoch = lease_epoch - 1",
        "state = 'PENDING', lease_secret_sha256 = sha256('other')",
        "state = 'PENDING', lease_connection_id = 'conn_x'",
        "state = 'PENDING', lease_expires_at = now()",
        "state = 'PENDING', attempt_budget = attempt_budget + 1",
        "state = 'PENDING', attempt_budget = attempt_budget - 1",
        "state = 'ACKED'",
        "state = 'LOST'",
    ],
)
def test_a_leased_delivery_suffers_no_other_change_than_its_own(told: Scene, change: LiteralString) -> None:
    """Each arrow of the state machine carries exactly what belongs to it, one revision at a time."""
    text = change if "revision" in change else change + ", revision = revision + 1"
    with pytest.raises((RESTRICT, CHECK)):
        _run(told, _set("event_deliveries", text, "state = 'LEASED'"))


@pytest.mark.req("orbit:T-N21", "orbit:LSE-01")
@pytest.mark.parametrize("state", ["PENDING", "LEASED", "EXPIRED", "ACKED"])
def test_an_acknowledged_delivery_never_moves_again(told: Scene, state: str) -> None:
    """ACKED is the end, whatever somebody tries."""
    with pytest.raises((RESTRICT, CHECK)), _rolled_back(told):
        told.run(
            "update orbit.event_deliveries set state = %s, revision = revision + 1,"
            " acked_at = case when %s = 'ACKED' then now() end where state = 'ACKED'",
            state,
            state,
        )


@pytest.mark.req("orbit:T-N21", "orbit:LSE-24")
@pytest.mark.parametrize(
    "change",
    [
        "attempts = attempts + 1, lease_epoch = lease_epoch + 1",
        "lease_epoch = lease_epoch + 1, lease_secret_sha256 = sha256('new')",
        "attempts = attempts + 1, lease_secret_sha256 = sha256('new')",
        "attempts = attempts + 2, lease_epoch = lease_epoch + 1, lease_secret_sha256 = sha256('new')",
    ],
)
def test_a_claim_takes_an_attempt_an_epoch_and_a_new_secret_together(told: Scene, change: LiteralString) -> None:
    """One of the three missing, or two attempts at once, is no claim."""
    back = _set("event_deliveries", "state = 'PENDING', revision = revision + 1", "state = 'LEASED'")
    claim = _set("event_deliveries", "state = 'LEASED', revision = revision + 1, " + change, "state = 'PENDING'")
    with pytest.raises(RESTRICT):
        _run(told, back, claim)


@pytest.mark.req("orbit:T-N21", "orbit:RTY-04")
@pytest.mark.parametrize(("more", "allowed"), [(0, False), (1, True), (100, True), (101, False)])
def test_a_retry_adds_one_to_a_hundred_attempts(orbit_scene: Scene, more: int, allowed: bool) -> None:
    """From EXPIRED back to PENDING the budget grows by what was asked for, within these limits."""
    subscription_id = orbit_scene.subscribe(max_attempts=1)
    orbit_scene.result()
    (lease,) = orbit_scene.lease(subscription_id).leases
    orbit_scene.age_lease(lease.delivery_id)
    assert orbit_scene.lease(subscription_id).leases == []

    def retry() -> None:
        with _rolled_back(orbit_scene):
            orbit_scene.run(
                "update orbit.event_deliveries set state = 'PENDING', revision = revision + 1,"
                " attempt_budget = attempt_budget + %s where state = 'EXPIRED'",
                more,
            )

    if allowed:
        retry()
    else:
        with pytest.raises(RESTRICT):
            retry()
