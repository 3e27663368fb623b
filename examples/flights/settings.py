"""What a run of the demo is told, and what follows from it: pace, chaos, leases."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from examples.flights.chaos import Measure
from examples.flights.data import JANUARY, Selection

FLIGHTS_PER_SECOND: Final = 850
SECONDS_MIN: Final = 7.0
FLIGHTS_PER_KILL: Final = 2_450
LEASE_SECONDS: Final = 2.5
CALL_SECONDS_MAX: Final = 4.0
BATCH_SIZE: Final = 250
SEED_MAX: Final = 2**63 - 1


class InvalidChoice(Exception):
    """A variable of the demo holds something that it cannot be."""


@dataclass(frozen=True, slots=True)
class DemoSettings:
    """The demo's variables.

    Attributes:
        selection: FLIGHTS, which flights.
        seed: SEED, decides every random choice of the chaos and of the producer.
        server_dsn: SEAPOST_DEMO_DSN, a server on which we may create roles and databases; absent, an embedded one.
    """

    selection: Selection
    seed: int
    server_dsn: str | None = None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> DemoSettings:
        """Read the variables.

        Raises:
            InvalidChoice: one is wrong; the message says which and what may stand there.
        """
        try:
            selection = Selection.parse(environment.get("FLIGHTS") or JANUARY)
        except ValueError as error:
            raise InvalidChoice(str(error)) from None
        seed = environment.get("SEED") or "1"
        if not (seed.isascii() and seed.isdecimal() and int(seed) <= SEED_MAX):
            raise InvalidChoice(f"SEED is a whole number from 0 to {SEED_MAX}, not {seed!r}")
        return cls(selection, int(seed), environment.get("SEAPOST_DEMO_DSN") or None)


def measure_for(flights: int) -> Measure:
    """How long so many flights are appended, and what is done to them in that time."""
    seconds = max(SECONDS_MIN, flights / FLIGHTS_PER_SECOND)
    kills = max(2, round(flights / FLIGHTS_PER_KILL))
    return Measure(seconds=seconds, kills=kills, halts=max(1, kills // 5), terminations=max(1, kills // 4))
