"""Processes whose own clock is an hour off, and a death among them (F19)."""

from __future__ import annotations

from typing import ClassVar, Final

from tests.fault.matrix.fault import Fault
from tests.fault.matrix.stage import DISPATCHERS
from tests.kit.orders import OrderOptions

HOUR_SECONDS: Final = 3_600.0


class ClockWrong(Fault):
    """Leases and retries go by the database's clock, so who is an hour off neither steals nor waits."""

    name: ClassVar[str] = "clock-wrong"

    def start(self) -> None:
        """Shift the clocks as the seed says, at least one of them."""
        stage = self.stage
        wrong = (-HOUR_SECONDS, HOUR_SECONDS)
        shifts = [self.rng.choice(wrong), *self.rng.choices((*wrong, 0.0), k=2)]
        self.rng.shuffle(shifts)
        first, second, consumer = (OrderOptions(clock_shift_seconds=shift) for shift in shifts)
        stage.plan(f"clocks wrong by {shifts[0]:+g}, {shifts[1]:+g} and (consumer) {shifts[2]:+g} s")
        stage.start_crew(first=first, second=second, consumer=consumer)

    def strike(self) -> None:
        """Kill one dispatcher: a process with a wrong clock has to recover from it, or is recovered from."""
        name = self.rng.choice(DISPATCHERS)
        seconds = self.stage.linger(0.0, 0.2)
        self.stage.plan(f"kill {name} {seconds:.3f} s into the work")
        self.stage.staff[name].kill()
        self.stage.tend()
