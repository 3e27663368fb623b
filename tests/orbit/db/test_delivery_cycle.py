"""A delivery from the journal to its ACK: materialise, lease, acknowledge, recycle (sections 8 and 9)."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from orbit.access.token import new_secret
from tests.kit.orbit.consuming import change, delivery, exhausted, retry, subscription
from tests.kit.orbit.invariants import assert_invariants
from tests.kit.orbit.scene import CONNECTION, Lease, Scene

OTHER_CONNECTION = "conn_" + "1" * 32


@pytest.mark.req(
    "orbit:LSE-02", "orbit:LSE-03", "orbit:LSE-06", "orbit:LSE-07", "orbit:LSE-32", "orbit:MAT-14", "orbit:MAT-18"
)
def test_a_result_is_leased_for_thirty_seconds_and_acknowledged_once(orbit_scene: Scene) -> None:
    """The claim brings the stored snapshot, epoch 1 and attempts 1; the ACK ends the delivery."""
    receipt = orbit_scene.result('{"n":12345678901234567890}')
    one = orbit_scene.subscribe()
    claimed = orbit_scene.lease(one)
    (lease,) = claimed.leases
    assert (claimed.reason, claimed.pending_count) == ("DELIVERED", 1)
    assert (lease.event_id, lease.event_sequence, lease.lease_epoch, lease.attempts, lease.attempt_budget) == (
        receipt["event_id"],
        receipt["sequence"],
        1,
        1,
        20,
    )
    assert lease.snapshot_json.endswith('"result":{"n":12345678901234567890}}')
    row = delivery(orbit_scene, lease.delivery_id)
    assert (row["state"], row["revision"], row["lease_connection_id"]) == ("LEASED", 2, CONNECTION)
    assert orbit_scene.value("select lease_expires_at - updated_at from orbit.event_deliveries") == timedelta(
        seconds=30
    )
    ((_, _, code, acked_at, duplicate),) = orbit_scene.acknowledge(one, lease)
    assert (code, duplicate) == (None, False)
    row = delivery(orbit_scene, lease.delivery_id)
    assert (row["state"], row["revision"], row["attempts"]) == ("ACKED", 3, 1)
    ((_, _, code, again_at, duplicate),) = orbit_scene.acknowledge(one, lease)
    assert (code, again_at, duplicate) == (None, acked_at, True)
    assert subscription(orbit_scene, one)["pending_count"] == 0
    assert_invariants(orbit_scene.connection)


@pytest.mark.req(
    "orbit:MAT-01", "orbit:MAT-02", "orbit:MAT-04", "orbit:MAT-07", "orbit:MAT-13", "orbit:MAT-17", "orbit:T-E05"
)
def test_the_scan_looks_at_a_hundred_rows_and_stops_before_what_does_not_fit(orbit_scene: Scene) -> None:
    """130 results of which every tenth is wanted: passed rows use no window, the cursor stops before the first held."""
    for number in range(1, 131):
        orbit_scene.result(outcome="failed" if number % 10 == 0 else "succeeded")
    wide = orbit_scene.subscribe("wide", types=["task.failed"], max_pending=100)
    claimed = orbit_scene.lease(wide, requested=5)
    assert [one.event_sequence for one in claimed.leases] == [10, 20, 30, 40, 50]
    assert subscription(orbit_scene, wide)["cursor_sequence"] == 100
    orbit_scene.lease(wide)
    assert subscription(orbit_scene, wide)["cursor_sequence"] == 130
    narrow = orbit_scene.subscribe("narrow", types=["task.failed"], max_pending=2)
    claimed = orbit_scene.lease(narrow)
    assert [one.event_sequence for one in claimed.leases] == [10, 20]
    row = subscription(orbit_scene, narrow)
    assert (row["cursor_sequence"], row["pending_count"]) == (29, 2)
    assert orbit_scene.lease(narrow).reason == "WINDOW_FULL"
    orbit_scene.acknowledge(narrow, claimed.leases[1])
    (third,) = orbit_scene.lease(narrow).leases
    assert third.event_sequence == 30
    assert subscription(orbit_scene, narrow)["cursor_sequence"] == 39
    none = orbit_scene.subscribe("none", types=["task.cancelled"])
    empty = orbit_scene.lease(none)
    assert (empty.reason, empty.scan_again) == ("EMPTY", True)
    assert subscription(orbit_scene, none)["cursor_sequence"] == 100
    empty = orbit_scene.lease(none)
    assert (empty.reason, empty.scan_again) == ("EMPTY", False)
    assert subscription(orbit_scene, none)["cursor_sequence"] == 130
    assert_invariants(orbit_scene.connection)


@pytest.mark.req("orbit:MAT-01", "orbit:MAT-05", "orbit:MAT-12", "F57")
def test_a_window_larger_than_the_scan_fills_a_hundred_at_a_time(orbit_scene: Scene) -> None:
    """All four types: each claim examines at most 100 rows; nothing is skipped between them."""
    orbit_scene.results(105)
    one = orbit_scene.subscribe(max_pending=1000)
    first = orbit_scene.lease(one)
    assert (first.pending_count, subscription(orbit_scene, one)["cursor_sequence"]) == (100, 100)
    second = orbit_scene.lease(one, capacity=32, connection_id=OTHER_CONNECTION)
    assert second.pending_count == 105
    assert [lease.event_sequence for lease in first.leases + second.leases] == list(range(1, 65))
    assert_invariants(orbit_scene.connection)


@pytest.mark.req("orbit:LSE-27", "orbit:LSE-34", "orbit:MAT-13", "orbit:MAT-14")
def test_one_claim_leases_what_was_ready_and_then_what_it_materialised(orbit_scene: Scene) -> None:
    """Each delivery has the secret of its place in the claim; a held row keeps the cursor before it."""
    orbit_scene.results(2)
    one = orbit_scene.subscribe()
    assert orbit_scene.lease(one, requested=0).pending_count == 2
    orbit_scene.results(3)
    leases = orbit_scene.lease(one, requested=4).leases
    assert [lease.event_sequence for lease in leases] == [1, 2, 3, 4]
    rows = [delivery(orbit_scene, lease.delivery_id) for lease in leases]
    assert [(row["revision"], row["attempts"], row["lease_epoch"]) for row in rows] == [(2, 1, 1)] * 4
    assert [answer[2:5:2] for answer in orbit_scene.acknowledge(one, *leases)] == [(None, False)] * 4
    assert_invariants(orbit_scene.connection)
    narrow = orbit_scene.subscribe("narrow", types=["task.succeeded"], max_pending=1)
    assert [lease.event_sequence for lease in orbit_scene.lease(narrow).leases] == [1]
    assert subscription(orbit_scene, narrow)["cursor_sequence"] == 1


@pytest.mark.req("orbit:MAT-13", "orbit:SUB-16")
def test_results_of_another_queue_move_the_cursor_to_the_head_only(orbit_scene: Scene) -> None:
    """The cursor says how far the journal was looked at, and creates nothing for a foreign queue."""
    orbit_scene.add_queue("other")
    one = orbit_scene.subscribe()
    orbit_scene.results(3, queue="other")
    claimed = orbit_scene.lease(one)
    assert (claimed.reason, claimed.pending_count, claimed.scan_again) == ("EMPTY", 0, False)
    assert subscription(orbit_scene, one)["cursor_sequence"] == 3


@pytest.mark.req("orbit:LSE-10", "orbit:LSE-26", "orbit:LSE-27")
def test_a_connection_holds_at_most_its_capacity(orbit_scene: Scene) -> None:
    """Lowest sequences first; another connection has a capacity of its own; an ACK or a deadline makes room."""
    orbit_scene.results(8)
    one = orbit_scene.subscribe()
    first = orbit_scene.lease(one, capacity=3)
    assert [lease.event_sequence for lease in first.leases] == [1, 2, 3]
    assert orbit_scene.lease(one, capacity=3).reason == "CAPACITY_FULL"
    second = orbit_scene.lease(one, capacity=2, connection_id=OTHER_CONNECTION)
    assert [lease.event_sequence for lease in second.leases] == [4, 5]
    orbit_scene.acknowledge(one, first.leases[1], connection_id=OTHER_CONNECTION)
    assert [lease.event_sequence for lease in orbit_scene.lease(one, capacity=3).leases] == [6]
    orbit_scene.age_lease(first.leases[0].delivery_id)
    assert [lease.event_sequence for lease in orbit_scene.lease(one, capacity=3).leases] == [7]
    assert_invariants(orbit_scene.connection)


@pytest.mark.req("orbit:LSE-12", "orbit:LSE-13", "orbit:LSE-14", "orbit:LSE-24", "orbit:LSE-29")
def test_a_lease_that_ran_out_comes_back_after_a_pause_until_the_budget_is_used(orbit_scene: Scene) -> None:
    """The pauses are 1 and 2 seconds from the recycling; proof and pending_count stay; recycling is not audited."""
    orbit_scene.result()
    one = orbit_scene.subscribe(max_attempts=3)
    proofs: list[Lease] = []
    for attempt, pause in ((1, 1), (2, 2)):
        (lease,) = orbit_scene.lease(one).leases
        proofs.append(lease)
        assert (lease.attempts, lease.lease_epoch) == (attempt, attempt)
        before = delivery(orbit_scene, lease.delivery_id)
        orbit_scene.age_lease(lease.delivery_id)
        claimed = orbit_scene.lease(one)
        assert (claimed.reason, claimed.pending_count, claimed.leases) == ("EMPTY", 1, [])
        after = delivery(orbit_scene, lease.delivery_id)
        assert (after["state"], after["revision"]) == ("PENDING", before["revision"] + 1)
        assert orbit_scene.value("select available_at - updated_at from orbit.event_deliveries") == timedelta(
            seconds=pause
        )
        kept = ("lease_secret_sha256", "lease_epoch", "attempts", "lease_connection_id")
        assert [after[name] for name in kept] == [before[name] for name in kept]
        orbit_scene.age_backoff(lease.delivery_id)
    (lease,) = orbit_scene.lease(one).leases
    orbit_scene.age_lease(lease.delivery_id)
    assert orbit_scene.lease(one).reason == "EMPTY"
    row = delivery(orbit_scene, lease.delivery_id)
    assert (row["state"], row["attempts"], row["lease_epoch"], row["revision"]) == ("EXPIRED", 3, 3, 7)
    assert len({proof.secret_sha256 for proof in [*proofs, lease]}) == 3
    assert subscription(orbit_scene, one)["pending_count"] == 1
    assert_invariants(orbit_scene.connection)


@pytest.mark.req("orbit:LSE-17", "orbit:LSE-23", "orbit:LSE-30", "orbit:PAU-03", "orbit:T-N14", "orbit:RTY-09")
@pytest.mark.parametrize("where", ["past its deadline", "recycled", "exhausted", "retried", "elsewhere", "paused"])
def test_the_last_proof_counts_until_a_claim_replaces_it(orbit_scene: Scene, where: str) -> None:
    """Late ACKs in every state that keeps a proof, over another connection, and during a pause."""
    orbit_scene.result()
    one = orbit_scene.subscribe(max_attempts=1 if where in {"exhausted", "retried"} else 5)
    if where in {"exhausted", "retried"}:
        lease = exhausted(orbit_scene, one)
    else:
        (lease,) = orbit_scene.lease(one).leases
    if where in {"past its deadline", "recycled", "paused"}:
        orbit_scene.age_lease(lease.delivery_id)
    if where == "recycled":
        orbit_scene.lease(one)
    if where == "retried":
        retry(orbit_scene, one, lease.delivery_id)
    if where == "paused":
        change(orbit_scene, "pause", one, 1)
    connection_id = OTHER_CONNECTION if where == "elsewhere" else CONNECTION
    ((_, _, code, acked_at, duplicate),) = orbit_scene.acknowledge(one, lease, connection_id=connection_id)
    assert (code, duplicate) == (None, False)
    assert acked_at is not None
    assert subscription(orbit_scene, one)["pending_count"] == 0
    late = json.loads(
        orbit_scene.value("select detail_json from orbit.audit_log where action = 'event.delivery.acked'")
    )
    assert late["late"] is (where != "elsewhere")
    assert late["ack_connection_id"] == connection_id
    assert_invariants(orbit_scene.connection)


@pytest.mark.req("orbit:LSE-18", "orbit:LSE-25", "orbit:ERR-01", "orbit:T-N15", "orbit:AUD-05")
def test_every_proof_that_is_not_the_current_one_is_refused_alike(orbit_scene: Scene) -> None:
    """Old proof, wrong secret, wrong epoch, never leased, old proof on `ACKED`; then unknown and foreign ones."""
    orbit_scene.results(2)
    one = orbit_scene.subscribe()
    (old,) = orbit_scene.lease(one, requested=1).leases
    orbit_scene.age_lease(old.delivery_id)
    orbit_scene.lease(one, requested=1, connection_id=OTHER_CONNECTION)
    orbit_scene.age_backoff(old.delivery_id)
    (new,) = orbit_scene.lease(one, requested=1).leases
    assert new.delivery_id == old.delivery_id
    assert new.lease_epoch == 2
    never_id = orbit_scene.value(
        "select delivery_id from orbit.event_deliveries where delivery_id <> %s", new.delivery_id
    )
    _, guessed = new_secret()
    wrong = [
        old,
        replace(new, secret_sha256=guessed),
        replace(old, secret_sha256=new.secret_sha256),
        replace(new, delivery_id=never_id, lease_epoch=0),
        replace(new, delivery_id=never_id),
    ]
    answers = orbit_scene.acknowledge(one, *wrong)
    assert [row[2:] for row in answers] == [("DELIVERY_LEASE_LOST", None, False)] * 5
    foreign = orbit_scene.subscribe("foreign")
    (elsewhere,) = orbit_scene.lease(foreign, requested=1).leases
    answers = orbit_scene.acknowledge(one, elsewhere, replace(new, delivery_id="dlv_" + "0" * 32))
    assert [row[2:] for row in answers] == [("DELIVERY_NOT_FOUND", None, False)] * 2
    assert orbit_scene.acknowledge(one, new)[0][2] is None
    assert orbit_scene.acknowledge(one, old)[0][2] == "DELIVERY_LEASE_LOST"
    assert_invariants(orbit_scene.connection)


@pytest.mark.req("orbit:LSE-36", "orbit:T-R24")
def test_a_group_of_acks_is_answered_as_one_by_one(orbit_scene: Scene) -> None:
    """32 ACKs of every kind in one call and, on a second subscription, one call each: equal answers, in order."""
    orbit_scene.results(20)
    answers: list[list[tuple[Any, ...]]] = []
    for name in ("together", "alone"):
        one = orbit_scene.subscribe(name)
        foreign = orbit_scene.subscribe(f"{name}-foreign")
        leases = orbit_scene.lease(one, requested=19).leases
        (elsewhere,) = orbit_scene.lease(foreign, requested=1).leases
        orbit_scene.acknowledge(one, leases[18])
        _, guessed = new_secret()
        burst = [
            *leases[:10],
            *leases[3:6],
            *(replace(lease, lease_epoch=2) for lease in leases[10:13]),
            *(replace(lease, secret_sha256=guessed) for lease in leases[13:16]),
            replace(leases[16], secret_sha256=guessed),
            leases[16],
            replace(leases[16], secret_sha256=guessed),
            leases[16],
            leases[18],
            replace(leases[17], delivery_id="dlv_" + "0" * 32),
            elsewhere,
            *leases[10:16],
        ]
        assert len(burst) == 32
        if name == "together":
            rows = orbit_scene.acknowledge(one, *burst)
            assert [row[0] for row in rows] == list(range(1, 33))
        else:
            rows = [orbit_scene.acknowledge(one, lease)[0] for lease in burst]
        assert [row[1] for row in rows] == [lease.delivery_id for lease in burst]
        answers.append([(code, acked_at is None, duplicate) for _, _, code, acked_at, duplicate in rows])
        acked = orbit_scene.value(
            "select count(*) from orbit.event_deliveries where subscription_id = %s and state = 'ACKED'", one
        )
        assert (acked, subscription(orbit_scene, one)["pending_count"]) == (18, 2)
    assert answers[0] == answers[1]
    assert_invariants(orbit_scene.connection)


@pytest.mark.req("orbit:AUD-01", "orbit:AUD-02", "orbit:AUD-03", "orbit:AUD-07", "orbit:AUD-09", "orbit:LSE-34")
def test_claim_and_ack_are_audited_with_the_facts_of_the_lease_and_no_secret(orbit_scene: Scene) -> None:
    """The detail is compact JSON with the members of AUD-07 in their order, whatever the connection is called."""
    orbit_scene.result('"the result body"')
    one = orbit_scene.subscribe()
    odd = 'conn_"\\ü'
    (lease,) = orbit_scene.lease(one, connection_id=odd).leases
    orbit_scene.acknowledge(one, lease, connection_id=odd)
    rows = orbit_scene.rows(
        "select action, resource_type, resource_id, credential_id, audit_id, detail_json from orbit.audit_log"
        " where action like 'event.delivery.%%' order by created_at"
    )
    assert [row[:4] for row in rows] == [
        (f"event.delivery.{word}", "event_delivery", lease.delivery_id, orbit_scene.owner.credential_id)
        for word in ("authorized", "acked")
    ]
    row = delivery(orbit_scene, lease.delivery_id)
    authorized, acked = (json.loads(found[5]) for found in rows)
    expires_at = orbit_scene.value("select orbit.time_text(lease_expires_at) from orbit.event_deliveries")
    assert list(authorized.items()) == [
        ("subscription_id", one),
        ("delivery_id", lease.delivery_id),
        ("event_id", lease.event_id),
        ("event_sequence", 1),
        ("lease_epoch", 1),
        ("attempts", 1),
        ("connection_id", odd),
        ("lease_expires_at", expires_at),
    ]
    assert acked == authorized | {"ack_connection_id": odd, "late": False}
    assert list(acked) == [*authorized, "ack_connection_id", "late"]
    assert len({found[4] for found in rows}) == 2
    assert all(len(found[4]) == len("audit_") + 32 and found[4][18] == "7" for found in rows)
    text = "".join(found[5] for found in rows)
    for hidden in (lease.secret, lease.secret_sha256.hex(), row["lease_secret_sha256"], "the result body"):
        assert hidden not in text


@pytest.mark.req("orbit:MIG-15", "orbit:MIG-18", "orbit:T-N17", "orbit:ERR-02", "F48")
@pytest.mark.parametrize(("cursor", "expired"), [(8, True), (9, True), (10, False), (11, False)])
def test_a_cursor_before_what_is_retained_stops_the_claim_and_nothing_else(
    orbit_scene: Scene, cursor: int, expired: bool
) -> None:
    """The refused claim changes nothing, not even a lease that ran out; deliveries at hand can be acknowledged."""
    one = orbit_scene.subscribe(max_pending=cursor + 1)
    orbit_scene.results(cursor)
    (lease,) = orbit_scene.lease(one, requested=1).leases
    orbit_scene.results(13 - cursor)
    orbit_scene.age_lease(lease.delivery_id)
    orbit_scene.run("update orbit.event_stream_locks set retained_from_sequence = 11")
    before = (subscription(orbit_scene, one), delivery(orbit_scene, lease.delivery_id))
    if expired:
        with pytest.raises(psycopg.Error) as refused:
            orbit_scene.lease(one)
        assert refused.value.sqlstate == "OB022"
        detail = json.loads(refused.value.diag.message_detail or "")
        assert detail == {"cursor_sequence": cursor, "retained_from_sequence": 11}
        assert (subscription(orbit_scene, one), delivery(orbit_scene, lease.delivery_id)) == before
    else:
        sequences = [one.event_sequence for one in orbit_scene.lease(one).leases]
        assert sequences == list(range(2, cursor + 2))
    assert orbit_scene.acknowledge(one, lease)[0][2] is None


@pytest.mark.req("orbit:MAT-08", "F46", "orbit:SUB-17")
def test_deliveries_are_acknowledged_on_their_own_in_any_order(orbit_scene: Scene) -> None:
    """An ACK of a later sequence skips nothing before it; the cursor, which is ahead, loses nothing."""
    orbit_scene.results(3)
    one = orbit_scene.subscribe()
    first, second, third = orbit_scene.lease(one).leases
    assert subscription(orbit_scene, one)["cursor_sequence"] == 3
    orbit_scene.acknowledge(one, third)
    for lease in (first, second):
        orbit_scene.age_lease(lease.delivery_id)
    orbit_scene.lease(one)
    for lease in (first, second):
        orbit_scene.age_backoff(lease.delivery_id)
    again = orbit_scene.lease(one).leases
    assert [lease.event_sequence for lease in again] == [1, 2]
    assert [lease.event_id for lease in again] == [first.event_id, second.event_id]


@pytest.mark.req("orbit:LSE-13", "orbit:T-P06")
def test_the_backoff_doubles_to_thirty_seconds_and_never_overflows(orbit_scene: Scene) -> None:
    """For 1 to 1,000,000 attempts the pause is min(2^(attempts-1), 30)."""
    wrong = orbit_scene.rows(
        "select a, orbit.delivery_backoff_seconds(a) from generate_series(1, 1000000) as a"
        " where orbit.delivery_backoff_seconds(a) <> case when a <= 5 then 2 ^ (a - 1) else 30 end limit 5"
    )
    assert wrong == []
    pauses = [
        row[0] for row in orbit_scene.rows("select orbit.delivery_backoff_seconds(a) from generate_series(1, 7) as a")
    ]
    assert pauses == [1, 2, 4, 8, 16, 30, 30]


@pytest.mark.req("orbit:GEN-07")
def test_identifiers_made_from_a_prefix_are_version_seven(orbit_scene: Scene) -> None:
    """Deliveries and their audit rows carry ids of the one form; the leading time is that of the claim."""
    orbit_scene.results(2)
    one = orbit_scene.subscribe()
    orbit_scene.lease(one)
    rows = orbit_scene.rows(
        "select substr(delivery_id, 5), created_at from orbit.event_deliveries"
        " union all select substr(audit_id, 7), created_at from orbit.audit_log"
        " where action = 'event.delivery.authorized'"
    )
    assert len(rows) == 4
    for digits, created_at in rows:
        assert (len(digits), digits[12], digits[16] in "89ab") == (32, "7", True)
        assert abs(int(digits[:12], 16) / 1000 - created_at.timestamp()) < 0.01
