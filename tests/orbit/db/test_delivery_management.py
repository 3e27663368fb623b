"""Pause, resume and manual retry, and what they answer when they are refused or repeated (sections 10 and 11)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from tests.kit.orbit.consuming import change, delivery, exhausted, retry, subscription
from tests.kit.orbit.invariants import assert_invariants
from tests.kit.orbit.scene import CONNECTION, Credential, Lease, Scene


def refused(call: Callable[[], object]) -> tuple[str | None, dict[str, Any]]:
    """SQLSTATE and extension members of a refused call."""
    with pytest.raises(psycopg.Error) as caught:
        call()
    detail = caught.value.diag.message_detail
    return caught.value.sqlstate, json.loads(detail) if detail and detail.startswith("{") else {}


@pytest.mark.req(
    "orbit:PAU-01", "orbit:PAU-02", "orbit:PAU-04", "orbit:PAU-05", "orbit:PAU-06", "orbit:PAU-10", "orbit:T-E06"
)
def test_a_pause_stops_claims_and_leaves_everything_else_alone(orbit_scene: Scene) -> None:
    """No lease is withdrawn or recycled, nothing is materialised; the backlog goes on after the resume with its ids."""
    orbit_scene.results(3)
    one = orbit_scene.subscribe(max_pending=2)
    first, second = orbit_scene.lease(one).leases
    before = subscription(orbit_scene, one)
    status, text, replayed, wake = change(orbit_scene, "pause", one, 1)
    body = json.loads(text)
    assert (status, body["status"], body["revision"], replayed, wake) == (200, "PAUSED", 2, False, one)
    orbit_scene.age_lease(first.delivery_id)
    orbit_scene.acknowledge(one, second)
    orbit_scene.result()
    rows = [delivery(orbit_scene, lease.delivery_id) for lease in (first, second)]
    claimed = orbit_scene.lease(one)
    assert (claimed.reason, claimed.leases, claimed.pending_count) == ("PAUSED", [], 1)
    assert [delivery(orbit_scene, lease.delivery_id) for lease in (first, second)] == rows
    after = subscription(orbit_scene, one)
    same = ("cursor_sequence", "from_sequence", "max_pending", "max_attempts", "types")
    assert [after[name] for name in same] == [before[name] for name in same]
    _, text, _, wake = change(orbit_scene, "resume", one, 2)
    assert (json.loads(text)["status"], json.loads(text)["revision"], wake) == ("ACTIVE", 3, one)
    assert [lease.event_sequence for lease in orbit_scene.lease(one).leases] == [3]
    orbit_scene.age_backoff(first.delivery_id)
    (again,) = orbit_scene.lease(one).leases
    assert (again.delivery_id, again.event_id) == (first.delivery_id, first.event_id)
    assert_invariants(orbit_scene.connection)


@pytest.mark.req("orbit:PAU-07", "orbit:PAU-08", "orbit:SUB-19", "orbit:T-N16")
def test_pause_and_resume_ask_for_the_state_and_the_revision(orbit_scene: Scene) -> None:
    """State before revision; the current revision is told; a reason is optional and limited."""
    one = orbit_scene.subscribe()
    assert refused(lambda: change(orbit_scene, "resume", one, 1))[0] == "OB020"
    assert refused(lambda: change(orbit_scene, "pause", one, 7)) == ("OB014", {"current_revision": 1})
    assert refused(lambda: change(orbit_scene, "pause", one, None))[0] == "OB026"
    assert refused(lambda: change(orbit_scene, "pause", one, 1, reason="x" * 1001))[0] == "OB026"
    change(orbit_scene, "pause", one, 1, reason="x" * 1000)
    assert refused(lambda: change(orbit_scene, "pause", one, 2))[0] == "OB020"
    change(orbit_scene, "resume", one, 2)
    details = [
        (action, json.loads(detail))
        for action, detail in orbit_scene.rows(
            "select action, detail_json from orbit.audit_log where resource_id = %s and action like '%%ed'"
            " order by created_at offset 1",
            one,
        )
    ]
    assert details == [
        ("event.subscription.paused", {"revision": 2, "reason": "x" * 1000}),
        ("event.subscription.resumed", {"revision": 3, "reason": None}),
    ]


@pytest.mark.req(
    "orbit:IDM-01", "orbit:IDM-06", "orbit:IDM-09", "orbit:IDM-10", "orbit:T-N10", "orbit:T-N12", "orbit:RTY-06"
)
def test_pause_resume_and_retry_are_repeated_by_their_key(orbit_scene: Scene) -> None:
    """The stored answer comes back after the state moved on; the key means nothing for another target or verb."""
    orbit_scene.result()
    one = orbit_scene.subscribe(max_attempts=1)
    two = orbit_scene.subscribe("two")
    paused = change(orbit_scene, "pause", one, 1, key="k")
    change(orbit_scene, "resume", one, 2, key="k")
    status, text, replayed, wake = change(orbit_scene, "pause", one, 1, key="k")
    assert (status, text, replayed, wake) == (200, paused[1], True, None)
    assert refused(lambda: change(orbit_scene, "pause", one, 1, key="k", sha="e" * 64))[0] == "OB015"
    assert change(orbit_scene, "pause", two, 1, key="k")[2] is False
    lease = exhausted(orbit_scene, one)
    first = retry(orbit_scene, one, lease.delivery_id, revision=3, key="k")
    assert retry(orbit_scene, one, lease.delivery_id, revision=3, key="k") == first
    assert delivery(orbit_scene, lease.delivery_id)["attempt_budget"] == 6
    orbit_scene.lease(one)
    assert retry(orbit_scene, one, lease.delivery_id, revision=3, key="k") == first
    assert orbit_scene.value("select count(*) from orbit.audit_log where action = 'event.delivery.retried'") == 1


@pytest.mark.req(
    "orbit:RTY-01", "orbit:RTY-04", "orbit:RTY-05", "orbit:RTY-07", "orbit:RTY-12", "orbit:AUD-06", "orbit:T-E07"
)
def test_a_retry_gives_an_exhausted_delivery_more_attempts_and_nothing_new(orbit_scene: Scene) -> None:
    """During a pause too: `PENDING` at once, budget grown; attempts, epoch, proof and ids stay; the reason is kept."""
    orbit_scene.result()
    one = orbit_scene.subscribe(max_attempts=1)
    lease = exhausted(orbit_scene, one)
    before = delivery(orbit_scene, lease.delivery_id)
    change(orbit_scene, "pause", one, 1)
    body = retry(orbit_scene, one, lease.delivery_id, additional=2, reason="  consumer fixed ")
    after = delivery(orbit_scene, lease.delivery_id)
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {"state", "attempt_budget", "available_at", "revision", "updated_at"}
    assert (after["state"], after["attempt_budget"], after["revision"]) == ("PENDING", 3, before["revision"] + 1)
    assert body["attempt_budget"] == 3
    detail = json.loads(
        orbit_scene.value("select detail_json from orbit.audit_log where action = 'event.delivery.retried'")
    )
    assert detail == {
        "subscription_id": one,
        "event_id": lease.event_id,
        "additional_attempts": 2,
        "attempt_budget": 3,
        "attempts": 1,
        "lease_epoch": 1,
        "reason": "  consumer fixed ",
    }
    assert orbit_scene.lease(one).reason == "PAUSED"
    change(orbit_scene, "resume", one, 2)
    (again,) = orbit_scene.lease(one).leases
    assert (again.delivery_id, again.event_id, again.lease_epoch, again.attempts) == (
        lease.delivery_id,
        lease.event_id,
        2,
        2,
    )
    assert_invariants(orbit_scene.connection)


@pytest.mark.req("orbit:RTY-01", "orbit:RTY-11", "orbit:T-N13")
def test_only_an_exhausted_delivery_is_retried(orbit_scene: Scene) -> None:
    """`PENDING`, `LEASED`, `LEASED` past its deadline and `ACKED` are refused, whatever revision is named."""
    orbit_scene.results(2)
    one = orbit_scene.subscribe()
    (lease,) = orbit_scene.lease(one, requested=1).leases
    pending_id = orbit_scene.value("select delivery_id from orbit.event_deliveries where state = 'PENDING'")
    assert refused(lambda: retry(orbit_scene, one, pending_id, revision=99))[0] == "OB024"
    assert refused(lambda: retry(orbit_scene, one, lease.delivery_id))[0] == "OB024"
    orbit_scene.age_lease(lease.delivery_id)
    assert refused(lambda: retry(orbit_scene, one, lease.delivery_id))[0] == "OB024"
    orbit_scene.acknowledge(one, lease)
    assert refused(lambda: retry(orbit_scene, one, lease.delivery_id))[0] == "OB024"
    other = orbit_scene.subscribe("other")
    assert refused(lambda: retry(orbit_scene, other, lease.delivery_id))[0] == "OB023"


@pytest.mark.req("orbit:RTY-02", "orbit:RTY-03", "orbit:RTY-08", "orbit:RTY-10", "orbit:T-N16")
def test_a_retry_needs_revision_reason_and_a_number_and_a_budget_below_a_million(orbit_scene: Scene) -> None:
    """A refused retry changes nothing; exactly 1,000,000 attempts in all are accepted."""
    orbit_scene.result()
    one = orbit_scene.subscribe(max_attempts=1)
    lease = exhausted(orbit_scene, one)
    before = delivery(orbit_scene, lease.delivery_id)
    wrong: list[dict[str, Any]] = [
        {"revision": None},
        {"reason": None},
        {"reason": ""},
        {"reason": " \t\n"},
        {"reason": "x" * 1001},
        {"additional": None},
        {"additional": 0},
        {"additional": 101},
    ]
    for changed in wrong:
        state = refused(lambda changed=changed: retry(orbit_scene, one, lease.delivery_id, **changed))[0]
        assert state == "OB026", changed
    assert refused(lambda: retry(orbit_scene, one, lease.delivery_id, revision=9)) == ("OB014", {"current_revision": 3})
    assert delivery(orbit_scene, lease.delivery_id) == before
    with orbit_scene.connection.transaction():
        orbit_scene.run("set local session_replication_role = replica")
        orbit_scene.run("update orbit.event_deliveries set attempts = 999950, attempt_budget = 999950")
    assert refused(lambda: retry(orbit_scene, one, lease.delivery_id, additional=51))[0] == "OB025"
    assert retry(orbit_scene, one, lease.delivery_id, additional=50)["attempt_budget"] == 1_000_000


@pytest.mark.req("orbit:AUT-03", "orbit:T-N03", "orbit:AUT-11")
def test_another_credential_of_the_namespace_reaches_nothing_of_a_subscription(orbit_scene: Scene) -> None:
    """Not even with a stolen valid proof; the answer is that of a subscription that does not exist."""
    orbit_scene.result()
    one = orbit_scene.subscribe(max_attempts=1)
    lease = exhausted(orbit_scene, one)
    thief = orbit_scene.issue("thief")
    before = (subscription(orbit_scene, one), delivery(orbit_scene, lease.delivery_id))
    for call in everything(orbit_scene, one, lease, thief):
        assert refused(call)[0] == "OB016"
    for call in everything(orbit_scene, "sub_" + "0" * 32, lease, orbit_scene.owner):
        assert refused(call)[0] == "OB016"
    assert (subscription(orbit_scene, one), delivery(orbit_scene, lease.delivery_id)) == before


def everything(scene: Scene, one: str, lease: Lease, who: Credential) -> list[Callable[[], object]]:
    """Every operation on one subscription, as one credential would ask for it."""
    return [
        lambda: scene.value("select orbit.subscription_get_v1(%s, %s)", who.sha256, one),
        lambda: scene.rows("select * from orbit.subscription_hello_v1(%s, %s)", who.sha256, one),
        lambda: scene.rows("select * from orbit.delivery_list_v1(%s, %s, null, 9, null)", who.sha256, one),
        lambda: scene.value("select orbit.delivery_get_v1(%s, %s, %s)", who.sha256, one, lease.delivery_id),
        lambda: scene.lease(one, credential=who),
        lambda: scene.acknowledge(one, lease, credential=who),
        lambda: change(scene, "pause", one, 1, credential=who),
        lambda: change(scene, "resume", one, 1, credential=who),
        lambda: scene.row(
            "select * from orbit.delivery_retry_v1(%s, %s, %s, 3, 'r', 1, %s, %s)",
            who.sha256,
            one,
            lease.delivery_id,
            scene.key(),
            "f" * 64,
        ),
    ]


NEEDED = [
    "events:read",
    "events:consume",
    "events:read",
    "events:read",
    "events:consume",
    "events:consume",
    "events:manage",
    "events:manage",
    "events:manage",
]


@pytest.mark.req(
    "orbit:AUT-01", "orbit:AUT-04", "orbit:AUT-06", "orbit:AUT-10", "orbit:T-N01", "orbit:AUT-02", "orbit:T-N02"
)
def test_each_operation_needs_its_own_action_and_its_queue_in_scope(orbit_scene: Scene) -> None:
    """The owner loses one right after the other: action, queue scope, application, namespace, token."""
    orbit_scene.result()
    one = orbit_scene.subscribe(max_attempts=1)
    lease = exhausted(orbit_scene, one)
    calls = everything(orbit_scene, one, lease, orbit_scene.owner)
    rights = "update orbit.credentials set actions = %s where credential_id = %s"
    all_actions = orbit_scene.value(
        "select actions from orbit.credentials where credential_id = %s", orbit_scene.owner.credential_id
    )
    for needed, call in zip(NEEDED, calls, strict=True):
        rest = [action for action in all_actions if action != needed]
        orbit_scene.run(rights, rest, orbit_scene.owner.credential_id)
        assert refused(call)[0] == "OB004"
    orbit_scene.run(rights, all_actions, orbit_scene.owner.credential_id)
    orbit_scene.run("update orbit.credentials set all_queues = false")
    assert [refused(call)[0] for call in calls] == ["OB005"] * len(calls)
    orbit_scene.run("update orbit.applications set enabled = false")
    assert [refused(call)[0] for call in calls] == ["OB003"] * len(calls)
    orbit_scene.run("update orbit.namespaces set enabled = false")
    assert [refused(call)[0] for call in calls] == ["OB002"] * len(calls)
    orbit_scene.run("update orbit.credentials set revoked_at = clock_timestamp()")
    assert [refused(call)[0] for call in calls] == ["OB001"] * len(calls)


@pytest.mark.req("orbit:API-08", "orbit:API-10", "orbit:T-N23", "F49", "orbit:LSE-15")
def test_deliveries_are_listed_by_sequence_and_state_while_rows_are_added(orbit_scene: Scene) -> None:
    """Each old row exactly once, page by page; every state has its list; bodies hold no secret and no result."""
    orbit_scene.results(9)
    one = orbit_scene.subscribe(max_attempts=1, max_pending=9)
    leases = orbit_scene.lease(one, requested=6).leases
    orbit_scene.acknowledge(one, *leases[:2])
    for lease in leases[2:4]:
        orbit_scene.age_lease(lease.delivery_id)
    assert orbit_scene.lease(one, requested=1, capacity=2).reason == "CAPACITY_FULL"

    def page(states: list[str] | None, limit: int, after: int | None) -> list[Any]:
        return orbit_scene.rows(
            "select event_sequence, body from orbit.delivery_list_v1(%s, %s, %s::text[], %s::int, %s::bigint)",
            orbit_scene.owner.sha256,
            one,
            states,
            limit,
            after,
        )

    by_state = {"ACKED": [1, 2], "EXPIRED": [3, 4], "LEASED": [5, 6], "PENDING": [7, 8, 9]}
    for state, sequences in by_state.items():
        rows = page([state], 50, None)
        assert [row[0] for row in rows] == sequences
        assert {json.loads(row[1])["state"] for row in rows} == {state}
    assert [row[0] for row in page(["EXPIRED", "PENDING"], 3, None)] == [3, 4, 7]
    assert [row[0] for row in page(["LEASED", "PENDING", "EXPIRED"], 4, 4)] == [5, 6, 7, 8]
    assert [row[0] for row in page(["ACKED", "LEASED"], 3, 1)] == [2, 5, 6]
    seen: list[int] = []
    after = None
    while rows := page(None, 2, after):
        seen += [row[0] for row in rows]
        after = rows[-1][0]
        if len(seen) < 8:
            orbit_scene.result()
            orbit_scene.acknowledge(one, *leases[len(seen) :][:1])
            orbit_scene.lease(one, requested=0)
    assert seen[:9] == list(range(1, 10))
    assert len(set(seen)) == len(seen)
    body = json.loads(page(["ACKED"], 1, None)[0][1])
    assert list(body) == [
        "delivery_id",
        "subscription_id",
        "event_id",
        "event_type",
        "sequence",
        "task_id",
        "state",
        "attempts",
        "attempt_budget",
        "lease_epoch",
        "available_at",
        "lease_expires_at",
        "connection_id",
        "acked_at",
        "revision",
        "created_at",
        "updated_at",
    ]
    assert (body["event_type"], body["sequence"], body["connection_id"]) == ("task.succeeded", 1, CONNECTION)


@pytest.mark.req("orbit:MIG-12", "orbit:MIG-22", "orbit:SUB-21")
def test_a_legacy_subscription_is_nobodys_and_keeps_its_name(orbit_scene: Scene) -> None:
    """No credential sees it; the name stays taken."""
    orbit_scene.run(
        "insert into orbit.event_subscriptions (subscription_id, namespace_id, name, legacy, status)"
        " select 'sub_old', namespace_id, 'old', true, 'DISABLED' from orbit.namespaces"
    )
    assert refused(lambda: orbit_scene.lease("sub_old"))[0] == "OB016"
    assert refused(lambda: change(orbit_scene, "pause", "sub_old", 1))[0] == "OB016"
    assert refused(lambda: orbit_scene.subscribe("old"))[0] == "OB018"
    orbit_scene.run("alter table orbit.event_subscriptions disable trigger event_subscriptions_guard")
    orbit_scene.run("update orbit.event_subscriptions set owner_credential_id = %s", orbit_scene.owner.credential_id)
    assert refused(lambda: orbit_scene.lease("sub_old"))[0] in {"OB005", "OB017"}
