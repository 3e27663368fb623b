"""SIGSTOP of a dispatcher or a consumer past its lease, then SIGCONT: a zombie that wakes up (F14)."""

from __future__ import annotations

from typing import ClassVar

from tests.fault.matrix.fault import Fault
from tests.fault.matrix.stage import CONSUMER, DISPATCHERS, LEASE_SECONDS, Stage
from tests.kit.crash import Blow, Point, Trap
from tests.kit.processes import Worker

POINTS = (Point.CLAIM_COMMITTED, Point.CALL_STARTED, Point.ANSWERED, Point.SETTLE_UNSENT)
SLEEP_MAX_SECONDS = 2.0


class DispatcherFrozen(Fault):
    """A dispatcher sleeps until others have done its work; its late word must change nothing."""

    name: ClassVar[str] = "dispatcher-frozen"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._zombie: Worker | None = None

    def strike(self) -> None:
        """Freeze at a point or at any moment; a frozen consumer, whom nobody replaces, wakes before this returns."""
        stage = self.stage
        ways = ["at a point", "at any moment", *(["the consumer"] if stage.over_http else [])]
        match self.rng.choice(ways):
            case "at a point":
                trap = Trap(self.rng.choice(POINTS), self.rng.randint(1, 2), Blow.STOP)
                stage.plan(f'freeze a third dispatcher at "{trap.point.value}", time {trap.nth}')
                self._zombie = stage.deliverer("zombie", trap=trap)
                stage.await_true(lambda: self._zombie and self._zombie.is_stopped, "a frozen zombie", stage.burst)
            case "at any moment":
                name = self.rng.choice(DISPATCHERS)
                seconds = stage.linger(0.0, 0.2)
                stage.plan(f"freeze {name} {seconds:.3f} s into the work")
                self._zombie = stage.staff[name]
                self._zombie.stop()
            case _:
                stage.staff[CONSUMER].stop()
                seconds = stage.linger(LEASE_SECONDS, SLEEP_MAX_SECONDS)
                stage.plan(f"freeze the consumer for {seconds:.3f} s")
                stage.staff[CONSUMER].wake()

    def mend(self) -> None:
        """Wake the zombie; a third dispatcher then leaves, so that the crew is the same as before."""
        if self._zombie is not None:
            self._zombie.wake()
            if self._zombie not in self.stage.staff.values():
                assert self._zombie.end() == 0, str(self._zombie)
        super().mend()
