"""The low-water hint is followed, and a sweep without it comes within a bounded time (AMB-48)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from seapost.dispatcher.claim import Hint, SweepTimer, next_lane
from tests.kit import contracts
from tests.kit.monotonic import ManualClock

pytestmark = pytest.mark.req("AMB-48")

CLAIM = contracts.claim()
LATER = replace(CLAIM, available_at=CLAIM.available_at + timedelta(seconds=5))


def test_the_first_claim_sweeps() -> None:
    """A dispatcher that has just started looks everywhere."""
    assert Hint(1.0, ManualClock()).low() is None


def test_the_hint_is_the_last_claimed_row() -> None:
    """After a claim the next one starts where it ended."""
    hint = Hint(1.0, ManualClock())
    hint.claimed(None, [CLAIM, LATER], 0.001)
    assert hint.low() == [LATER.available_at]


def test_an_empty_claim_moves_nothing() -> None:
    """Finding nothing above the hint says nothing about where to look."""
    hint = Hint(1.0, ManualClock())
    hint.claimed(None, [LATER], 0.001)
    hint.claimed(hint.low(), [], 0.001)
    assert hint.low() == [LATER.available_at]


def test_a_sweep_moves_the_hint_back() -> None:
    """What a sweep found below the hint may have successors there: the next claim starts at it."""
    clock = ManualClock()
    hint = Hint(1.0, clock)
    hint.claimed(None, [LATER], 0.001)
    clock.advance(1.0)
    assert hint.low() is None
    hint.claimed(None, [CLAIM], 0.001)
    assert hint.low() == [CLAIM.available_at]


def test_a_sweep_comes_every_interval() -> None:
    """Claims with the hint never postpone the sweep."""
    clock = ManualClock()
    hint = Hint(1.0, clock)
    hint.claimed(None, [CLAIM], 0.001)
    sweeps = 0
    for _ in range(100):
        clock.advance(0.1)
        low = hint.low()
        sweeps += low is None
        hint.claimed(low, [CLAIM], 0.001)
    assert sweeps == 10


def test_a_dear_sweep_is_rarer() -> None:
    """A sweep that took two seconds comes again after forty: sweeping costs at most a twentieth of the time."""
    clock = ManualClock()
    timer = SweepTimer(1.0, clock)
    timer.swept(2.0)
    clock.advance(39.9)
    assert not timer.due()
    clock.advance(0.2)
    assert timer.due()


@pytest.mark.req("F72")
def test_a_sweep_can_be_forced() -> None:
    """After a reconnected listener the next claim looks everywhere."""
    hint = Hint(1.0, ManualClock())
    hint.claimed(None, [CLAIM], 0.001)
    hint.timer.force()
    assert hint.low() is None


@pytest.mark.req("F23")
def test_each_lane_has_a_hint_of_its_own() -> None:
    """A loud lane lags behind a quiet one; a lane nothing came from is looked at from its start."""
    hint = Hint(1.0, ManualClock())
    hint.claimed(None, [replace(CLAIM, lane=3), replace(LATER, lane=1)], 0.001)
    assert hint.low() == [None, LATER.available_at, None, CLAIM.available_at]
    hint.claimed(hint.low(), [replace(LATER, lane=3)], 0.001)
    assert hint.low() == [None, LATER.available_at, None, LATER.available_at]


@pytest.mark.req("F23")
@pytest.mark.parametrize(
    ("first", "served", "expected"),
    [(0, [], 0), (5, [], 5), (0, [0, 2], 3), (3, [3, 5], 6), (6, [7, 0], 1), (6, [0, 1], 2), (8, [0], 1), (2, [2], 3)],
)
def test_the_next_claim_begins_after_the_last_lane_served(first: int, served: list[int], expected: int) -> None:
    """Lanes are served round and round, whatever the batch; an empty claim moves nothing."""
    assert next_lane(first, [replace(CLAIM, lane=lane) for lane in served]) == expected
