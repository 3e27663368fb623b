"""Calls of the task functions: one function, one transaction, one round trip (LCK-14)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orbit.store.answer import Answer, Settled
from orbit.store.calls import call

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from psycopg import AsyncConnection

CONFIRMED_STATUS = 200


@dataclass(frozen=True, slots=True)
class Submission:
    """What `task_submit_v1` takes beside the token; None stands for the default."""

    queue: str
    input_json: str
    effect_policy: str | None
    max_attempts: int | None
    idempotency_key: str
    request_sha256: str


@dataclass(frozen=True, slots=True)
class Cancellation:
    """What `task_cancel_v1` takes beside the token."""

    task_id: str
    expected_revision: int
    reason: str | None
    idempotency_key: str
    request_sha256: str


@dataclass(frozen=True, slots=True)
class ResolutionOrder:
    """What `task_resolve_v1` takes beside the token; `result_given` tells an absent result from none (TSK-18)."""

    task_id: str
    expected_revision: int
    outcome: str
    result_json: str | None
    result_given: bool
    reason: str
    idempotency_key: str
    request_sha256: str


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What `attempt_confirm_v1` takes beside the token; `result_json` None is an absent result."""

    attempt_id: str
    secret_sha256: bytes
    outcome: str
    effect: str
    retryable: bool
    result_json: str | None


@dataclass(frozen=True, slots=True)
class WorkerClaim:
    """What `task_claim_v1` takes beside the token.

    Attributes:
        secrets_sha256: one digest for each attempt that the claim may begin.
        available_from: tasks that became available earlier are not looked at; None for all.
    """

    queue: str
    worker_id: str
    max_tasks: int
    secrets_sha256: Sequence[bytes]
    available_from: datetime | None


@dataclass(frozen=True, slots=True)
class ClaimedTask:
    """One task that a worker got.

    Attributes:
        line: place in the claim, from 1; the secret with this number belongs to it.
        available_at: since when the task could be claimed.
        input_json: exact text of the input.
    """

    line: int
    task_id: str
    attempt_id: str
    number: int
    lease_expires_at: datetime
    available_at: datetime
    input_json: str


@dataclass(frozen=True, slots=True)
class Recovery:
    """What became of a lost attempt; all None when it was none any more."""

    recovered: bool
    event_type: str | None
    sequence: int | None
    wake_queue_id: str | None


async def submit(connection: AsyncConnection[Any], token_sha256: bytes, order: Submission) -> Answer:
    """Take a task in (TX-01)."""
    rows = await call(
        connection,
        "select response_status, response_json, replayed, wake_queue_id"
        " from orbit.task_submit_v1(%s, %s, %s, %s, %s, %s, %s)",
        (
            token_sha256,
            order.queue,
            order.input_json,
            order.effect_policy,
            order.max_attempts,
            order.idempotency_key,
            order.request_sha256,
        ),
    )
    return _settled(rows).answer


async def get(connection: AsyncConnection[Any], token_sha256: bytes, task_id: str) -> str:
    """Read the body of a task (TX-15)."""
    ((body,),) = await call(connection, "select orbit.task_get_v1(%s, %s)", (token_sha256, task_id))
    return body


async def cancel(connection: AsyncConnection[Any], token_sha256: bytes, order: Cancellation) -> Settled:
    """Cancel a task (TX-04)."""
    rows = await call(
        connection,
        "select response_status, response_json, replayed, wake_queue_id"
        " from orbit.task_cancel_v1(%s, %s, %s, %s, %s, %s)",
        (
            token_sha256,
            order.task_id,
            order.expected_revision,
            order.reason,
            order.idempotency_key,
            order.request_sha256,
        ),
    )
    return _settled(rows)


async def resolve(connection: AsyncConnection[Any], token_sha256: bytes, order: ResolutionOrder) -> Settled:
    """Give a task its authoritative result (TX-05)."""
    rows = await call(
        connection,
        "select response_status, response_json, replayed, wake_queue_id"
        " from orbit.task_resolve_v1(%s, %s, %s, %s, %s, %s, %s, %s, %s)",
        (
            token_sha256,
            order.task_id,
            order.expected_revision,
            order.outcome,
            order.result_json,
            order.result_given,
            order.reason,
            order.idempotency_key,
            order.request_sha256,
        ),
    )
    return _settled(rows)


async def confirm(connection: AsyncConnection[Any], token_sha256: bytes, order: Confirmation) -> Settled:
    """Confirm the result of an attempt (TX-03)."""
    ((body, replayed, wake),) = await call(
        connection,
        "select response_json, replayed, wake_queue_id from orbit.attempt_confirm_v1(%s, %s, %s, %s, %s, %s, %s)",
        (
            token_sha256,
            order.attempt_id,
            order.secret_sha256,
            order.outcome,
            order.effect,
            order.retryable,
            order.result_json,
        ),
    )
    return Settled(Answer(CONFIRMED_STATUS, body, replayed), wake)


async def heartbeat(
    connection: AsyncConnection[Any], token_sha256: bytes, attempt_id: str, secret_sha256: bytes
) -> datetime:
    """Move the deadline of an attempt (TX-07); returns the new one."""
    ((deadline,),) = await call(
        connection, "select orbit.attempt_heartbeat_v1(%s, %s, %s)", (token_sha256, attempt_id, secret_sha256)
    )
    return deadline


async def claim(connection: AsyncConnection[Any], token_sha256: bytes, order: WorkerClaim) -> list[ClaimedTask]:
    """Begin attempts (TX-02); the tasks come oldest first."""
    rows = await call(
        connection,
        "select i, task_id, attempt_id, number, lease_expires_at, available_at, input_json"
        " from orbit.task_claim_v1(%s, %s, %s, %s, %s, %s)",
        (
            token_sha256,
            order.queue,
            order.worker_id,
            order.max_tasks,
            list(order.secrets_sha256),
            order.available_from,
        ),
    )
    return [ClaimedTask(*row) for row in rows]


async def expired(
    connection: AsyncConnection[Any], limit: int, token_sha256: bytes | None = None, queue: str | None = None
) -> list[str]:
    """Ids of attempts whose lease has run out: of a queue, or without token and queue of the whole database."""
    rows = await call(connection, "select * from orbit.attempt_expired_v1(%s, %s, %s)", (token_sha256, queue, limit))
    return [attempt_id for (attempt_id,) in rows]


async def recover(connection: AsyncConnection[Any], attempt_id: str) -> Recovery:
    """Take a task back from one lost attempt (TX-06)."""
    (row,) = await call(
        connection,
        "select recovered, event_type, sequence, wake_queue_id from orbit.attempt_recover_v1(%s)",
        (attempt_id,),
    )
    return Recovery(*row)


async def fence(connection: AsyncConnection[Any]) -> None:
    """Return when every commit before this is on disk."""
    await call(connection, "select orbit.journal_fence_v1()")


def _settled(rows: Sequence[tuple[Any, ...]]) -> Settled:
    ((status, body, replayed, wake),) = rows
    return Settled(Answer(status, body, replayed), wake)
