"""SIGKILL of dispatchers in the middle of their work (F15)."""

from __future__ import annotations

from typing import ClassVar, Final

from tests.fault.matrix.fault import Fault
from tests.fault.matrix.stage import DISPATCHERS
from tests.kit.crash import Point, Trap

OVER_HTTP: Final = (
    Point.CLAIM_COMMITTED,
    Point.CALL_STARTED,
    Point.ANSWERED,
    Point.SETTLE_UNSENT,
    Point.SETTLE_COMMITTED,
)
IN_PROCESS: Final = (*OVER_HTTP, Point.RECEIVED, Point.RECEIPT_WRITTEN, Point.EFFECT_WRITTEN, Point.EFFECT_COMMITTED)
NTH_MAX: Final = 3


class DispatcherKilled(Fault):
    """One dies at a point of the walk, or one or both at any moment; the dead are replaced at once."""

    name: ClassVar[str] = "dispatcher-killed"

    def strike(self) -> None:
        """Kill at the point or the moment that the seed has chosen."""
        stage = self.stage
        way = self.rng.choice(["at a point", "one at any moment", "both at any moment"])
        if way == "at a point":
            trap = Trap(self.rng.choice(OVER_HTTP if stage.over_http else IN_PROCESS), self.rng.randint(1, NTH_MAX))
            stage.plan(f'kill a third dispatcher at "{trap.point.value}", time {trap.nth}')
            victim = stage.deliverer("victim", trap=trap)
            stage.await_true(lambda: not victim.lives, "the death of the victim", stage.burst)
            return
        names = DISPATCHERS if way.startswith("both") else (self.rng.choice(DISPATCHERS),)
        seconds = stage.linger(0.0, 0.2)
        stage.plan(f"kill {' and '.join(names)} {seconds:.3f} s into the work")
        for name in names:
            stage.staff[name].kill()
        stage.tend()
