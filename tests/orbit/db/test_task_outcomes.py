"""What becomes of a task: every row of the outcome table, and every path to the four result types (section 14)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from tests.kit.database import TestDatabase
from tests.kit.orbit.platform import Platform, assert_tasks_whole, found

SNAPSHOT_MEMBERS = [
    "schema_version",
    "task_id",
    "queue_id",
    "state",
    "revision",
    "effect_uncertain",
    "current_attempt_id",
    "result",
]


@pytest.fixture
def platform(orbit_database: TestDatabase) -> Iterator[Platform]:
    """Give a namespace with one queue; afterwards the journal must agree with everything else."""
    connection = orbit_database.connect(autocommit=True)
    yield Platform(connection, found(connection))
    assert_tasks_whole(connection)


@pytest.mark.req("orbit:TSK-05", "orbit:TSK-06", "orbit:TSK-18", "orbit:T-E02", "orbit:SRC-01", "orbit:SRC-17")
@pytest.mark.parametrize(
    ("outcome", "effect", "retryable", "policy", "left", "state", "uncertain"),
    [
        ("succeeded", "none", False, "unsafe", True, "succeeded", False),
        ("succeeded", "unknown", True, "safe", False, "succeeded", False),
        ("failed", "none", True, "safe", True, "queued", False),
        ("failed", "none", True, "unsafe", True, "queued", False),
        ("failed", "none", True, "safe", False, "failed", False),
        ("failed", "none", True, "unsafe", False, "failed", False),
        ("failed", "none", False, "safe", True, "failed", False),
        ("failed", "none", False, "unsafe", False, "failed", False),
        ("failed", "unknown", False, "safe", True, "queued", False),
        ("failed", "unknown", True, "safe", True, "queued", False),
        ("failed", "unknown", True, "safe", False, "failed", True),
        ("failed", "unknown", True, "unsafe", True, "needs_review", True),
        ("failed", "unknown", False, "unsafe", False, "needs_review", True),
    ],
)
def test_a_confirmation_follows_the_outcome_table(
    platform: Platform, outcome: str, effect: str, retryable: bool, policy: str, left: bool, state: str, uncertain: bool
) -> None:
    """State, event, flags, receipt, snapshot and audit are those of the row of the table."""
    held = platform.start(policy=policy, max_attempts=2 if left else 1)
    confirmed = platform.confirm(held, outcome, effect=effect, retryable=retryable, result='{"n":1.0}')
    task = platform.task(held.task_id)
    event_type = "task.requeued" if state == "queued" else f"task.{state}"
    assert (task["state"], task["effect_uncertain"], task["revision"]) == (state, uncertain, 3)
    assert task["current_attempt_id"] == (None if state == "queued" else held.attempt_id)
    sequence = None if state == "queued" else 1
    assert confirmed.wake_queue_id == (None if state == "queued" else platform.queue_id)
    receipt = confirmed.body
    assert list(receipt) == [
        "receipt_id", "task_id", "attempt_id", "task_state", "task_revision", "event_id", "event_type", "sequence",
        "confirmed_at",
    ]  # fmt: skip
    assert (receipt["task_state"], receipt["event_type"], receipt["sequence"]) == (state, event_type, sequence)
    journal = platform.journal()
    if state == "queued":
        assert journal == []
        assert task["result"] is None
    else:
        ((number, event_id, _, journal_type, text),) = journal
        assert (number, event_id, journal_type) == (1, receipt["event_id"], event_type)
        assert text == (
            f'{{"schema_version":1,"task_id":"{held.task_id}","queue_id":"{platform.queue_id}","state":"{state}",'
            f'"revision":3,"effect_uncertain":{json.dumps(uncertain)},"current_attempt_id":"{held.attempt_id}",'
            '"result":{"n":1.0}}'
        )
    (detail,) = platform.audits("task.result.confirmed")
    assert detail == {
        "task_id": held.task_id,
        "attempt_id": held.attempt_id,
        "event_id": receipt["event_id"],
        "event_type": event_type,
        "task_revision": 3,
        "sequence": sequence,
    }
    assert platform.value("select state from orbit.task_attempts") == outcome.upper()


@pytest.mark.req("orbit:TSK-12", "orbit:T-E02", "orbit:SRC-09")
@pytest.mark.parametrize(
    ("policy", "attempts", "state", "uncertain"),
    [("safe", 2, "queued", False), ("safe", 1, "failed", True), ("unsafe", 2, "needs_review", True)],
)
def test_a_lost_attempt_is_recovered_by_its_policy(
    platform: Platform, policy: str, attempts: int, state: str, uncertain: bool
) -> None:
    """A lease that ran out counts as a failure with unknown effect; an attempt that is not lost is left alone."""
    held = platform.start(policy=policy, max_attempts=attempts)
    assert platform.recover(held) == (False, None, None, None)
    platform.lose(held)
    assert platform.rows("select * from orbit.attempt_expired_v1(null, null, 10)") == [(held.attempt_id,)]
    recovered, event_type, sequence, wake = platform.recover(held)
    assert (recovered, event_type) == (True, "task.requeued" if state == "queued" else f"task.{state}")
    assert (sequence, wake) == ((None, None) if state == "queued" else (1, platform.queue_id))
    task = platform.task(held.task_id)
    assert (task["state"], task["effect_uncertain"], task["result"]) == (state, uncertain, None)
    assert platform.value("select state from orbit.task_attempts") == "EXPIRED"
    assert platform.value("select credential_id from orbit.audit_log where action = 'task.attempt.recovered'") is None
    assert platform.recover(held) == (False, None, None, None)
    with pytest.raises(psycopg.Error) as refused:
        platform.confirm(held)
    assert refused.value.sqlstate == "OB010"


@pytest.mark.req("orbit:TSK-13", "orbit:T-E02", "orbit:SRC-13")
@pytest.mark.parametrize(
    ("running", "policy", "state"),
    [(False, "unsafe", "cancelled"), (True, "safe", "cancelled"), (True, "unsafe", "needs_review")],
)
def test_a_cancel_ends_the_task_or_asks_for_review(platform: Platform, running: bool, policy: str, state: str) -> None:
    """A queued task is cancelled, a running one only where that does no harm; the attempt is abandoned."""
    if running:
        held = platform.start(policy=policy)
        task_id, attempt_id, revision = held.task_id, held.attempt_id, 2
    else:
        task_id, attempt_id, revision = platform.submitted(policy=policy), None, 1
    status, text, replayed, wake = platform.cancel(task_id, revision)
    body = json.loads(text)
    assert (status, replayed, wake) == (200, False, platform.queue_id)
    assert (body["state"], body["effect_uncertain"], body["current_attempt_id"], body["revision"]) == (
        state,
        state == "needs_review",
        attempt_id,
        revision + 1,
    )
    ((_, _, _, event_type, snapshot),) = platform.journal()
    assert event_type == f"task.{state}"
    assert list(json.loads(snapshot)) == SNAPSHOT_MEMBERS
    assert json.loads(snapshot)["current_attempt_id"] == attempt_id
    assert platform.rows("select state from orbit.task_attempts") == ([("ABANDONED",)] if running else [])
    assert platform.audits("task.cancelled")[0]["event_type"] == f"task.{state}"


@pytest.mark.req("orbit:TSK-14", "orbit:T-E04", "orbit:SRC-03", "orbit:SRC-04", "orbit:SRC-16", "orbit:TSK-18")
@pytest.mark.parametrize("outcome", ["succeeded", "failed", "cancelled"])
@pytest.mark.parametrize(
    ("given", "result", "shown"), [(False, None, "[1.50]"), (True, None, "null"), (True, '{"x":2.0}', '{"x":2.0}')]
)
def test_a_resolution_is_a_second_result_beside_the_first(
    platform: Platform, outcome: str, given: bool, result: str | None, shown: str
) -> None:
    """A new event, sequence and snapshot; the earlier snapshot stays; a result replaces, JSON null too, none keeps."""
    held = platform.start()
    platform.confirm(held, "failed", effect="unknown", result="[1.50]")
    before = platform.journal()
    status, text, _, wake = platform.resolve(held.task_id, 3, outcome, given=given, result=result)
    assert (status, wake) == (200, platform.queue_id)
    assert text.endswith(f',"result":{shown}}}')
    after = platform.journal()
    assert after[:1] == before
    assert [(row[0], row[3]) for row in after] == [(1, "task.needs_review"), (2, f"task.{outcome}")]
    assert after[1][4].endswith(f'"effect_uncertain":false,"current_attempt_id":"{held.attempt_id}","result":{shown}}}')
    assert platform.audits("task.resolved")[0]["sequence"] == 2
    with pytest.raises(psycopg.Error) as refused:
        platform.resolve(held.task_id, 4)
    assert refused.value.sqlstate == "OB012"


@pytest.mark.req("orbit:TSK-15", "orbit:TSK-21", "orbit:T-E03", "orbit:SRC-02")
def test_a_safe_retry_is_no_result_and_waits_longer_each_time(platform: Platform) -> None:
    """A requeue has a state event and a receipt without sequence, no journal row, and waits 1, 2, 4 … 30 seconds."""
    platform.submitted(policy="safe", max_attempts=8)
    waits: list[float] = []
    for _ in range(7):
        (held,) = platform.claim()
        assert platform.confirm(held, "failed", retryable=True).sequence is None
        waits.append(platform.value("select extract(epoch from available_at - updated_at)::float from orbit.tasks"))
        assert platform.claim() == []
        platform.make_ready()
    assert waits == [1, 2, 4, 8, 16, 30, 30]
    assert platform.journal() == []
    types = [kind for (kind,) in platform.rows("select type from orbit.events order by task_revision")]
    assert types == ["task.created", *["task.started", "task.requeued"] * 7]
    (held,) = platform.claim()
    assert platform.confirm(held, "failed", retryable=True).body["event_type"] == "task.failed"


@pytest.mark.req("orbit:TSK-10", "orbit:TSK-20")
def test_a_lease_that_ran_out_still_counts_until_it_is_recovered(platform: Platform) -> None:
    """Confirmation and heartbeat are accepted after the deadline; a heartbeat moves it by the queue's lease."""
    held = platform.start()
    platform.lose(held)
    platform.heartbeat(held)
    left = platform.value(
        "select extract(epoch from lease_expires_at - clock_timestamp())::float from orbit.task_attempts"
    )
    assert 55 < left <= 60
    assert platform.recover(held)[0] is False
    assert platform.rows("select type from orbit.events order by task_revision") == [
        ("task.created",),
        ("task.started",),
    ]
    assert platform.audits("task.heartbeat") == []
    platform.lose(held)
    assert platform.confirm(held).sequence == 1


@pytest.mark.req("orbit:TSK-10", "orbit:TSK-20")
def test_an_attempt_obeys_its_own_secret_only(platform: Platform) -> None:
    """A wrong secret, and an attempt that has ended, get ATTEMPT_LEASE_LOST, also from a repetition."""
    held = platform.start()
    wrong = type(held)(held.task_id, held.attempt_id, held.number, bytes(32))
    for call in (platform.confirm, platform.heartbeat):
        with pytest.raises(psycopg.Error) as refused:
            call(wrong)
        assert refused.value.sqlstate == "OB010"
    platform.confirm(held)
    for call, attempt in ((platform.confirm, wrong), (platform.heartbeat, held)):
        with pytest.raises(psycopg.Error) as refused:
            call(attempt)
        assert refused.value.sqlstate == "OB010"
    assert len(platform.journal()) == 1


@pytest.mark.req("orbit:TSK-08", "orbit:TSK-09")
def test_a_queue_runs_no_more_than_its_permits(platform: Platform) -> None:
    """Claims stop at max_running, oldest first, and go on when an attempt ends, whichever way it ends."""
    platform.connection.execute("update orbit.queues set max_running = 3")
    tasks = [platform.submitted(policy="safe") for _ in range(6)]
    first = platform.claim(16)
    assert [held.task_id for held in first] == tasks[:3]
    assert platform.claim(16) == []
    platform.confirm(first[0])
    platform.cancel(first[1].task_id, 2)
    platform.lose(first[2])
    platform.recover(first[2])
    assert [held.task_id for held in platform.claim(16)] == tasks[3:]
    details = platform.audits("task.claimed")
    assert [detail["task_id"] for detail in details] == tasks
    assert list(details[0]) == ["task_id", "attempt_id", "queue_id"]


@pytest.mark.req("orbit:TSK-07", "orbit:LCK-07")
def test_an_application_submits_no_more_than_its_limit(platform: Platform) -> None:
    """Queued and running tasks count; what has ended does not; without a limit nothing is counted."""
    place = found(platform.connection, max_open_tasks=2)
    limited = Platform(platform.connection, place)
    held = limited.start()
    limited.submitted()
    with pytest.raises(psycopg.Error) as refused:
        limited.submitted()
    assert refused.value.sqlstate == "OB013"
    limited.confirm(held)
    limited.submitted()
    for _ in range(5):
        platform.submitted()


@pytest.mark.req("orbit:TSK-17")
def test_a_disabled_queue_takes_nothing_and_lets_running_work_finish(platform: Platform) -> None:
    """Submission and claim are refused; an attempt that runs may be confirmed."""
    held = platform.start()
    platform.submitted()
    platform.connection.execute("update orbit.queues set enabled = false")
    for call in (platform.submitted, platform.claim):
        with pytest.raises(psycopg.Error) as refused:
            call()
        assert refused.value.sqlstate == "OB007"
    platform.heartbeat(held)
    assert platform.confirm(held).sequence == 1


@pytest.mark.req("orbit:TSK-16")
def test_a_credential_sees_its_own_tasks_and_a_worker_its_queues(platform: Platform) -> None:
    """Another application sees no task but may work on it; another queue, another namespace and no id see nothing."""
    namespace = platform.value("select name from orbit.namespaces")
    connection = platform.connection
    sibling = Platform(connection, found(connection, namespace=namespace, application="other"))
    outside = Platform(connection, found(connection, namespace=namespace, queues=("search",)))
    stranger = Platform(connection, found(connection))
    held = platform.start()
    calls: list[tuple[str, Callable[[Platform], object]]] = [
        ("OB008", lambda who: who.task(held.task_id)),
        ("OB008", lambda who: who.cancel(held.task_id, 2)),
        ("OB008", lambda who: who.resolve(held.task_id, 2)),
        ("OB009", lambda who: who.heartbeat(held)),
        ("OB009", lambda who: who.confirm(held)),
    ]
    for who in (sibling, outside, stranger):
        for code, call in calls[:3] if who is sibling else calls:
            with pytest.raises(psycopg.Error) as refused:
                call(who)
            assert refused.value.sqlstate == code
    with pytest.raises(psycopg.Error) as refused:
        platform.task("task_0")
    assert refused.value.sqlstate == "OB008"
    assert sibling.confirm(held).sequence == 1


@pytest.mark.req("orbit:TSK-16", "orbit:AUT-05")
@pytest.mark.parametrize("missing", ["tasks:create", "tasks:read", "tasks:cancel", "tasks:resolve", "tasks:work"])
def test_each_task_action_is_needed_by_its_own_operations(platform: Platform, missing: str) -> None:
    """A credential with every action but one is refused by that one's operations only, before anything is looked up."""
    namespace = platform.value("select name from orbit.namespaces")
    actions = {"tasks:create", "tasks:read", "tasks:cancel", "tasks:resolve", "tasks:work"} - {missing}
    weak = Platform(platform.connection, found(platform.connection, namespace=namespace, actions=sorted(actions)))
    held = platform.start()
    calls: list[tuple[str, Callable[[], object]]] = [
        ("tasks:create", weak.submit),
        ("tasks:read", lambda: weak.task(held.task_id)),
        ("tasks:cancel", lambda: weak.cancel("task_0", 1)),
        ("tasks:resolve", lambda: weak.resolve("task_0", 1)),
        ("tasks:work", lambda: weak.heartbeat(held)),
        (
            "tasks:work",
            lambda: weak.rows("select * from orbit.attempt_expired_v1(%s, 'billing', 1)", weak.place.token_sha256),
        ),
        ("tasks:work", weak.claim),
        ("tasks:work", lambda: weak.confirm(held)),
    ]
    for action, call in calls:
        try:
            call()
            code = None
        except psycopg.Error as error:
            code = error.sqlstate
        assert (code == "OB004") == (action == missing)


@pytest.mark.req("orbit:TSK-02", "orbit:IDM-09")
def test_a_change_needs_the_state_and_the_revision_it_was_made_for(platform: Platform) -> None:
    """A wrong revision names the current one; a final state refuses; a replay is answered before both."""
    task_id = platform.submitted()
    with pytest.raises(psycopg.Error) as refused:
        platform.cancel(task_id, 7)
    assert refused.value.sqlstate == "OB014"
    assert json.loads(refused.value.diag.message_detail or "") == {"current_revision": 1}
    first = platform.cancel(task_id, 1, key="once")
    assert platform.cancel(task_id, 1, key="once") == (200, first[1], True, None)
    with pytest.raises(psycopg.Error) as refused:
        platform.cancel(task_id, 2)
    assert refused.value.sqlstate == "OB012"
    with pytest.raises(psycopg.Error) as refused:
        platform.resolve(task_id, 2)
    assert refused.value.sqlstate == "OB012"
    assert len(platform.journal()) == 1
    assert len(platform.audits("task.cancelled")) == 1


@pytest.mark.req("orbit:TSK-11", "orbit:SRC-08", "orbit:TSK-19")
def test_a_repeated_confirmation_returns_the_first_receipt(platform: Platform) -> None:
    """Byte for byte the same receipt and nothing new; another content, in any of its four parts, is a conflict."""
    held = platform.start()
    first = platform.confirm(held, "failed", effect="none", retryable=False, result='{"a":1}')
    again = platform.confirm(held, "failed", effect=None, retryable=None, result='{"a":1}')
    assert (again.text, again.replayed, again.wake_queue_id) == (first.text, True, None)
    others: list[dict[str, Any]] = [
        {"outcome": "succeeded", "result": '{"a":1}'},
        {"outcome": "failed", "effect": "unknown", "result": '{"a":1}'},
        {"outcome": "failed", "retryable": True, "result": '{"a":1}'},
        {"outcome": "failed", "result": '{"a":1.0}'},
        {"outcome": "failed"},
    ]
    for other in others:
        with pytest.raises(psycopg.Error) as refused:
            platform.confirm(held, **other)
        assert refused.value.sqlstate == "OB011"
    assert len(platform.journal()) == 1
    assert len(platform.audits("task.result.confirmed")) == 1
