"""The chaos: a plan made from a seed, and the hand that carries it out while the day is being settled.

The plan is fixed before anything runs: who is killed, and when. Some blows are kept for whoever holds leases: they wait
a little until a process has deliveries or works in its hands, because a process that dies idle proves little.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from oceanway.demo.processes import Processes

HOLDER: Final = "holder"
"""Stands in a plan for whoever holds leases at that moment."""
HOLDER_SHARE: Final = 3
"""Each third blow is for a holder."""
HOLDER_SECONDS_MAX: Final = 4.0
BEGIN_AT: Final = 0.05
END_AT: Final = 0.9


@dataclass(frozen=True, slots=True)
class Blow:
    """One line of the plan: who is killed, so many seconds after the first run."""

    at_seconds: float
    target: str


@dataclass(frozen=True, slots=True)
class Incident:
    """Who was killed, when, and what it held."""

    at_seconds: float
    target: str
    effect: str


def make_plan(seed: int, names: Sequence[str], *, kills: int, seconds: float) -> list[Blow]:
    """Spread the blows over the time, each at a moment of its own; everybody is hit before anybody is hit again."""
    rng = random.Random(f"plan/{seed}")
    victims: list[str] = []
    waiting: list[str] = []
    for number in range(kills):
        if number % HOLDER_SHARE == HOLDER_SHARE - 1:
            victims.append(HOLDER)
            continue
        waiting = waiting or rng.sample(list(names), len(names))
        victims.append(waiting.pop())
    slot = seconds * (END_AT - BEGIN_AT) / max(1, kills)
    return [
        Blow(seconds * BEGIN_AT + slot * (number + rng.uniform(0.1, 0.9)), victim)
        for number, victim in enumerate(victims)
    ]


class Chaos:
    """Carries out a plan; `tend` is called again and again and never waits.

    Args:
        holders: who holds leases now, and how many; most first.
    """

    def __init__(
        self, plan: Sequence[Blow], processes: Processes, holders: Callable[[], Sequence[tuple[str, int]]]
    ) -> None:
        self.incidents: list[Incident] = []
        self._waiting = list(plan)
        self._processes = processes
        self._holders = holders
        self._started = time.monotonic()

    @property
    def is_over(self) -> bool:
        """Whether everything planned has been done."""
        return not self._waiting

    def tend(self) -> None:
        """Do what is due."""
        now = time.monotonic() - self._started
        if not self._waiting or now < self._waiting[0].at_seconds:
            return
        blow = self._waiting[0]
        if blow.target != HOLDER:
            self._strike(blow.target, "")
            return
        holders = self._holders()
        if holders:
            name, leases = holders[0]
            self._strike(name, f"with {leases} leases in its hands")
        elif now > blow.at_seconds + HOLDER_SECONDS_MAX:
            self._strike(next(iter(self._processes.members)), "nobody held anything")

    def _strike(self, name: str, effect: str) -> None:
        _ = self._waiting.pop(0)
        if self._processes.kill(name):
            self.incidents.append(Incident(time.monotonic() - self._started, name, effect))
