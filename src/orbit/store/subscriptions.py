"""Calls of the subscription functions: one function, one transaction, one round trip (LCK-14)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, LiteralString

from orbit.store.answer import Answer
from orbit.store.calls import call

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from psycopg import AsyncConnection


@dataclass(frozen=True, slots=True)
class Managed:
    """An answer, and whom its commit concerns.

    Attributes:
        wake_subscription_id: subscription whose waiting pulls should look again (WSS-17); None when there is none.
    """

    answer: Answer
    wake_subscription_id: str | None


@dataclass(frozen=True, slots=True)
class Creation:
    """What `subscription_create_v1` takes beside the token; None stands for an omitted member."""

    name: str
    queue: str
    types: Sequence[str] | None
    from_sequence: int | None
    max_pending: int | None
    max_attempts: int | None
    idempotency_key: str
    request_sha256: str


@dataclass(frozen=True, slots=True)
class StatusChange:
    """What pause and resume take beside the token."""

    subscription_id: str
    expected_revision: int
    reason: str | None
    idempotency_key: str
    request_sha256: str


@dataclass(frozen=True, slots=True)
class RetryOrder:
    """What `delivery_retry_v1` takes beside the token."""

    subscription_id: str
    delivery_id: str
    expected_revision: int
    reason: str
    additional_attempts: int
    idempotency_key: str
    request_sha256: str


@dataclass(frozen=True, slots=True)
class SubscriptionFilter:
    """What a list of subscriptions is narrowed to and where it goes on.

    Attributes:
        after: creation time and id of the last row that the caller has.
    """

    status: str | None
    queue: str | None
    after: tuple[datetime, str] | None


@dataclass(frozen=True, slots=True)
class Greeting:
    """What a connection learns of its subscription before the first pull (WSS-06)."""

    subscription_id: str
    namespace_id: str
    status: str
    revision: int
    queue_id: str
    types: list[str]
    max_pending: int
    server_time: datetime


async def create(connection: AsyncConnection[Any], token_sha256: bytes, order: Creation) -> Managed:
    """Create a subscription (TX-10)."""
    return await _managed(
        connection,
        "select response_status, response_json, replayed, wake_subscription_id"
        " from orbit.subscription_create_v1(%s, %s, %s, %s::text[], %s, %s, %s, %s, %s)",
        (
            token_sha256,
            order.name,
            order.queue,
            None if order.types is None else list(order.types),
            order.from_sequence,
            order.max_pending,
            order.max_attempts,
            order.idempotency_key,
            order.request_sha256,
        ),
    )


async def pause(connection: AsyncConnection[Any], token_sha256: bytes, order: StatusChange) -> Managed:
    """Pause a subscription (TX-13)."""
    return await _managed(
        connection,
        "select response_status, response_json, replayed, wake_subscription_id"
        " from orbit.subscription_pause_v1(%s, %s, %s, %s, %s, %s)",
        _of_change(token_sha256, order),
    )


async def resume(connection: AsyncConnection[Any], token_sha256: bytes, order: StatusChange) -> Managed:
    """Resume a subscription (TX-13)."""
    return await _managed(
        connection,
        "select response_status, response_json, replayed, wake_subscription_id"
        " from orbit.subscription_resume_v1(%s, %s, %s, %s, %s, %s)",
        _of_change(token_sha256, order),
    )


async def retry(connection: AsyncConnection[Any], token_sha256: bytes, order: RetryOrder) -> Managed:
    """Add to the budget of an exhausted delivery (TX-14)."""
    return await _managed(
        connection,
        "select response_status, response_json, replayed, wake_subscription_id"
        " from orbit.delivery_retry_v1(%s, %s, %s, %s, %s, %s, %s, %s)",
        (
            token_sha256,
            order.subscription_id,
            order.delivery_id,
            order.expected_revision,
            order.reason,
            order.additional_attempts,
            order.idempotency_key,
            order.request_sha256,
        ),
    )


async def get(connection: AsyncConnection[Any], token_sha256: bytes, subscription_id: str) -> str:
    """Read the body of a subscription (TX-15)."""
    ((body,),) = await call(connection, "select orbit.subscription_get_v1(%s, %s)", (token_sha256, subscription_id))
    return body


async def page(
    connection: AsyncConnection[Any], token_sha256: bytes, narrowed: SubscriptionFilter, limit: int
) -> list[tuple[datetime, str, str]]:
    """Read at most `limit` subscriptions; creation time, id and body of each."""
    rows = await call(
        connection,
        "select created_at, subscription_id, body from orbit.subscription_list_v1(%s, %s, %s, %s, %s, %s)",
        (token_sha256, narrowed.status, narrowed.queue, limit, *(narrowed.after or (None, None))),
    )
    return [(created_at, subscription_id, body) for created_at, subscription_id, body in rows]


async def hello(connection: AsyncConnection[Any], token_sha256: bytes, subscription_id: str) -> Greeting:
    """Check that the credential may consume a subscription, and read what the greeting says (TX-16)."""
    (row,) = await call(
        connection,
        "select subscription_id, namespace_id, status, revision, queue_id, types, max_pending, server_time"
        " from orbit.subscription_hello_v1(%s, %s)",
        (token_sha256, subscription_id),
    )
    return Greeting(*row)


def _of_change(token_sha256: bytes, order: StatusChange) -> tuple[object, ...]:
    return (
        token_sha256,
        order.subscription_id,
        order.expected_revision,
        order.reason,
        order.idempotency_key,
        order.request_sha256,
    )


async def _managed(connection: AsyncConnection[Any], query: LiteralString, arguments: tuple[object, ...]) -> Managed:
    ((status, body, replayed, wake),) = await call(connection, query, arguments)
    return Managed(Answer(status, body, replayed), wake)
