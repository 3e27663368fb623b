"""The task platform over HTTP: exact texts, receipts that are true, and limits (sections 2, 14)."""

from __future__ import annotations

import re

import pytest

from orbit.wire.answers import Receipt, Task, TaskClaim
from tests.kit.orbit.callers import Caller, HttpScene, code_of, created, done

DIGITS = "123456789012345678901234567890"
ODD_RESULT = '{ "n":1.00, "big":' + "9" * 5000 + ',"z":-0,"e":1E+2,"s":"\\u0000\\ud800 é" }'


def claimed(caller: Caller) -> dict[str, object]:
    """A task submitted and claimed."""
    _ = caller.submit()
    return caller.claim()[0]


def stored(scene: HttpScene) -> list[str]:
    """Every snapshot in the journal."""
    return [
        row[0] for row in scene.connection.execute("select snapshot_json from orbit.result_events order by sequence")
    ]


@pytest.mark.req("orbit:T-E01", "orbit:SRC-15", "orbit:SRC-18", "orbit:SRC-19", "orbit:TSK-09", "orbit:TSK-10")
def test_a_result_goes_through_http_without_a_changed_byte(http_scene: HttpScene) -> None:
    """What the worker sent is what the task shows and what the journal holds, digits, escapes and spaces included."""
    caller = http_scene.caller()
    answer = caller.post("/v1/tasks", f'{{"queue":"billing","input":{{ "n":{DIGITS} }}}}')
    task = Task.model_validate_json(answer.text)
    assert answer.headers["location"] == f"/v1/tasks/{task.task_id}"
    raw = caller.post("/v1/worker/claims", {"queue": "billing", "worker_id": "w-1"}, key=None)
    assert f'"input":{{ "n":{DIGITS} }}' in raw.text
    claim = TaskClaim.model_validate(done(raw)["items"][0])
    assert claim.task_id == task.task_id
    receipt = Receipt.model_validate_json(caller.confirm(done(raw)["items"][0], ODD_RESULT).text)
    assert (receipt.event_type, receipt.sequence, receipt.task_state) == ("task.succeeded", 1, "succeeded")
    assert f'"result":{ODD_RESULT}' in caller.get(f"/v1/tasks/{task.task_id}").text
    (snapshot,) = stored(http_scene)
    assert snapshot.endswith(f'"result":{ODD_RESULT}}}')


@pytest.mark.req("orbit:T-N25", "orbit:TSK-11", "orbit:TSK-19", "orbit:SRC-08")
def test_a_confirmation_is_repeated_by_the_same_text_and_no_other(http_scene: HttpScene) -> None:
    """`1.0` is not `1.00`; the same text gives the first receipt again, and there is one event."""
    caller = http_scene.caller()
    claim = claimed(caller)
    first = caller.confirm(claim, "1.00")
    assert caller.confirm(claim, " 1.00 ").text == first.text
    conflict = caller.confirm(claim, "1.0")
    assert (conflict.status_code, code_of(conflict)) == (409, "RESULT_CONFLICT")
    assert len(stored(http_scene)) == 1


@pytest.mark.req("orbit:T-N25", "orbit:IDM-10")
def test_a_submission_with_one_other_digit_is_another_request(http_scene: HttpScene) -> None:
    """Of 30 digits the last differs, which a double would not see."""
    caller = http_scene.caller()
    form = '{"queue":"billing","input":%s}'
    first = caller.post("/v1/tasks", form % DIGITS, key="k")
    again = caller.post("/v1/tasks", form % DIGITS, key="k")
    assert (again.status_code, again.text, again.headers["idempotency-replayed"]) == (201, first.text, "true")
    assert again.headers["location"] == first.headers["location"]
    assert code_of(caller.post("/v1/tasks", form % (DIGITS[:-1] + "1"), key="k")) == "IDEMPOTENCY_CONFLICT"


@pytest.mark.req("orbit:T-N18", "orbit:SRC-20")
def test_a_result_beyond_its_limits_is_refused_before_anything_is_written(http_scene: HttpScene) -> None:
    """One byte over 1 MiB, 257 levels, NaN and two values are refused; the attempt can still be confirmed after."""
    caller = http_scene.caller()
    claim = claimed(caller)
    largest = f'"{"x" * (1_048_576 - 2)}"'
    deepest = "[" * 256 + "]" * 256
    for result, status, code in [
        (f'"x{largest[1:]}', 413, "RESULT_TOO_LARGE"),
        (f"[{deepest}]", 400, "MALFORMED_REQUEST"),
        ("NaN", 400, "MALFORMED_REQUEST"),
        ("1 2", 400, "MALFORMED_REQUEST"),
    ]:
        answer = caller.confirm(claim, result)
        assert (answer.status_code, code_of(answer)) == (status, code)
    assert stored(http_scene) == []
    assert done(caller.confirm(claim, largest))["sequence"] == 1
    assert done(caller.confirm(claimed(caller), deepest))["sequence"] == 2
    assert [snapshot.endswith(f'"result":{result}}}') for snapshot, result in
            zip(stored(http_scene), (largest, deepest), strict=True)] == [True, True]  # fmt: skip


@pytest.mark.req("orbit:TSK-20", "orbit:TSK-10", "orbit:GEN-08")
def test_an_attempt_is_kept_and_confirmed_by_its_secret_only(http_scene: HttpScene) -> None:
    """Another secret has lost the lease, and an attempt that does not exist is not found."""
    caller = http_scene.caller()
    claim = claimed(caller)
    path = f"/v1/worker/attempts/{claim['attempt_id']}/heartbeat"
    kept = done(caller.post(path, {"lease_secret": claim["lease_secret"]}, key=None))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", kept["lease_expires_at"])
    assert kept["lease_expires_at"] >= str(claim["lease_expires_at"])
    wrong = {**claim, "lease_secret": "x" * 43}
    assert code_of(caller.confirm(wrong)) == "ATTEMPT_LEASE_LOST"
    assert code_of(caller.post(path, {"lease_secret": "x" * 43}, key=None)) == "ATTEMPT_LEASE_LOST"
    assert code_of(caller.confirm({**claim, "attempt_id": "att_0"})) == "ATTEMPT_NOT_FOUND"
    assert code_of(caller.post(path, {"lease_secret": "short"}, key=None)) == "VALIDATION_FAILED"


@pytest.mark.req("orbit:TSK-13", "orbit:TSK-14", "orbit:SRC-04", "orbit:TSK-18", "orbit:IDM-09")
def test_a_running_task_that_is_cancelled_needs_review_and_is_resolved(http_scene: HttpScene) -> None:
    """Both answers are repeated by their keys; an explicit null is a result, an absent one keeps the earlier."""
    caller = http_scene.caller()
    task_id = claimed(caller)["task_id"]
    cancel = {"expected_revision": 2, "reason": "stop"}
    cancelled = caller.post(f"/v1/tasks/{task_id}/cancel", cancel, key="k")
    assert done(cancelled)["state"] == "needs_review"
    resolve = '{"expected_revision":3,"outcome":"succeeded","result":1.50,"reason":"checked"}'
    resolved = caller.post(f"/v1/tasks/{task_id}/resolve", resolve, key="k")
    assert '"result":1.50' in resolved.text
    assert done(resolved)["effect_uncertain"] is False
    assert caller.post(f"/v1/tasks/{task_id}/cancel", cancel, key="k").text == cancelled.text
    assert caller.post(f"/v1/tasks/{task_id}/resolve", resolve, key="k").text == resolved.text
    again = caller.post(f"/v1/tasks/{task_id}/resolve", resolve.replace("1.50", "1.5"), key="k")
    assert code_of(again) == "IDEMPOTENCY_CONFLICT"
    assert code_of(caller.post(f"/v1/tasks/{task_id}/cancel", cancel)) in {"TASK_STATE_CONFLICT", "REVISION_CONFLICT"}
    assert len(stored(http_scene)) == 2


@pytest.mark.req("orbit:TSK-17", "orbit:TSK-07", "orbit:SUB-25")
def test_a_disabled_queue_and_a_full_application_take_no_task(http_scene: HttpScene) -> None:
    """Running attempts may finish; the queue rule of subscriptions holds for tasks."""
    caller = http_scene.caller()
    claim = claimed(caller)
    _ = http_scene.connection.execute("select orbit.quota_set_v1('acme', 'shop', 1)")
    body = {"queue": "billing", "input": None}
    assert code_of(caller.post("/v1/tasks", body)) == "APPLICATION_QUOTA_EXCEEDED"
    _ = http_scene.connection.execute("update orbit.queues set enabled = false where name = 'billing'")
    assert code_of(caller.post("/v1/tasks", body)) == "QUEUE_DISABLED"
    claims = {"queue": "billing", "worker_id": "w-1"}
    assert code_of(caller.post("/v1/worker/claims", claims, key=None)) == "QUEUE_DISABLED"
    assert done(caller.confirm(claim))["task_state"] == "succeeded"
    assert code_of(caller.post("/v1/tasks", {**body, "queue": "nowhere"})) == "QUEUE_NOT_ALLOWED"
    everywhere = http_scene.caller(all_queues=True)
    assert code_of(everywhere.post("/v1/tasks", {**body, "queue": "nowhere"})) == "QUEUE_NOT_FOUND"
    assert created(everywhere.post("/v1/tasks", {"queue": "shipping", "input": {}}))["state"] == "queued"
