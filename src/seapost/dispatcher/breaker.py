"""The circuit breaker of one destination: stop knocking, probe with one delivery, then ramp up (F29). Pure.

Authority: only whole calls that fail count; a call that brings one answer of another kind is a success.
States: closed → (failures in a row) → open → (time) → half open, one probe of one delivery → closed again, where the
batch doubles with each success until it is full; a failure before that opens it again. Who was told to wait for the
probe is told when its answer is in, whatever it is.
Failures: a verdict of a call begun before the last change is ignored; it says nothing about now.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from enum import StrEnum
from typing import Final

OPEN_JITTER: Final = 0.5


class BreakerState(StrEnum):
    """Whether calls are made."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Breaker:
    """Decides how many deliveries the next call may carry.

    Args:
        failures_max: failed calls in a row that open it.
        open_seconds: shortest pause; up to half as much again is added at random, so that several dispatchers
            do not probe in step.
        batch_size: full batch.
        clock: monotonic seconds.
        on_answer: called when the probe that somebody waits for has ended.
    """

    def __init__(
        self,
        *,
        failures_max: int,
        open_seconds: float,
        batch_size: int,
        clock: Callable[[], float],
        rng: random.Random,
        on_answer: Callable[[], None] = lambda: None,
    ) -> None:
        self._failures_max = failures_max
        self._open_seconds = open_seconds
        self._batch_size = batch_size
        self._clock = clock
        self._rng = rng
        self._on_answer = on_answer
        self._failures = 0
        self._limit = batch_size
        self._open_until: float | None = None
        self._probing = False
        self._awaited = False
        self._epoch: int = 0

    @property
    def state(self) -> BreakerState:
        """Closed while it ramps up, too: calls are made."""
        if self._open_until is None:
            return BreakerState.CLOSED
        return BreakerState.OPEN if self._clock() < self._open_until else BreakerState.HALF_OPEN

    def allowance(self) -> int:
        """Most deliveries of the next call; 0 while it is open or the probe is out."""
        if self._open_until is None:
            return self._limit
        return 1 if self._clock() >= self._open_until and not self._probing else 0

    def wait_seconds(self) -> float:
        """Time until a probe is allowed; infinite while the probe is out: its verdict comes first, with `on_answer`."""
        if self._open_until is None:
            return 0.0
        self._awaited = self._probing
        return float("inf") if self._probing else max(0.0, self._open_until - self._clock())

    def begin(self) -> int:
        """A call starts; give what is returned to `succeeded`, `failed` or `abandoned`."""
        if self._open_until is not None:
            self._probing = True
        return self._epoch

    def succeeded(self, epoch: int) -> None:
        """The consumer answered."""
        if epoch != self._epoch:
            return
        self._failures = 0
        if self._open_until is not None:
            self._epoch += 1
            self._open_until = None
            self._limit = 1
        self._limit = min(self._batch_size, self._limit * 2)
        self._answered()

    def failed(self, epoch: int, *, lone_retry: bool = False) -> None:
        """The call as a whole failed.

        A delivery that fails again, alone, accuses itself: while the breaker is closed it does not count.
        """
        if epoch != self._epoch:
            return
        recovering = self._open_until is not None or self._limit < self._batch_size
        if lone_retry and not recovering:
            return
        self._failures += 1
        if recovering or self._failures >= self._failures_max:
            self._epoch += 1
            self._failures = 0
            self._open_until = self._clock() + self._open_seconds * self._rng.uniform(1.0, 1.0 + OPEN_JITTER)
            self._answered()

    def abandoned(self, epoch: int) -> None:
        """The call ended without a verdict: nothing was sent, or we took it back."""
        if epoch == self._epoch:
            self._answered()

    def _answered(self) -> None:
        """No probe is out any more; tell who was told to wait for it."""
        awaited, self._probing, self._awaited = self._awaited, False, False
        if awaited:
            self._on_answer()
