"""The keeper of a process's claim bounds: when a claim may begin late, and when it must look at everything (LSE-35)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from orbit.model.states import PullReason
from orbit.store.deliveries import EARLIEST, LATEST, UNBOUNDED, Claim, Leased
from orbit.subscriptions.bounds import Bounds, ConnectionBounds

START = datetime(2026, 1, 5, tzinfo=UTC)


class Clock:
    """A process clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        """Seconds."""
        return self.now


def claim(*sequences: int, after_seconds: float = 0, bounded: bool = True, reason: PullReason | None = None) -> Claim:
    """A claim at some time after the start that leased these sequences."""
    at = START + timedelta(seconds=after_seconds)
    deadline = at + timedelta(seconds=30)
    leased = [
        Leased(i, f"dlv_{sequence}", f"evt_{sequence}", "task.failed", sequence, 1, deadline, 1, 20, "{}")
        for i, sequence in enumerate(sequences, 1)
    ]
    why = reason or (PullReason.DELIVERED if leased else PullReason.EMPTY)
    return Claim(
        why, scan_again=False, pending_count=0, max_pending=100, claimed_at=at, deliveries=leased, bounded=bounded
    )


@pytest.fixture
def clock() -> Clock:
    """Give a clock."""
    return Clock()


@pytest.fixture
def bounds(clock: Clock) -> Iterator[ConnectionBounds]:
    """Give the bounds of a connection that has made its first claim, of sequences 5 and 6."""
    with Bounds(clock).connection("sub_1", "conn_1") as connection:
        assert connection.next() == UNBOUNDED
        connection.claimed(claim(5, 6, bounded=False))
        yield connection


@pytest.mark.req("orbit:LSE-35")
def test_the_floors_follow_the_last_claim(bounds: ConnectionBounds) -> None:
    """Recycled up to its time, lowest sequence, earliest deadline that is still held."""
    known = bounds.next()
    assert (known.lease_floor, known.ready_floor) == (START, 5)
    assert known.held_floor == START + timedelta(seconds=30)
    bounds.claimed(claim(9, after_seconds=1))
    assert bounds.next().ready_floor == 9
    bounds.settled(["dlv_5"])
    assert bounds.next().held_floor == START + timedelta(seconds=30)
    bounds.settled(["dlv_6", "dlv_unknown"])
    assert bounds.next().held_floor == START + timedelta(seconds=31)
    bounds.settled(["dlv_9"])
    assert bounds.next().held_floor == LATEST


@pytest.mark.req("orbit:LSE-35")
def test_a_lease_that_ran_out_is_held_no_more(bounds: ConnectionBounds) -> None:
    """A later claim of the database's own time ends it."""
    bounds.claimed(claim(7, after_seconds=30))
    assert bounds.next().held_floor == START + timedelta(seconds=60)


@pytest.mark.req("orbit:LSE-35")
def test_a_claim_without_bounds_comes_every_two_seconds(bounds: ConnectionBounds, clock: Clock) -> None:
    """However much bounded claims deliver meanwhile."""
    clock.now += 1.9
    bounds.claimed(claim(8))
    assert bounds.next() != UNBOUNDED
    clock.now += 0.1
    assert bounds.next() == UNBOUNDED
    bounds.claimed(claim(9, bounded=False))
    assert bounds.next() != UNBOUNDED


@pytest.mark.req("orbit:LSE-35")
def test_a_bounded_claim_that_delivered_nothing_is_followed_by_one_without_bounds(
    bounds: ConnectionBounds, clock: Clock
) -> None:
    """At once, but at most once per second."""
    bounds.claimed(claim())
    assert not bounds.again_at_once
    assert bounds.next() != UNBOUNDED
    clock.now += 1.0
    assert bounds.again_at_once
    assert bounds.next() == UNBOUNDED
    bounds.claimed(claim(bounded=False))
    assert not bounds.again_at_once
    clock.now += 1.0
    assert bounds.next() != UNBOUNDED


@pytest.mark.req("orbit:LSE-35", "orbit:PAU-05")
def test_a_paused_claim_recycled_nothing(bounds: ConnectionBounds) -> None:
    """So it moves no floor."""
    before = bounds.next()
    bounds.claimed(claim(after_seconds=5, reason=PullReason.PAUSED))
    assert bounds.next() == before


@pytest.mark.req("orbit:LSE-35", "orbit:LSE-26")
def test_connections_of_a_subscription_share_what_is_about_the_subscription_only(clock: Clock) -> None:
    """Each begins without bounds and holds for itself; with the last connection the knowledge goes."""
    keeper = Bounds(clock)
    with keeper.connection("sub_1", "conn_1") as one, keeper.connection("sub_1", "conn_2") as two:
        one.claimed(claim(5, bounded=False))
        assert two.next() == UNBOUNDED
        two.claimed(claim(8, after_seconds=1, bounded=False))
        assert one.next().ready_floor == two.next().ready_floor == 8
        assert one.next().held_floor == START + timedelta(seconds=30)
        assert two.next().held_floor == START + timedelta(seconds=31)
    with keeper.connection("sub_1", "conn_3") as three:
        three.claimed(claim(bounded=False))
        assert three.next().ready_floor == 0
    with keeper.connection("sub_2", "conn_4") as other:
        other.claimed(claim(reason=PullReason.PAUSED, bounded=False))
        assert other.next().lease_floor == EARLIEST
