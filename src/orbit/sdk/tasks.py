"""The operations of a producer and a worker (section 14), each as the call that it is."""

from __future__ import annotations

from typing import Any, Final

from orbit.model.exact_json import text_of
from orbit.sdk.addresses import segment
from orbit.sdk.answers import reading, reading_items
from orbit.sdk.requests import Call, body_of, keyed, with_member
from orbit.sdk.values import Receipt, Task, TaskClaim
from orbit.wire.answers import AttemptLease

ATTEMPTS: Final = "/v1/worker/attempts"


def submit(
    queue: str,
    input: Any,  # noqa: A002, ANN401 - part of the interface
    *,
    effect_policy: str = "unsafe",
    max_attempts: int = 3,
    idempotency_key: str | None = None,
) -> Call[Task]:
    """Submit a task. `effect_policy="safe"` says that repeating its work does no harm."""
    members = {"queue": queue, "effect_policy": effect_policy, "max_attempts": max_attempts}
    call = keyed("/v1/tasks", reading(Task), members, idempotency_key)
    return with_member(call, "input", text_of(input))


def claim_tasks(queue: str, worker_id: str, most: int) -> Call[list[TaskClaim]]:
    """Take ready tasks. Not repeatable: claims whose answer is lost run out on their own."""
    members = {"queue": queue, "worker_id": worker_id, "max": most}
    return Call("POST", "/v1/worker/claims", reading_items(TaskClaim), body=body_of(members), repeatable=False)


def heartbeat(claim: TaskClaim) -> Call[None]:
    """Keep the lease of an attempt. Raises Conflict when it belongs to somebody else by now."""

    def read(body: Any) -> None:  # noqa: ANN401
        AttemptLease.model_validate(body)

    path = f"{ATTEMPTS}/{segment(claim.attempt_id)}/heartbeat"
    return Call("POST", path, read, body=body_of({"lease_secret": claim.lease_secret}))


def confirm(
    claim: TaskClaim,
    *,
    outcome: str,
    effect: str = "none",
    retryable: bool = False,
    result: Any = None,  # noqa: ANN401 - any JSON value
    result_text: str | None = None,
) -> Call[Receipt]:
    """Confirm the result of an attempt: a value, or `result_text` to be stored byte for byte, or neither.

    Repeating it with the same content gives the same receipt; another content raises Conflict. When it returns, the
    result and its notification are durable.
    """
    if result is not None and result_text is not None:
        raise ValueError("give result or result_text, not both")
    members = {"lease_secret": claim.lease_secret, "outcome": outcome, "effect": effect, "retryable": retryable}
    call = Call("POST", f"{ATTEMPTS}/{segment(claim.attempt_id)}/result", reading(Receipt), body=body_of(members))
    text = text_of(result) if result is not None else result_text
    return call if text is None else with_member(call, "result", text)
