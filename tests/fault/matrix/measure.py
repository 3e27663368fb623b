"""How much of the machine others take while a round is played, so that its bounds can allow for it.

A bound in seconds is meant for a machine that has time for us. Where other programs use part of the processors, the
same work takes longer by that share, and the bounds of a round are multiplied by it. Read from `/proc`; elsewhere the
factor is 1.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")
SLOWDOWN_MAX: Final = 20.0
SEGMENT_TICKS_MIN: Final = 40
"""A share of less time than this, summed over the processors, is mostly rounding."""
_OWN_FIELDS: Final = slice(11, 15)
"""utime, stime, cutime and cstime in `/proc/<pid>/stat`, counted after the name of the program."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of one round, in seconds on an idle machine.

    Attributes:
        lease_seconds: the lease of every dispatcher of the round.
        recovery_seconds: what recovery may take beyond one lease (R6).
        grace_seconds: the time to drain, to give back and to hang up that the dispatchers are configured with.
    """

    lease_seconds: float
    recovery_seconds: float
    grace_seconds: float


@dataclass(frozen=True, slots=True)
class Ticks:
    """Processor time so far: of all processors, of it busy, and of it ours."""

    total: int
    busy: int
    own: int


def slowdown_between(before: Ticks, after: Ticks) -> float:
    """All processor time of an interval over what others left of it; at least 1.

    Where the clocks contradict each other, as after the death of a server whose time is forgotten, the factor is rather
    too large than too small.
    """
    total = after.total - before.total
    others = (after.busy - before.busy) - max(0, after.own - before.own)
    if total < SEGMENT_TICKS_MIN or others <= 0:
        return 1.0
    return min(SLOWDOWN_MAX, total / max(1, total - others))


class Machine:
    """The machine during one round.

    Args:
        roots: processes that are ours with all their descendants.

    Attributes:
        slowdown: the largest factor of any interval between two marks.
    """

    def __init__(self, roots: Callable[[], Iterable[int]]) -> None:
        self._roots = roots
        self._last = self._read()
        self.slowdown = 1.0

    def mark(self) -> None:
        """End one interval and begin the next."""
        now = self._read()
        self.slowdown = max(self.slowdown, slowdown_between(self._last, now))
        self._last = now

    def skip(self) -> None:
        """Begin the next interval without a look at this one: a server has died, and its processor time with it."""
        self._last = self._read()

    def _read(self) -> Ticks:
        try:
            first = (PROC / "stat").read_text(encoding="ascii").split("\n", 1)[0]
        except OSError:
            return Ticks(0, 0, 0)
        user, nice, system, idle, iowait, *rest = map(int, first.split()[1:9])
        busy = user + nice + system + sum(rest)
        return Ticks(busy + idle + iowait, busy, _ticks_below(self._roots()))


def _ticks_below(roots: Iterable[int]) -> int:
    """Processor time of these processes and their descendants, those that have ended included."""
    own: dict[int, int] = {}
    children: defaultdict[int, list[int]] = defaultdict(list)
    for folder in PROC.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            fields = (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:  # ended meanwhile
            continue
        process_id = int(folder.name)
        children[int(fields[1])].append(process_id)
        own[process_id] = sum(map(int, fields[_OWN_FIELDS]))
    found = 0
    waiting = list(dict.fromkeys((os.getpid(), *roots)))
    seen: set[int] = set()
    while waiting:
        process_id = waiting.pop()
        if process_id not in seen:
            seen.add(process_id)
            found += own.get(process_id, 0)
            waiting += children[process_id]
    return found
