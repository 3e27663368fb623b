"""The bodies of answers over HTTP (sections 14 and 15), one model for each.

The server passes through what the database composed, so these models stand for the published document, for the client
and for the tests. A client ignores members that a later version adds.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from orbit.model.limits import MAX_ATTEMPTS_MAX, MAX_PENDING_MAX, SEQUENCE_MAX, TASK_ATTEMPTS_MAX, WORKER_CLAIM_MAX
from orbit.wire.frames import EventType, Id, Secret, Time

Count = Annotated[int, Field(ge=0, le=SEQUENCE_MAX)]
Number = Annotated[int, Field(ge=1, le=SEQUENCE_MAX)]


class AnswerBody(BaseModel):
    """What every answer has: all members, always."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore", hide_input_in_errors=True)


class Subscription(AnswerBody):
    """A durable subscription of one credential to the results of one queue."""

    subscription_id: Id
    namespace_id: Id
    name: str
    queue: str
    queue_id: Id
    types: list[EventType]
    status: Literal["ACTIVE", "PAUSED", "DISABLED"]
    from_sequence: Count = Field(description="results after this sequence are covered")
    cursor_sequence: Count = Field(
        description="how far the journal was looked at and deliveries made; no position that the consumer acknowledged"
    )
    max_pending: Annotated[int, Field(ge=1, le=MAX_PENDING_MAX)]
    max_attempts: Annotated[int, Field(ge=1, le=MAX_ATTEMPTS_MAX)]
    pending_count: Count = Field(description="deliveries in PENDING, LEASED or EXPIRED")
    revision: Number
    owner_credential_id: Id
    created_at: Time
    updated_at: Time


class Delivery(AnswerBody):
    """One result event for one subscription; a lease may look `LEASED` past its deadline until the next claim."""

    delivery_id: Id
    subscription_id: Id
    event_id: Id
    event_type: EventType
    sequence: Number
    task_id: Id
    state: Literal["PENDING", "LEASED", "ACKED", "EXPIRED"]
    attempts: Count
    attempt_budget: Number
    lease_epoch: Count
    available_at: Time
    lease_expires_at: Time | None
    connection_id: Id | None
    acked_at: Time | None
    revision: Number
    created_at: Time
    updated_at: Time


class Task(AnswerBody):
    """A task; `needs_review` is neither success nor failure, and an authoritative result may follow."""

    task_id: Id
    namespace_id: Id
    application_id: Id
    queue: str
    queue_id: Id
    state: Literal["queued", "running", "succeeded", "failed", "cancelled", "needs_review"]
    revision: Number
    effect_policy: Literal["safe", "unsafe"]
    effect_uncertain: bool
    attempt_count: Count
    max_attempts: Annotated[int, Field(ge=1, le=TASK_ATTEMPTS_MAX)]
    current_attempt_id: Id | None
    created_at: Time
    updated_at: Time
    result: Any = Field(description="any JSON value; null when there is none")


class TaskClaim(AnswerBody):
    """One attempt at a task, with the secret that confirms it."""

    task_id: Id
    attempt_id: Id
    number: Number
    lease_secret: Secret = Field(repr=False)
    lease_expires_at: Time
    input: Any = Field(description="any JSON value", repr=False)


class TaskClaims(AnswerBody):
    """What a worker was given."""

    items: list[TaskClaim] = Field(max_length=WORKER_CLAIM_MAX)


class AttemptLease(AnswerBody):
    """The new deadline of an attempt."""

    lease_expires_at: Time


class Receipt(AnswerBody):
    """The proof that a result is confirmed; `sequence` is null for `task.requeued`, which is no result."""

    receipt_id: Id
    task_id: Id
    attempt_id: Id
    task_state: Literal["queued", "succeeded", "failed", "needs_review"]
    task_revision: Number
    event_id: Id
    event_type: Literal["task.requeued", "task.succeeded", "task.failed", "task.needs_review"]
    sequence: Number | None
    confirmed_at: Time


class SubscriptionPage(AnswerBody):
    """A part of a list, and the cursor of the next part."""

    items: list[Subscription]
    next_cursor: str | None


class DeliveryPage(AnswerBody):
    """A part of a list, and the cursor of the next part."""

    items: list[Delivery]
    next_cursor: str | None


class Health(AnswerBody):
    """The process or the service can be used."""

    status: Literal["ok"]
