"""The loop that asks for work until there is none, rests, and asks again.

States: working (a step did something: the next follows at once) → idle (a step did nothing: the rest doubles up to a
limit) → failing (a step raised: logged, and the rest doubles likewise) → stopped. Resting is waiting for the order to
stop, so that the order is carried out at once; a running step finishes first. What a step holds is leased, so a
process that dies instead of stopping loses nothing (AMB-45).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Event, Thread
from typing import Final

from seapost.model.errors import InvalidSetting, Retry
from seapost.telemetry.logging import get_logger

JITTER: Final = 0.25

_log = get_logger("oceanway.works.loop")

Step = Callable[[int], int]
"""Does at most so many works; returns how many it did. 0 lets the loop rest."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How a loop works and rests.

    Attributes:
        batch: works of one step.
        idle_seconds_min, idle_seconds_max: the first rest when there is nothing to do, and the longest.
        failure_seconds_min, failure_seconds_max: the same after a step that raised.
    """

    batch: int = 50
    idle_seconds_min: float = 0.02
    idle_seconds_max: float = 1.0
    failure_seconds_min: float = 0.1
    failure_seconds_max: float = 5.0

    def __post_init__(self) -> None:
        """Refuse a pace that never works or never rests."""
        if self.batch < 1:
            raise InvalidSetting(f"A step does at least 1 work, not {self.batch}.")
        for name, low, high in (
            ("idle", self.idle_seconds_min, self.idle_seconds_max),
            ("failure", self.failure_seconds_min, self.failure_seconds_max),
        ):
            if not 0 < low <= high:
                raise InvalidSetting(f"{name}_seconds: 0 < min <= max, not {low} and {high}.")


class WorkLoop:
    """Runs one step again and again in the thread that calls `run`.

    Args:
        name: for logs and threads.
        step: see `Step`; what it raises never ends the loop.
    """

    def __init__(self, name: str, step: Step, pace: Pace | None = None) -> None:
        self.name = name
        self._step = step
        self._pace = pace or Pace()
        self.done = 0
        self.failures = 0

    def run(self, stop: Event) -> None:
        """Work until `stop` is set."""
        pace = self._pace
        idle, failing = pace.idle_seconds_min, pace.failure_seconds_min
        while not stop.is_set():
            count = self._stepped()
            if count is None:
                _ = stop.wait(_jittered(failing))
                failing = min(pace.failure_seconds_max, failing * 2)
                continue
            failing = pace.failure_seconds_min
            if count:
                self.done += count
                idle = pace.idle_seconds_min
                continue
            _ = stop.wait(_jittered(idle))
            idle = min(pace.idle_seconds_max, idle * 2)

    def _stepped(self) -> int | None:
        """What one step did; None when it raised."""
        try:
            return self._step(self._pace.batch)
        except Retry as error:
            _log.warning("step_postponed", loop=self.name, code=error.code, reason=error.message)
        except Exception as error:  # noqa: BLE001 - a lost database or one bad work must not end the worker
            _log.error("step_failed", loop=self.name, exc_info=error)
        self.failures += 1
        return None


def run_loops(loops: Sequence[WorkLoop], stop: Event) -> None:
    """Run several loops, each in a thread of its own, until `stop` is set and every running step has ended."""
    threads = [Thread(target=loop.run, args=(stop,), name=f"oceanway-{loop.name}", daemon=True) for loop in loops]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _jittered(seconds: float) -> float:
    """A little less or more, so that workers that failed together do not come back together."""
    return seconds * random.uniform(1 - JITTER, 1 + JITTER)
