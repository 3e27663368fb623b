"""The client: management, event connection, automatic consumer and worker, asynchronous and synchronous.

Delivery is at least once: store an event in your own inbox first, commit, and only then acknowledge it. The automatic
consumer does the second half: it acknowledges after your handler has returned. Nothing here imports the server; what
is needed besides the standard library is httpx, websockets and pydantic (SDK-02).
"""

from orbit.sdk.connection import AsyncEventConnection, EventConnection
from orbit.sdk.consumer import AsyncEventConsumer, EventConsumer
from orbit.sdk.errors import (
    Conflict,
    ConnectionClosed,
    DeliveryLeaseLost,
    Forbidden,
    HistoryExpired,
    NotFound,
    OrbitApiError,
    OrbitSdkError,
    Unauthenticated,
    Unreachable,
    ValidationFailed,
)
from orbit.sdk.management import AsyncManagementClient, ManagementClient
from orbit.sdk.values import (
    AckResult,
    Category,
    ConsumerStats,
    Delivery,
    Page,
    Proof,
    Receipt,
    ReceivedEvent,
    Subscription,
    Task,
    TaskClaim,
)
from orbit.sdk.worker import AsyncWorker, Worker

__all__ = [
    "AckResult",
    "AsyncEventConnection",
    "AsyncEventConsumer",
    "AsyncManagementClient",
    "AsyncWorker",
    "Category",
    "Conflict",
    "ConnectionClosed",
    "ConsumerStats",
    "Delivery",
    "DeliveryLeaseLost",
    "EventConnection",
    "EventConsumer",
    "Forbidden",
    "HistoryExpired",
    "ManagementClient",
    "NotFound",
    "OrbitApiError",
    "OrbitSdkError",
    "Page",
    "Proof",
    "Receipt",
    "ReceivedEvent",
    "Subscription",
    "Task",
    "TaskClaim",
    "Unauthenticated",
    "Unreachable",
    "ValidationFailed",
    "Worker",
]
