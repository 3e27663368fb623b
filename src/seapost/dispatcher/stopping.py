"""The order to stop, as every loop sees it (F16).

Authority: `Dispatcher.stop`.
States: running → stopping (claim nothing, let calls finish) → hurrying (cancel calls, give back what is left).
Failures: none; a step is never taken back.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable


class Stopping:
    """Args: give_back_seconds: how long settling may go on once it hurries; clock: monotonic seconds."""

    def __init__(self, *, give_back_seconds: float, clock: Callable[[], float]) -> None:
        self._give_back_seconds = give_back_seconds
        self._clock = clock
        self.requested = asyncio.Event()
        self.hurried = asyncio.Event()
        self.deadline = math.inf

    def request(self) -> None:
        """Claim nothing from now on."""
        self.requested.set()

    def hurry(self) -> None:
        """Cancel the calls that run and give their deliveries back."""
        if not self.hurried.is_set():
            self.requested.set()
            self.deadline = self._clock() + self._give_back_seconds
            self.hurried.set()
