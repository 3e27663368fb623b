"""What a fault is: where its databases lie, who works, what is done to them, and how the crew is whole again."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from typing import ClassVar

from tests.fault.matrix.stage import ALL_SHARED, Homes, Stage


class Fault(ABC):
    """One fault in one round; every choice comes from the round's seeded random numbers.

    Attributes:
        name: as on the command line.
    """

    name: ClassVar[str]

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.rng = stage.rng

    @classmethod
    def homes(cls, rng: random.Random) -> Homes:
        """Where the databases lie; asked before there is a stage."""
        del rng
        return ALL_SHARED

    @classmethod
    def gap(cls) -> str | None:
        """Why this machine cannot do the fault; None when it can."""
        return None

    def start(self) -> None:
        """Start the crew, with whatever has to stand between the processes."""
        self.stage.start_crew()

    @abstractmethod
    def strike(self) -> None:
        """Do the fault and end it: on return nothing is in the way of recovery any more."""

    def mend(self) -> None:
        """After recovery: the crew is whole again and nobody is frozen; called once."""
        self.stage.tend()
