"""Subscriptions over HTTP: creation, pause and resume, retry, and repetitions (sections 5, 7, 10, 15)."""

from __future__ import annotations

from secrets import token_hex
from typing import Any

import pytest

from tests.kit.orbit.callers import SUBSCRIPTIONS, Caller, HttpScene, code_of, created, done

RESULT_TYPES = ["task.succeeded", "task.failed", "task.cancelled", "task.needs_review"]


def count(scene: HttpScene, caller: Caller) -> int:
    """How many audit rows the credential caused."""
    row = scene.connection.execute(
        "select count(*) from orbit.audit_log where credential_id = %s", (caller.credential_id,)
    ).fetchone()
    assert row is not None
    return row[0]


@pytest.mark.req("orbit:API-01", "orbit:SUB-13", "orbit:SUB-14", "orbit:SUB-15", "orbit:SUB-24", "orbit:GEN-08")
def test_a_subscription_is_created_with_defaults_and_read_back_where_location_says(http_scene: HttpScene) -> None:
    """Only name and queue are mandatory; the answer has every member, and the address gives the same body."""
    caller = http_scene.caller()
    answer = caller.post(SUBSCRIPTIONS, {"name": "billing-results", "queue": "billing"})
    body = created(answer)
    assert list(body) == [
        "subscription_id", "namespace_id", "name", "queue", "queue_id", "types", "status", "from_sequence",
        "cursor_sequence", "max_pending", "max_attempts", "pending_count", "revision", "owner_credential_id",
        "created_at", "updated_at",
    ]  # fmt: skip
    assert (body["types"], body["status"], body["revision"]) == (RESULT_TYPES, "ACTIVE", 1)
    assert (body["max_pending"], body["max_attempts"], body["pending_count"]) == (100, 20, 0)
    assert body["owner_credential_id"] == caller.credential_id
    assert answer.headers["location"] == f"{SUBSCRIPTIONS}/{body['subscription_id']}"
    assert caller.get(answer.headers["location"]).text == answer.text


@pytest.mark.req("orbit:SUB-08", "orbit:SUB-09", "orbit:SUB-10", "orbit:SUB-11", "orbit:MIG-16", "orbit:T-N05",
                 "orbit:T-N06", "orbit:SUB-23")  # fmt: skip
def test_omitted_means_from_now_and_zero_means_all(http_scene: HttpScene) -> None:
    """The head itself is accepted, the sequence after it lies in the future, and the answer tells the newest one."""
    caller = http_scene.caller()
    assert caller.finish()["sequence"] == 1
    assert caller.finish("shipping")["sequence"] == 2
    starts = {"now": None, "all": 0, "first": 1, "head": 2}
    found = {name: caller.subscribe(name, from_sequence=start)["from_sequence"] for name, start in starts.items()}
    assert found == {"now": 2, "all": 0, "first": 1, "head": 2}
    future = caller.post(SUBSCRIPTIONS, {"name": "future", "queue": "billing", "from_sequence": 3})
    assert (future.status_code, code_of(future), future.json()["last_sequence"]) == (422, "SEQUENCE_IN_FUTURE", 2)


@pytest.mark.req("orbit:T-N08", "orbit:SUB-14", "orbit:SUB-15", "orbit:T-N07")
@pytest.mark.parametrize(
    ("members", "found"),
    [
        ({"max_pending": 0, "max_attempts": 0}, (100, 20)),
        ({"max_pending": 1, "max_attempts": 1}, (1, 1)),
        ({"max_pending": 1000, "max_attempts": 100}, (1000, 100)),
        ({"max_pending": -1}, None),
        ({"max_pending": 1001}, None),
        ({"max_attempts": -1}, None),
        ({"max_attempts": 101}, None),
    ],
)
def test_windows_and_budgets_have_their_ranges(
    one_scene: HttpScene, members: dict[str, int], found: tuple[int, int] | None
) -> None:
    """Zero is the default, one and the upper limit are themselves, and beyond is refused."""
    body = {"name": f"s-{token_hex(4)}", "queue": "billing", **members}
    answer = one_scene.caller().post(SUBSCRIPTIONS, body)
    if found is None:
        assert (answer.status_code, code_of(answer)) == (422, "VALIDATION_FAILED")
        assert answer.json()["errors"][0]["pointer"] == f"/{next(iter(members))}"
    else:
        assert (created(answer)["max_pending"], created(answer)["max_attempts"]) == found


@pytest.mark.req("orbit:SUB-13", "orbit:SUB-24", "orbit:T-N07")
def test_no_types_are_all_types_and_some_are_returned_in_their_order(http_scene: HttpScene) -> None:
    """An empty array is no empty set."""
    caller = http_scene.caller()
    assert caller.subscribe("empty", types=[])["types"] == RESULT_TYPES
    assert caller.subscribe("two", types=["task.needs_review", "task.failed"])["types"] == [
        "task.failed",
        "task.needs_review",
    ]


@pytest.mark.req("orbit:SUB-25", "orbit:SUB-04", "orbit:SUB-05", "orbit:T-N02")
def test_creation_is_refused_in_the_order_of_the_specification(http_scene: HttpScene) -> None:
    """Of several faults the first is answered: body, token, action, key, queue, name, limit, sequence.

    A name that is taken is told even where the namespace is full.
    """
    caller = http_scene.caller()
    bad_everything: dict[str, Any] = {"name": "taken", "queue": "nowhere", "from_sequence": 99}
    created_first = caller.post(SUBSCRIPTIONS, {"name": "taken", "queue": "billing"}, key="used")
    assert created_first.status_code == 201

    def code(who: Caller, body: dict[str, Any], key: str = "fresh-key") -> str:
        return code_of(who.post(SUBSCRIPTIONS, body, key=key))

    stranger = Caller(http_scene.client, "orbit_" + "x" * 43)
    reader = http_scene.caller("events:read")
    everywhere = http_scene.caller(all_queues=True)
    assert code(stranger, {**bad_everything, "max_pending": -1}) == "VALIDATION_FAILED"
    assert code(stranger, bad_everything) == "UNAUTHENTICATED"
    nobody = Caller(http_scene.client, "orbit_short")
    assert code_of(nobody.post(SUBSCRIPTIONS, bad_everything, key=None)) == "UNAUTHENTICATED"
    assert code_of(caller.post(SUBSCRIPTIONS, bad_everything, key=None)) == "IDEMPOTENCY_KEY_REQUIRED"
    assert code(reader, bad_everything) == "ACTION_NOT_ALLOWED"
    assert code(caller, bad_everything, key="used") == "IDEMPOTENCY_CONFLICT"
    assert code(caller, bad_everything) == "QUEUE_NOT_ALLOWED"
    assert code(everywhere, bad_everything) == "QUEUE_NOT_FOUND"
    assert code(caller, {**bad_everything, "queue": "billing"}) == "SUBSCRIPTION_NAME_CONFLICT"
    assert code(caller, {"name": "new", "queue": "billing", "from_sequence": 99}) == "SEQUENCE_IN_FUTURE"
    for number in range(63):
        _ = caller.subscribe(f"s{number}")
    assert code(caller, {**bad_everything, "queue": "billing"}) == "SUBSCRIPTION_NAME_CONFLICT"
    assert code(caller, {"name": "new", "queue": "billing", "from_sequence": 99}) == "SUBSCRIPTION_LIMIT_REACHED"


@pytest.mark.req("orbit:T-N10", "orbit:IDM-01", "orbit:IDM-08", "orbit:IDM-09", "orbit:IDM-11", "orbit:RTY-06",
                 "orbit:AUD-05")  # fmt: skip
def test_every_change_is_repeated_by_its_key_after_the_state_has_moved_on(http_scene: HttpScene) -> None:
    """Create, pause, resume and retry give their first answer again, byte for byte, and do nothing a second time."""
    caller = http_scene.caller()
    _ = caller.finish()
    first = caller.post(
        SUBSCRIPTIONS, {"name": "a", "queue": "billing", "from_sequence": 0, "max_attempts": 1}, key="create"
    )
    place = first.headers["location"]
    delivery = http_scene.exhausted_delivery(caller, created(first)["subscription_id"])
    retry_body = {"expected_revision": delivery["revision"], "reason": "fixed", "additional_attempts": 5}
    requests = [
        (SUBSCRIPTIONS, {"name": "a", "queue": "billing", "from_sequence": 0, "max_attempts": 1}, "create"),
        (f"{place}/pause", {"expected_revision": 1, "reason": "maintenance"}, "pause"),
        (f"{place}/resume", {"expected_revision": 2}, "resume"),
        (f"{place}/deliveries/{delivery['delivery_id']}/retry", retry_body, "retry"),
    ]
    answers = [first, *(caller.post(path, body, key=key) for path, body, key in requests[1:])]
    assert [answer.status_code for answer in answers] == [201, 200, 200, 200]
    assert done(answers[3])["attempt_budget"] == 6
    before = count(http_scene, caller)
    for answer, (path, body, key) in zip(answers, requests, strict=True):
        again = caller.post(path, body, key=key)
        assert (again.status_code, again.text) == (answer.status_code, answer.text)
        assert again.headers.get("location") == answer.headers.get("location")
        assert "idempotency-replayed" not in answer.headers
        assert again.headers["idempotency-replayed"] == "true"
        assert again.headers["orbit-request-id"] != answer.headers["orbit-request-id"]
    assert count(http_scene, caller) == before
    assert done(caller.get(place))["revision"] == 3


@pytest.mark.req("orbit:T-N10", "orbit:IDM-07", "orbit:IDM-11")
def test_a_key_is_mandatory_well_formed_and_unused_after_a_failure(http_scene: HttpScene) -> None:
    """Without a key nothing is done, and a request that failed leaves its key to the next one."""
    caller = http_scene.caller()
    body = {"name": "a", "queue": "billing"}
    missing = caller.post(SUBSCRIPTIONS, body, key=None)
    assert (missing.status_code, code_of(missing)) == (400, "IDEMPOTENCY_KEY_REQUIRED")
    for key in ("", "a b", "k" * 129, "a\x7f"):
        malformed = caller.post(SUBSCRIPTIONS, body, key=key)
        assert (malformed.status_code, code_of(malformed)) == (422, "VALIDATION_FAILED")
    assert code_of(caller.post(SUBSCRIPTIONS, {**body, "from_sequence": 9}, key="k" * 128)) == "SEQUENCE_IN_FUTURE"
    assert caller.post(SUBSCRIPTIONS, body, key="k" * 128).status_code == 201


@pytest.mark.req("orbit:T-N11", "orbit:T-N12", "orbit:IDM-02", "orbit:IDM-04", "orbit:IDM-10")
def test_a_key_belongs_to_one_credential_one_target_and_one_request(http_scene: HttpScene) -> None:
    """Another credential meets the name, not the receipt; another body is a conflict; another target is its own."""
    first, second = http_scene.caller(), http_scene.caller()
    body = {"name": "a", "queue": "billing"}
    one = created(first.post(SUBSCRIPTIONS, body, key="k"))
    foreign = second.post(SUBSCRIPTIONS, body, key="k")
    assert code_of(foreign) == "SUBSCRIPTION_NAME_CONFLICT"
    assert one["subscription_id"] not in foreign.text
    assert created(second.post(SUBSCRIPTIONS, {**body, "name": "b"}, key="k"))["name"] == "b"
    assert code_of(first.post(SUBSCRIPTIONS, {**body, "max_pending": 0}, key="k")) == "IDEMPOTENCY_CONFLICT"
    pauses = [(first, one), (first, first.subscribe("c"))]
    for caller, subscription in pauses:
        path = f"{SUBSCRIPTIONS}/{subscription['subscription_id']}/pause"
        assert done(caller.post(path, {"expected_revision": 1}, key="k"))["status"] == "PAUSED"
        assert code_of(caller.post(path, {"expected_revision": 2}, key="k")) == "IDEMPOTENCY_CONFLICT"


@pytest.mark.req("orbit:PAU-07", "orbit:PAU-08", "orbit:API-07", "orbit:T-N16")
def test_pause_and_resume_go_by_revision_and_state(http_scene: HttpScene) -> None:
    """A revision that is not the present one is told the present one; a state that is there already is a conflict."""
    caller = http_scene.caller()
    path = f"{SUBSCRIPTIONS}/{caller.subscribe('a')['subscription_id']}"
    stale = caller.post(f"{path}/pause", {"expected_revision": 7})
    assert (stale.status_code, code_of(stale), stale.json()["current_revision"]) == (409, "REVISION_CONFLICT", 1)
    assert code_of(caller.post(f"{path}/resume", {"expected_revision": 1})) == "SUBSCRIPTION_STATE_CONFLICT"
    paused = done(caller.post(f"{path}/pause", {"expected_revision": 1, "reason": "x"}))
    assert (paused["status"], paused["revision"]) == ("PAUSED", 2)
    assert code_of(caller.post(f"{path}/pause", {"expected_revision": 2})) == "SUBSCRIPTION_STATE_CONFLICT"
    assert done(caller.post(f"{path}/resume", {"expected_revision": 2}))["status"] == "ACTIVE"


@pytest.mark.req("orbit:T-N13", "orbit:T-N16", "orbit:RTY-01", "orbit:RTY-03", "orbit:RTY-08", "orbit:RTY-11")
def test_a_retry_is_for_the_expired_only_and_within_the_budget(http_scene: HttpScene) -> None:
    """LEASED, LEASED past its deadline, PENDING and ACKED are not EXPIRED; exactly 1000000 attempts are allowed."""
    caller = http_scene.caller()
    _ = caller.finish()
    subscription_id = caller.subscribe("a", from_sequence=0, max_attempts=1)["subscription_id"]
    (delivery_id,) = http_scene.claim_deliveries(caller, subscription_id)
    path = f"{SUBSCRIPTIONS}/{subscription_id}/deliveries/{delivery_id}"
    body = {"expected_revision": 2, "reason": "fixed", "additional_attempts": 1}
    assert done(caller.get(path))["state"] == "LEASED"
    assert code_of(caller.post(f"{path}/retry", body)) == "DELIVERY_NOT_EXPIRED"
    http_scene.let_leases_run_out()
    assert code_of(caller.post(f"{path}/retry", body)) == "DELIVERY_NOT_EXPIRED"
    assert http_scene.claim_deliveries(caller, subscription_id) == []
    expired = done(caller.get(path))
    assert (expired["state"], expired["revision"]) == ("EXPIRED", 3)
    stale = caller.post(f"{path}/retry", body)
    assert (code_of(stale), stale.json()["current_revision"]) == ("REVISION_CONFLICT", 3)
    http_scene.change_guarded("update orbit.event_deliveries set attempt_budget = 999999, attempts = 999999")
    beyond = {**body, "expected_revision": 3, "additional_attempts": 2}
    assert code_of(caller.post(f"{path}/retry", beyond)) == "ATTEMPT_BUDGET_EXCEEDED"
    retried = done(caller.post(f"{path}/retry", {**beyond, "additional_attempts": 1}))
    assert (retried["state"], retried["attempt_budget"], retried["lease_epoch"]) == ("PENDING", 1_000_000, 1)
    assert code_of(caller.post(f"{path}/retry", {**beyond, "expected_revision": 4})) == "DELIVERY_NOT_EXPIRED"
    assert code_of(caller.post(f"{path[:-3]}xyz/retry", beyond)) == "DELIVERY_NOT_FOUND"
