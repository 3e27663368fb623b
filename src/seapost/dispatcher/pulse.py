"""Signs of life of each loop: alive means that it turns, not that the process is up.

Authority: local monotonic time only.
States: each loop says how soon its next sign is due; a lane that waits for another loop's turn owes none.
Failures: a loop that hangs or died is overdue, and the liveness probe fails.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

SLACK_SECONDS: Final = 15.0


@dataclass(frozen=True, slots=True)
class Turn:
    """How long ago a loop gave its last sign of life, and how old that may become; both in seconds."""

    name: str
    age_seconds: float
    limit_seconds: float

    @property
    def overdue(self) -> bool:
        """Whether the loop hangs."""
        return self.age_seconds > self.limit_seconds


class Pulse:
    """The sign of life of one loop."""

    def __init__(self, name: str, clock: Callable[[], float]) -> None:
        self._name = name
        self._clock = clock
        self._at = clock()
        self._limit = SLACK_SECONDS

    def expect(self, seconds: float) -> None:
        """A sign of life; the next one is due within `seconds` and some slack for a busy machine."""
        self._at = self._clock()
        self._limit = seconds + SLACK_SECONDS

    def rest(self) -> None:
        """The loop waits for another one of this process, or has ended in order."""
        self._at = self._clock()
        self._limit = math.inf

    def turn(self) -> Turn:
        """What the probe sees."""
        return Turn(self._name, self._clock() - self._at, self._limit)
