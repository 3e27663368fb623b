"""States, types and actions, spelled as the specification spells them."""

from __future__ import annotations

from enum import StrEnum


class ResultType(StrEnum):
    """The four result events, in the order in which a subscription shows them (SRC-01, SUB-24)."""

    SUCCEEDED = "task.succeeded"
    FAILED = "task.failed"
    CANCELLED = "task.cancelled"
    NEEDS_REVIEW = "task.needs_review"


class TaskState(StrEnum):
    """States of a task (TSK-02)."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    NEEDS_REVIEW = "needs_review"


class EffectPolicy(StrEnum):
    """Whether repeating a task's work does harm (TSK-04)."""

    SAFE = "safe"
    UNSAFE = "unsafe"


class Outcome(StrEnum):
    """What a worker says of its attempt."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"


class Resolution(StrEnum):
    """What an operator says of a task that needs review (TSK-14)."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Effect(StrEnum):
    """Whether a failed attempt may have had an effect (TSK-05, TSK-06)."""

    NONE = "none"
    UNKNOWN = "unknown"


class DeliveryState(StrEnum):
    """States of a delivery (LSE-01)."""

    PENDING = "PENDING"
    LEASED = "LEASED"
    ACKED = "ACKED"
    EXPIRED = "EXPIRED"


class SubscriptionStatus(StrEnum):
    """Status of a subscription (SUB-20); a credential never meets `DISABLED`, which has no owner."""

    ACTIVE = "ACTIVE"
    PAUSED = "PAUSED"
    DISABLED = "DISABLED"


class PullReason(StrEnum):
    """Why a pull ended, the first that applies (WSS-07)."""

    DELIVERED = "DELIVERED"
    PAUSED = "PAUSED"
    CAPACITY_FULL = "CAPACITY_FULL"
    WINDOW_FULL = "WINDOW_FULL"
    EMPTY = "EMPTY"


class Action(StrEnum):
    """What a credential may do; no action implies another (AUT-06)."""

    TASKS_CREATE = "tasks:create"
    TASKS_READ = "tasks:read"
    TASKS_CANCEL = "tasks:cancel"
    TASKS_RESOLVE = "tasks:resolve"
    TASKS_WORK = "tasks:work"
    EVENTS_MANAGE = "events:manage"
    EVENTS_READ = "events:read"
    EVENTS_CONSUME = "events:consume"
