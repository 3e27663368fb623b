"""A monotonic clock that a test moves by hand, for pure pieces that measure local durations."""

from __future__ import annotations


class ManualClock:
    """Seconds that pass only when the test says so."""

    def __init__(self) -> None:
        self._now = 1_000.0

    def __call__(self) -> float:
        """The time."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._now += seconds
