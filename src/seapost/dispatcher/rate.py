"""A token bucket per destination: at most so many deliveries per second, in bursts of at most one second. Pure.

Authority: this process only; several dispatchers of a destination share its limit by configuration.
States: how many tokens there are, as of when.
Failures: a clock that stands still gives no tokens; it is monotonic, so it never takes any.
"""

from __future__ import annotations

from collections.abc import Callable


class TokenBucket:
    """Args: rate_per_second: tokens that come in per second; clock: monotonic seconds."""

    def __init__(self, *, rate_per_second: float, clock: Callable[[], float]) -> None:
        self._rate = rate_per_second
        self._burst = max(1.0, rate_per_second)
        self._clock = clock
        self._tokens = self._burst
        self._counted_at = clock()

    def available(self) -> int:
        """Whole deliveries that may go now."""
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._counted_at) * self._rate)
        self._counted_at = now
        return int(self._tokens + 1e-9)

    def take(self, count: int) -> None:
        """Spend tokens for deliveries that go; never more than `available` said."""
        self._tokens -= count

    def wait_seconds(self) -> float:
        """Time until one more delivery may go."""
        return 0.0 if self.available() >= 1 else (1.0 - self._tokens) / self._rate
