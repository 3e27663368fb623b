"""Where a worker's claim begins to look: a hint per queue that spares the walk over tasks taken long ago.

A task that was taken leaves an entry in the index of ready tasks until vacuum removes it, which an old snapshot
prevents. So a claim starts where the last one found its first task (TSK-09, in the manner of LSE-35). A task whose
submission committed late may lie before that, so a claim without bound comes at least every two seconds, and at once
when a bounded one found nothing, then at most once per second. Nothing here is proof of anything.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orbit.model.limits import UNBOUNDED_CLAIM_SECONDS, UNBOUNDED_CLAIM_SECONDS_MIN

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

QUEUES_MAX: Final = 1024
"""Queues that are remembered; the one not used for the longest time is forgotten, which costs one unbounded claim."""

Key = tuple[bytes, str]
"""Digest of the worker's token and name of the queue."""


@dataclass(slots=True)
class _Floor:
    available_from: datetime
    unbounded_at: float


class ClaimFloors:
    """The bounds of one process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._floors: OrderedDict[Key, _Floor] = OrderedDict()

    def bound(self, key: Key) -> datetime | None:
        """From which `available_at` on to look; None for everything."""
        floor = self._floors.get(key)
        if floor is None or self._clock() - floor.unbounded_at >= UNBOUNDED_CLAIM_SECONDS:
            return None
        return floor.available_from

    def may_look_again(self, key: Key) -> bool:
        """Whether a bounded claim that found nothing may be repeated without bound at once."""
        floor = self._floors.get(key)
        return floor is None or self._clock() - floor.unbounded_at >= UNBOUNDED_CLAIM_SECONDS_MIN

    def note(self, key: Key, *, bounded: bool, first: datetime | None) -> None:
        """Remember a claim: whether it had a bound, and when the first task that it took became available."""
        floor = self._floors.get(key)
        if first is None:
            if floor is not None and not bounded:
                floor.unbounded_at = self._clock()
            return
        unbounded_at = floor.unbounded_at if bounded and floor is not None else self._clock()
        self._floors[key] = _Floor(first, unbounded_at)
        self._floors.move_to_end(key)
        if len(self._floors) > QUEUES_MAX:
            self._floors.popitem(last=False)
