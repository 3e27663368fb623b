"""pg_terminate_backend of whatever session is there: dispatchers, listeners, consumers, producers."""

from __future__ import annotations

from typing import ClassVar, Final

from tests.fault.matrix.fault import Fault

PARTS: Final = (
    ("source", "dispatcher"),
    ("source", "dispatcher"),
    ("source", "listener"),
    ("source", "producer"),
    ("sink", "inbox"),
    ("sink", "inbox"),
)
STEPS: Final = (4, 8)


class SessionsTerminated(Fault):
    """Every session of one part at a time, several times over."""

    name: ClassVar[str] = "sessions-terminated"

    def strike(self) -> None:
        """Terminate as the seed says."""
        stage = self.stage
        steps = [self.rng.choice(PARTS) for _ in range(self.rng.randint(*STEPS))]
        stage.plan(f"terminate the sessions of {', '.join(part for _, part in steps)}")
        for side, part in steps:
            stage.burst(150, 50)
            stage.linger(0.0, 0.05)
            (stage.sink if side == "sink" else stage.source).terminate(part, least=0)
