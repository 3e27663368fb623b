"""The error codes of the specification, section 20: one row each, with what HTTP, the WebSocket and SQL say.

Codes are stable and never renamed. SQL raises them by SQLSTATE of class `OB`, which the SQL standard leaves to
implementations; clients decide on `code` only.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


class ErrorCode(StrEnum):
    """Every code that a client can meet."""

    MALFORMED_REQUEST = "MALFORMED_REQUEST"
    INVALID_MESSAGE = "INVALID_MESSAGE"
    SUBPROTOCOL_REQUIRED = "SUBPROTOCOL_REQUIRED"
    INVALID_CURSOR = "INVALID_CURSOR"
    IDEMPOTENCY_KEY_REQUIRED = "IDEMPOTENCY_KEY_REQUIRED"
    UNAUTHENTICATED = "UNAUTHENTICATED"
    ACTION_NOT_ALLOWED = "ACTION_NOT_ALLOWED"
    NAMESPACE_DISABLED = "NAMESPACE_DISABLED"
    APPLICATION_DISABLED = "APPLICATION_DISABLED"
    QUEUE_NOT_ALLOWED = "QUEUE_NOT_ALLOWED"
    QUEUE_NOT_FOUND = "QUEUE_NOT_FOUND"
    ROUTE_NOT_FOUND = "ROUTE_NOT_FOUND"
    METHOD_NOT_ALLOWED = "METHOD_NOT_ALLOWED"
    UNSUPPORTED_MEDIA_TYPE = "UNSUPPORTED_MEDIA_TYPE"
    TASK_NOT_FOUND = "TASK_NOT_FOUND"
    ATTEMPT_NOT_FOUND = "ATTEMPT_NOT_FOUND"
    SUBSCRIPTION_NOT_FOUND = "SUBSCRIPTION_NOT_FOUND"
    DELIVERY_NOT_FOUND = "DELIVERY_NOT_FOUND"
    SUBSCRIPTION_NAME_CONFLICT = "SUBSCRIPTION_NAME_CONFLICT"
    SUBSCRIPTION_LIMIT_REACHED = "SUBSCRIPTION_LIMIT_REACHED"
    SUBSCRIPTION_STATE_CONFLICT = "SUBSCRIPTION_STATE_CONFLICT"
    SUBSCRIPTION_DISABLED = "SUBSCRIPTION_DISABLED"
    REVISION_CONFLICT = "REVISION_CONFLICT"
    IDEMPOTENCY_CONFLICT = "IDEMPOTENCY_CONFLICT"
    DELIVERY_NOT_EXPIRED = "DELIVERY_NOT_EXPIRED"
    DELIVERY_LEASE_LOST = "DELIVERY_LEASE_LOST"
    ATTEMPT_LEASE_LOST = "ATTEMPT_LEASE_LOST"
    RESULT_CONFLICT = "RESULT_CONFLICT"
    TASK_STATE_CONFLICT = "TASK_STATE_CONFLICT"
    QUEUE_DISABLED = "QUEUE_DISABLED"
    APPLICATION_QUOTA_EXCEEDED = "APPLICATION_QUOTA_EXCEEDED"
    EVENT_HISTORY_EXPIRED = "EVENT_HISTORY_EXPIRED"
    RESULT_TOO_LARGE = "RESULT_TOO_LARGE"
    REQUEST_TOO_LARGE = "REQUEST_TOO_LARGE"
    VALIDATION_FAILED = "VALIDATION_FAILED"
    SEQUENCE_IN_FUTURE = "SEQUENCE_IN_FUTURE"
    ATTEMPT_BUDGET_EXCEEDED = "ATTEMPT_BUDGET_EXCEEDED"
    PULL_IN_PROGRESS = "PULL_IN_PROGRESS"
    SERVICE_BUSY = "SERVICE_BUSY"
    SERVICE_NOT_READY = "SERVICE_NOT_READY"
    SERVER_SHUTTING_DOWN = "SERVER_SHUTTING_DOWN"
    INTERNAL = "INTERNAL"


@dataclass(frozen=True, slots=True)
class CodeFacts:
    """What belongs to a code.

    Attributes:
        title: short English sentence without a full stop.
        status: HTTP status; None where the code never leaves over HTTP.
        close: WebSocket close code after this error; None where it does not close the connection.
        sqlstate: what the database functions raise; None where they do not.
    """

    title: str
    status: int | None = None
    close: int | None = None
    sqlstate: str | None = None


CODES: Final[Mapping[ErrorCode, CodeFacts]] = MappingProxyType(
    {
        ErrorCode.MALFORMED_REQUEST: CodeFacts("The body is not what JSON allows", 400),
        ErrorCode.INVALID_MESSAGE: CodeFacts("The frame breaks the protocol", None, 4400),
        ErrorCode.SUBPROTOCOL_REQUIRED: CodeFacts("The subprotocol orbit.events.v1 is required", 400),
        ErrorCode.INVALID_CURSOR: CodeFacts("The cursor is unknown or belongs to another list", 400),
        ErrorCode.IDEMPOTENCY_KEY_REQUIRED: CodeFacts("The header Idempotency-Key is missing", 400),
        ErrorCode.UNAUTHENTICATED: CodeFacts("The token is missing, unknown, expired or revoked", 401, 4401, "OB001"),
        ErrorCode.NAMESPACE_DISABLED: CodeFacts("The namespace is disabled", 403, 4403, "OB002"),
        ErrorCode.APPLICATION_DISABLED: CodeFacts("The application is disabled", 403, 4403, "OB003"),
        ErrorCode.ACTION_NOT_ALLOWED: CodeFacts("The credential lacks the action", 403, 4403, "OB004"),
        ErrorCode.QUEUE_NOT_ALLOWED: CodeFacts("The queue is outside the credential's scope", 403, 4403, "OB005"),
        ErrorCode.QUEUE_NOT_FOUND: CodeFacts("There is no such queue", 404, None, "OB006"),
        ErrorCode.QUEUE_DISABLED: CodeFacts("The queue is disabled", 409, None, "OB007"),
        ErrorCode.ROUTE_NOT_FOUND: CodeFacts("There is nothing at this path", 404),
        ErrorCode.METHOD_NOT_ALLOWED: CodeFacts("The method is not allowed here", 405),
        ErrorCode.UNSUPPORTED_MEDIA_TYPE: CodeFacts("The body must be application/json", 415),
        ErrorCode.TASK_NOT_FOUND: CodeFacts("There is no such task", 404, None, "OB008"),
        ErrorCode.ATTEMPT_NOT_FOUND: CodeFacts("There is no such attempt", 404, None, "OB009"),
        ErrorCode.ATTEMPT_LEASE_LOST: CodeFacts("The attempt belongs to somebody else now", 409, None, "OB010"),
        ErrorCode.RESULT_CONFLICT: CodeFacts("Another result was confirmed for the attempt", 409, None, "OB011"),
        ErrorCode.TASK_STATE_CONFLICT: CodeFacts("The task's state does not allow this", 409, None, "OB012"),
        ErrorCode.APPLICATION_QUOTA_EXCEEDED: CodeFacts("The application has too many open tasks", 409, None, "OB013"),
        ErrorCode.REVISION_CONFLICT: CodeFacts("The revision is another one by now", 409, None, "OB014"),
        ErrorCode.IDEMPOTENCY_CONFLICT: CodeFacts("The key belongs to another request", 409, None, "OB015"),
        ErrorCode.SUBSCRIPTION_NOT_FOUND: CodeFacts("There is no such subscription", 404, 4404, "OB016"),
        ErrorCode.SUBSCRIPTION_DISABLED: CodeFacts("The subscription is disabled", 409, 4403, "OB017"),
        ErrorCode.SUBSCRIPTION_NAME_CONFLICT: CodeFacts("The name is taken", 409, None, "OB018"),
        ErrorCode.SUBSCRIPTION_LIMIT_REACHED: CodeFacts("The namespace has 64 subscriptions", 409, None, "OB019"),
        ErrorCode.SUBSCRIPTION_STATE_CONFLICT: CodeFacts(
            "The subscription is in that state already", 409, None, "OB020"
        ),
        ErrorCode.SEQUENCE_IN_FUTURE: CodeFacts("The sequence is greater than the newest result's", 422, None, "OB021"),
        ErrorCode.EVENT_HISTORY_EXPIRED: CodeFacts("The position lies before what is retained", 410, None, "OB022"),
        ErrorCode.DELIVERY_NOT_FOUND: CodeFacts("The subscription has no such delivery", 404, None, "OB023"),
        ErrorCode.DELIVERY_NOT_EXPIRED: CodeFacts("Delivery is not expired", 409, None, "OB024"),
        ErrorCode.DELIVERY_LEASE_LOST: CodeFacts("The proof is not the current one"),
        ErrorCode.ATTEMPT_BUDGET_EXCEEDED: CodeFacts("The budget would exceed 1000000 attempts", 422, None, "OB025"),
        ErrorCode.RESULT_TOO_LARGE: CodeFacts("The result is larger than 1 MiB", 413),
        ErrorCode.REQUEST_TOO_LARGE: CodeFacts("The body is larger than the limit", 413, 1009),
        ErrorCode.VALIDATION_FAILED: CodeFacts("A member is missing, unknown or out of range", 422, None, "OB026"),
        ErrorCode.PULL_IN_PROGRESS: CodeFacts("A pull is open already"),
        ErrorCode.SERVICE_BUSY: CodeFacts("The service is busy; try again", 503, 4503),
        ErrorCode.SERVICE_NOT_READY: CodeFacts("The service is not ready", 503, 4503),
        ErrorCode.SERVER_SHUTTING_DOWN: CodeFacts("The server is shutting down", 503, 1001),
        ErrorCode.INTERNAL: CodeFacts("The server failed", 500, 1011),
    }
)
"""Code → facts."""

CODE_OF_SQLSTATE: Final[Mapping[str, ErrorCode]] = MappingProxyType(
    {facts.sqlstate: code for code, facts in CODES.items() if facts.sqlstate is not None}
)
"""SQLSTATE → code."""
