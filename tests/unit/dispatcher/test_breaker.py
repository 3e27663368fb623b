"""The breaker stops calls to a consumer that is down, probes it with one delivery, and ramps up."""

from __future__ import annotations

import random

import pytest

from seapost.dispatcher.breaker import Breaker, BreakerState
from tests.kit.monotonic import ManualClock

pytestmark = pytest.mark.req("F29")


def _breaker(clock: ManualClock, *, failures_max: int = 3, batch_size: int = 10, seed: int = 1) -> Breaker:
    return Breaker(
        failures_max=failures_max, open_seconds=10.0, batch_size=batch_size, clock=clock, rng=random.Random(seed)
    )


def _fail(breaker: Breaker, times: int) -> None:
    for _ in range(times):
        breaker.failed(breaker.begin())


def test_it_opens_after_failures_in_a_row() -> None:
    """The third failed call of three stops the calls; a success between starts the count again."""
    breaker = _breaker(ManualClock())
    _fail(breaker, 2)
    breaker.succeeded(breaker.begin())
    _fail(breaker, 2)
    assert breaker.state is BreakerState.CLOSED
    assert breaker.allowance() == 10
    _fail(breaker, 1)
    assert breaker.state is BreakerState.OPEN
    assert breaker.allowance() == 0
    assert 10.0 <= breaker.wait_seconds() <= 15.0


def test_one_probe_goes_out_after_the_pause() -> None:
    """Half open, exactly one call with one delivery is allowed until its verdict is known."""
    clock = ManualClock()
    breaker = _breaker(clock)
    _fail(breaker, 3)
    clock.advance(15.0)
    assert breaker.state is BreakerState.HALF_OPEN
    assert breaker.allowance() == 1
    _ = breaker.begin()
    assert breaker.allowance() == 0
    assert breaker.wait_seconds() == float("inf")


def test_the_batch_doubles_after_a_good_probe() -> None:
    """Recovered consumers get 2, 4, 8, then full batches: probe first, then ramp."""
    clock = ManualClock()
    breaker = _breaker(clock)
    _fail(breaker, 3)
    clock.advance(15.0)
    sizes: list[int] = []
    for _ in range(4):
        breaker.succeeded(breaker.begin())
        sizes.append(breaker.allowance())
    assert breaker.state is BreakerState.CLOSED
    assert sizes == [2, 4, 8, 10]


def test_a_failure_while_it_ramps_up_opens_it_again() -> None:
    """A consumer that falls over under the ramp is left alone at once, not after three more failures."""
    clock = ManualClock()
    breaker = _breaker(clock)
    _fail(breaker, 3)
    clock.advance(15.0)
    breaker.succeeded(breaker.begin())
    _fail(breaker, 1)
    assert breaker.state is BreakerState.OPEN


def test_a_failed_probe_opens_it_again() -> None:
    """Nothing but one delivery reaches a consumer that is still down, even when that is its second try."""
    clock = ManualClock()
    breaker = _breaker(clock)
    _fail(breaker, 3)
    clock.advance(15.0)
    breaker.failed(breaker.begin(), lone_retry=True)
    assert breaker.state is BreakerState.OPEN


def test_verdicts_of_earlier_calls_do_not_count() -> None:
    """A call begun before the breaker opened neither closes it nor counts when it ends."""
    clock = ManualClock()
    breaker = _breaker(clock)
    early = breaker.begin()
    _fail(breaker, 3)
    breaker.succeeded(early)
    assert breaker.state is BreakerState.OPEN
    breaker.failed(early)
    clock.advance(15.0)
    assert breaker.allowance() == 1


def test_a_probe_without_a_verdict_may_be_repeated() -> None:
    """Nothing was due, or the call was taken back: the next call is the probe."""
    clock = ManualClock()
    breaker = _breaker(clock)
    _fail(breaker, 3)
    clock.advance(15.0)
    breaker.abandoned(breaker.begin())
    assert breaker.allowance() == 1


def test_one_bad_delivery_does_not_stop_the_others() -> None:
    """A delivery that fails again and again alone accuses itself, not the consumer."""
    breaker = _breaker(ManualClock())
    for _ in range(20):
        breaker.failed(breaker.begin(), lone_retry=True)
    assert breaker.state is BreakerState.CLOSED


def test_dispatchers_do_not_probe_in_step() -> None:
    """The pause is jittered, so that ten dispatchers send ten probes at ten times."""
    waits: set[float] = set()
    for seed in range(10):
        breaker = _breaker(ManualClock(), seed=seed)
        _fail(breaker, 3)
        waits.add(breaker.wait_seconds())
    assert len(waits) == 10


@pytest.mark.parametrize("answer", ["succeeded", "failed", "abandoned"])
def test_who_waits_for_the_probe_hears_of_its_answer(answer: str) -> None:
    """Whatever the probe's end is, it is told once, and only when somebody was told to wait for it."""
    clock = ManualClock()
    told: list[BreakerState] = []
    breaker = Breaker(
        failures_max=1,
        open_seconds=10.0,
        batch_size=10,
        clock=clock,
        rng=random.Random(1),
        on_answer=lambda: told.append(breaker.state),
    )
    _fail(breaker, 1)
    for waits in (False, True):
        clock.advance(15.0)
        epoch = breaker.begin()
        if waits:
            assert breaker.wait_seconds() == float("inf")
        getattr(breaker, answer)(epoch)
        assert len(told) == waits
        _fail(breaker, 1)
    assert told == [
        {"succeeded": BreakerState.CLOSED, "failed": BreakerState.OPEN, "abandoned": BreakerState.HALF_OPEN}[answer]
    ]
