"""What the SDK hands out: received events, proofs, answers to ACKs, pages; and the models of the HTTP bodies.

A lease secret is held in memory only (SDK-08): `repr` leaves it out, and pickling what holds one is refused, because
a pickle is written somewhere. Whoever keeps a proof on purpose takes its three members.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, Generic, NoReturn, TypeVar

from orbit.model.exact_json import raw_members, value_of
from orbit.model.states import ResultType
from orbit.wire.answers import Delivery, Receipt, Subscription, Task, TaskClaim

__all__ = [
    "AckResult",
    "Category",
    "ConsumerStats",
    "Delivery",
    "Page",
    "Proof",
    "Receipt",
    "ReceivedEvent",
    "Subscription",
    "Task",
    "TaskClaim",
]

ItemT = TypeVar("ItemT")


class Category(StrEnum):
    """What a result means to an integrator (SDK-07, SRC-03).

    `review` is its own category: neither success nor failure, and an authoritative result may follow.
    """

    SUCCESS = "success"
    FAILURE = "failure"
    CANCELLED = "cancelled"
    REVIEW = "review"


_CATEGORIES: Final = MappingProxyType(
    {
        str(ResultType.SUCCEEDED): Category.SUCCESS,
        str(ResultType.FAILED): Category.FAILURE,
        str(ResultType.CANCELLED): Category.CANCELLED,
        str(ResultType.NEEDS_REVIEW): Category.REVIEW,
    }
)


class _InMemoryOnly:
    """Holds a secret: copies by pickling are refused."""

    __slots__ = ()

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} holds a lease secret and is not pickled")

    def __copy__(self) -> Any:  # noqa: ANN401 - frozen: the copy is the thing itself
        return self

    def __deepcopy__(self, _memo: object) -> Any:  # noqa: ANN401
        return self


@dataclass(frozen=True, slots=True)
class Proof(_InMemoryOnly):
    """The right to acknowledge one delivery, over any connection of the same credential (LSE-30)."""

    delivery_id: str
    lease_epoch: int
    lease_secret: str = field(repr=False)

    __reduce__ = _InMemoryOnly.__reduce__


@dataclass(frozen=True, slots=True)
class AckResult:
    """A delivery is acknowledged: since when (RFC 3339), and whether it had been before this ACK."""

    acked_at: str
    duplicate: bool


@dataclass(frozen=True, slots=True)
class Page(Generic[ItemT]):
    """A part of a list, and the cursor of the next part; None at the end."""

    items: Sequence[ItemT]
    next_cursor: str | None


class ReceivedEvent(_InMemoryOnly):
    """One delivery of one result event. It may have been delivered before: only a durable inbox decides (SDK-10).

    `event_type`, `sequence` and the rest are what the frame says; the snapshot is read when it is asked for.

    Attributes:
        lease_expires_at: deadline of the lease, RFC 3339; an ACK after it counts unless a newer delivery replaced it.
        attempts: which send this is, from 1; `attempt_budget` is how many are allowed in all.

    Args:
        snapshot_text: the stored snapshot; else `tail` is the text of the frame from the snapshot on, which is read
            when somebody asks for it.
    """

    __slots__ = (
        "_secret",
        "_snapshot",
        "_snapshot_text",
        "_tail",
        "attempt_budget",
        "attempts",
        "delivery_id",
        "event_id",
        "event_type",
        "lease_epoch",
        "lease_expires_at",
        "sequence",
        "subscription_id",
    )

    def __init__(
        self,
        *,
        subscription_id: str,
        delivery_id: str,
        event_id: str,
        event_type: str,
        sequence: int,
        lease_epoch: int,
        lease_secret: str,
        lease_expires_at: str,
        attempts: int,
        attempt_budget: int,
        snapshot_text: str | None = None,
        tail: str = "",
    ) -> None:
        self.subscription_id: Final = subscription_id
        self.delivery_id: Final = delivery_id
        self.event_id: Final = event_id
        self.event_type: Final = event_type
        self.sequence: Final = sequence
        self.lease_epoch: Final = lease_epoch
        self._secret: Final = lease_secret
        self.lease_expires_at: Final = lease_expires_at
        self.attempts: Final = attempts
        self.attempt_budget: Final = attempt_budget
        self._tail = tail
        self._snapshot_text = snapshot_text
        self._snapshot: dict[str, Any] | None = None

    @property
    def proof(self) -> Proof:
        """The proof of this delivery, to be kept and used over another connection (SDK-17)."""
        return Proof(self.delivery_id, self.lease_epoch, self._secret)

    @property
    def category(self) -> Category:
        """What the result means; `review` is neither success nor failure."""
        return _CATEGORIES[self.event_type]

    @property
    def is_final(self) -> bool:
        """False for `task.needs_review`, after which an authoritative result may follow as another event."""
        return self.category is not Category.REVIEW

    @property
    def snapshot_text(self) -> str:
        """The stored snapshot, byte for byte."""
        if self._snapshot_text is None:
            self._snapshot_text = raw_members(f'{{"snapshot":{self._tail}')["snapshot"]
            self._tail = ""
        return self._snapshot_text

    @property
    def snapshot(self) -> dict[str, Any]:
        """The snapshot as values: integers exact, other numbers `decimal.Decimal` (SDK-06).

        Raises ValueError where a number's exponent is beyond what `Decimal` holds; the text is there all the same.
        """
        if self._snapshot is None:
            snapshot: dict[str, Any] = value_of(self.snapshot_text)
            self._snapshot = snapshot
        return self._snapshot

    @property
    def result_text(self) -> str:
        """The exact text that the producer of the result sent; `null` when there is none."""
        return raw_members(self.snapshot_text)["result"]

    def __repr__(self) -> str:
        """Which delivery of which event; neither the secret nor the result."""
        return (
            f"ReceivedEvent(event_id={self.event_id!r}, event_type={self.event_type!r}, sequence={self.sequence}, "
            f"delivery_id={self.delivery_id!r}, lease_epoch={self.lease_epoch}, "
            f"attempts={self.attempts}/{self.attempt_budget})"
        )


@dataclass(frozen=True, slots=True)
class ConsumerStats:
    """Tells a consumer that is idle from one that only looks healthy (SDK-18).

    Times are seconds since the epoch, as `time.time()` gives them, None before the first. A server that is well
    answers a pull at the latest when its `wait` is over, so `last_frame_at` is never much older than that.

    Attributes:
        connected: the server has confirmed the subscription on the connection that is open now.
        last_pull_reason: why the last pull ended, for instance `DELIVERED`, `EMPTY`, `PAUSED`, `WINDOW_FULL`.
        running: handlers that run now.
        acked: deliveries that the server has confirmed as acknowledged.
        redelivered: deliveries that came for the second time or later.
    """

    connected: bool = False
    last_frame_at: float | None = None
    last_delivery_at: float | None = None
    last_pull_reason: str | None = None
    running: int = 0
    acked: int = 0
    redelivered: int = 0
