"""A small history in which everything is right, to be broken one promise at a time.

One namespace with one queue and four results; one subscription from 0 with a window of 2. Delivery 1 is delivered
twice, because its first lease ran out; the subscription is paused for a while; delivery 4 expires and gets one more
attempt.
Every operation stands there twice, as the client saw it and as the audit log has it.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from orbit.history.operations import (
    DATABASE,
    Ack,
    AnyLine,
    Claim,
    Confirm,
    Create,
    DeliveryFact,
    Leased,
    ResultFact,
    Retry,
    StreamFact,
    SubscriptionFact,
    Switch,
    digest_of,
)
from orbit.model.states import DeliveryState, ResultType, SubscriptionStatus

START: Final = datetime(2026, 1, 5, 8, 30, tzinfo=UTC)
TYPES: Final = (ResultType.SUCCEEDED, ResultType.FAILED, ResultType.CANCELLED, ResultType.NEEDS_REVIEW)
SUBSCRIPTION: Final = "sub_1"
LEASE: Final = 30


def at(seconds: float) -> datetime:
    """A moment of the history, in seconds from its start."""
    return START + timedelta(seconds=seconds)


class Story:
    """Collects lines; every operation is told by the client and by the database."""

    def __init__(self) -> None:
        self.lines: list[AnyLine] = []
        self._ids = 0

    def tell(self, kind: type[Any], seconds: float, *, client: dict[str, Any] | None = None, **members: Any) -> None:
        """Add the client's line, a twentieth of a second around the moment, and the database's, at the moment.

        Args:
            client: members that only the client knows.
        """
        self._ids += 1
        moment, around = at(seconds), timedelta(seconds=0.05)
        self.lines += [
            kind(
                id=f"c{self._ids}",
                process="client",
                begin=moment - around,
                end=moment + around,
                **(members | (client or {})),
            ),
            kind(id=f"d{self._ids}", process=DATABASE, begin=moment, end=moment, **members),
        ]

    def confirm(self, number: int, seconds: float) -> None:
        """A worker's result with its sequence, and the journal row."""
        event, event_type = f"evt_{number}", TYPES[number - 1]
        self.tell(
            Confirm,
            seconds,
            client={"receipt": digest_of(f"receipt {number}")},
            task=f"task_{number}",
            attempt=f"att_{number}",
            event=event,
            event_type=event_type,
            sequence=number,
            namespace="ns_1",
        )
        self.lines.append(
            ResultFact(
                namespace="ns_1",
                queue="q_1",
                task=f"task_{number}",
                event=event,
                event_type=event_type,
                sequence=number,
                snapshot=digest_of(f"snapshot {number}"),
                begin=at(seconds - 0.01),
                end=at(seconds - 0.005),
            )
        )

    def claim(self, number: int, seconds: float, epoch: int) -> None:
        """One delivery leased."""
        base: dict[str, Any] = {
            "delivery": f"dlv_{number}",
            "event": f"evt_{number}",
            "sequence": number,
            "epoch": epoch,
            "attempts": epoch,
            "lease_expires_at": at(seconds + LEASE),
        }
        seen: dict[str, Any] = base | {
            "event_type": TYPES[number - 1],
            "proof": digest_of(f"secret {number}/{epoch}"),
            "snapshot": digest_of(f"snapshot {number}"),
        }
        self.tell(
            Claim,
            seconds,
            client={"leased": (Leased(**seen),), "pending_count": 2, "max_pending": 2},
            subscription=SUBSCRIPTION,
            connection="conn_1",
            leased=(Leased(**base),),
        )

    def ack(self, number: int, seconds: float, epoch: int) -> None:
        """One delivery acknowledged, for the first time."""
        seen: dict[str, Any] = {
            "proof": digest_of(f"secret {number}/{epoch}"),
            "acked_at": at(seconds),
            "duplicate": False,
        }
        self.tell(
            Ack,
            seconds,
            client=seen,
            subscription=SUBSCRIPTION,
            delivery=f"dlv_{number}",
            epoch=epoch,
            outcome="ACKED",
        )

    def delivery(self, number: int, created: float, acked: float | None, epoch: int, budget: int = 2) -> None:
        """What the row of a delivery says in the end."""
        self.lines.append(
            DeliveryFact(
                delivery=f"dlv_{number}",
                subscription=SUBSCRIPTION,
                event=f"evt_{number}",
                sequence=number,
                state=DeliveryState.PENDING if acked is None else DeliveryState.ACKED,
                attempts=epoch,
                epoch=epoch,
                budget=budget,
                created_at=at(created),
                acked_at=None if acked is None else at(acked),
            )
        )


def clean_history() -> list[AnyLine]:
    """The lines of the story in the module's text."""
    story = Story()
    for number in range(1, 5):
        story.confirm(number, number * 0.2)
    answer = {"key": digest_of("key 1"), "receipt": digest_of("created")}
    story.tell(Create, 1, client=answer, subscription=SUBSCRIPTION, from_sequence=0)
    story.claim(1, 2, 1)
    story.claim(2, 2, 1)
    story.ack(2, 3, 1)
    story.claim(3, 4, 1)
    story.tell(
        Switch,
        5,
        client={"key": digest_of("key 2"), "receipt": digest_of("paused")},
        op="pause",
        subscription=SUBSCRIPTION,
    )
    story.ack(3, 6, 1)
    story.tell(
        Switch,
        8,
        client={"key": digest_of("key 3"), "receipt": digest_of("resumed")},
        op="resume",
        subscription=SUBSCRIPTION,
    )
    story.claim(4, 9, 1)
    story.claim(1, 34, 2)
    story.ack(1, 35, 2)
    story.claim(4, 41, 2)
    again = {"key": digest_of("key 4"), "receipt": digest_of("retried")}
    story.tell(Retry, 71.2, client=again, subscription=SUBSCRIPTION, delivery="dlv_4", additional_attempts=5)
    story.claim(4, 71.5, 3)
    story.delivery(1, 2, 35, 2)
    story.delivery(2, 2, 3, 1)
    story.delivery(3, 4, 6, 1)
    story.delivery(4, 9, None, 3, budget=7)
    story.lines += [
        StreamFact(namespace="ns_1", last_sequence=4, retained_from=1),
        SubscriptionFact(
            subscription=SUBSCRIPTION,
            namespace="ns_1",
            queue="q_1",
            types=TYPES,
            status=SubscriptionStatus.ACTIVE,
            from_sequence=0,
            cursor=4,
            pending_count=1,
            max_pending=2,
            max_attempts=2,
            revision=3,
        ),
    ]
    return story.lines
