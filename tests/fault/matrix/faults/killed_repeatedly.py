"""Ten kills in one run, of any process, producers included."""

from __future__ import annotations

from typing import ClassVar, Final

from tests.fault.matrix.fault import Fault
from tests.fault.matrix.stage import CONSUMER, DISPATCHERS

KILLS: Final = 10
FEEDER: Final = "feeder"


class KilledRepeatedly(Fault):
    """Whoever dies is replaced at once, and may be the next to die."""

    name: ClassVar[str] = "killed-repeatedly"

    def strike(self) -> None:
        """Kill ten times."""
        stage = self.stage
        names = (*DISPATCHERS, FEEDER, *((CONSUMER,) if stage.over_http else ()))
        victims = [self.rng.choice(names) for _ in range(KILLS)]
        stage.plan(f"kill {', '.join(victims)}")
        for name in victims:
            stage.burst(100, 30)
            stage.linger(0.0, 0.1)
            if name == FEEDER:
                stage.kill_feeder()
            else:
                stage.staff[name].kill()
                stage.tend()
