"""The token bucket lets at most so many deliveries go, whatever the rhythm of asking."""

from __future__ import annotations

import pytest

from seapost.dispatcher.rate import TokenBucket
from tests.kit.monotonic import ManualClock


def test_a_burst_is_at_most_one_second() -> None:
    """However long nothing went, no more than one second's worth goes at once."""
    clock = ManualClock()
    bucket = TokenBucket(rate_per_second=5.0, clock=clock)
    clock.advance(3_600.0)
    assert bucket.available() == 5
    bucket.take(5)
    assert bucket.available() == 0
    assert bucket.wait_seconds() == pytest.approx(0.2)


def test_the_rate_holds_over_time() -> None:
    """Asked every hundredth of a second for ten seconds, it lets 50 go, and the burst at the start."""
    clock = ManualClock()
    bucket = TokenBucket(rate_per_second=5.0, clock=clock)
    gone = 0
    for _ in range(1_000):
        number = bucket.available()
        bucket.take(number)
        gone += number
        clock.advance(0.01)
    assert 54 <= gone <= 55


def test_a_slow_rate_still_lets_one_go() -> None:
    """Below one per second a single delivery may go, and then the wait is known."""
    clock = ManualClock()
    bucket = TokenBucket(rate_per_second=0.1, clock=clock)
    assert bucket.available() == 1
    bucket.take(1)
    assert bucket.wait_seconds() == pytest.approx(10.0)
    clock.advance(10.0)
    assert bucket.available() == 1
