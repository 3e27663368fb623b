"""How long to wait before the next try: exponential bounds, full jitter, and what `Retry-After` asks for.

Jitter is drawn below the bound at every step, at the cap and at the first step too, so that clients that were cut off
together do not come back together (F59, SDK-14).
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Final

BOUND_SECONDS_FIRST: Final = 0.5
BOUND_SECONDS_MAX: Final = 30.0
STABLE_SECONDS: Final = 60.0


class Backoff:
    """Waits between 0 and a bound that doubles with every failure.

    Args:
        first: the first bound; `most` is the last, both in seconds.
        draw: gives a number from 0 to 1, uniformly.
    """

    def __init__(
        self,
        *,
        first: float = BOUND_SECONDS_FIRST,
        most: float = BOUND_SECONDS_MAX,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._first = self._bound = first
        self._most = most
        self._draw = draw

    def after_failure(self) -> float:
        """How long to wait after one more failure."""
        wait = self._draw() * self._bound
        self._bound = min(self._bound * 2, self._most)
        return wait

    def reset(self) -> None:
        """Things have gone well for long enough: the next failure is a first one."""
        self._bound = self._first


def retry_after(headers: Mapping[str, str]) -> float:
    """Seconds that the server asks to wait, given as a number or as a date; 0 where it does not ask."""
    text = headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdecimal():
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, TypeError):
        return 0.0
