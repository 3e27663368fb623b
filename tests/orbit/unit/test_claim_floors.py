"""Where a worker's claim begins to look (TSK-09, LSE-35)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from orbit.tasks.floors import QUEUES_MAX, ClaimFloors

KEY = (b"token", "billing")
MOMENT = datetime(2026, 1, 5, 8, 30, tzinfo=UTC)


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        """The time."""
        return self.now


@pytest.mark.req("orbit:TSK-09")
def test_a_bound_holds_for_two_seconds_after_the_last_look_at_everything() -> None:
    """No bound at first; after a claim its first task is the bound; bounded claims do not prolong it."""
    clock = Clock()
    floors = ClaimFloors(clock)
    assert floors.bound(KEY) is None
    floors.note(KEY, bounded=False, first=MOMENT)
    clock.now += 1.9
    assert floors.bound(KEY) == MOMENT
    later = MOMENT.replace(minute=31)
    floors.note(KEY, bounded=True, first=later)
    assert floors.bound(KEY) == later
    clock.now += 0.1
    assert floors.bound(KEY) is None


@pytest.mark.req("orbit:TSK-09")
def test_an_empty_bounded_claim_is_repeated_without_bound_once_per_second() -> None:
    """At once a second after the last look at everything, and not before."""
    clock = Clock()
    floors = ClaimFloors(clock)
    floors.note(KEY, bounded=False, first=MOMENT)
    assert not floors.may_look_again(KEY)
    clock.now += 1.0
    floors.note(KEY, bounded=True, first=None)
    assert floors.may_look_again(KEY)
    floors.note(KEY, bounded=False, first=None)
    assert not floors.may_look_again(KEY)
    assert floors.bound(KEY) == MOMENT


@pytest.mark.req("orbit:TSK-09")
def test_a_queue_that_never_had_a_task_has_no_bound() -> None:
    """An empty claim of an unknown queue leaves nothing behind; forgotten queues start again without bound."""
    floors = ClaimFloors(Clock())
    floors.note(KEY, bounded=False, first=None)
    assert floors.bound(KEY) is None
    floors.note(KEY, bounded=False, first=MOMENT)
    for number in range(QUEUES_MAX):
        floors.note((b"token", str(number)), bounded=False, first=MOMENT)
    assert floors.bound(KEY) is None
