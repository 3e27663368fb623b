"""Alive means that each loop turns, not that the process is up."""

from __future__ import annotations

from seapost.dispatcher.pulse import SLACK_SECONDS, Pulse
from tests.kit.monotonic import ManualClock


def test_a_loop_that_hangs_is_overdue() -> None:
    """A loop that said 30 seconds is overdue after these and the slack, and alive again with its next turn."""
    clock = ManualClock()
    pulse = Pulse("billing/1", clock)
    pulse.expect(30.0)
    clock.advance(30.0 + SLACK_SECONDS)
    assert not pulse.turn().overdue
    clock.advance(0.1)
    assert pulse.turn().overdue
    pulse.expect(30.0)
    assert not pulse.turn().overdue
    assert pulse.turn().age_seconds == 0.0


def test_a_lane_that_waits_for_another_owes_no_sign() -> None:
    """Only the holder of the claim turn must turn; the lanes behind it may wait for ever."""
    clock = ManualClock()
    pulse = Pulse("billing/2", clock)
    pulse.rest()
    clock.advance(1_000_000.0)
    assert not pulse.turn().overdue


def test_a_loop_that_never_started_is_overdue() -> None:
    """A loop that gave no sign at all after its creation is missed as well."""
    clock = ManualClock()
    pulse = Pulse("renew", clock)
    clock.advance(SLACK_SECONDS + 0.1)
    assert pulse.turn().overdue
