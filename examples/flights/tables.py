"""The two tables that everything is about: once as the consumers kept them, once as the file says they must be."""

from __future__ import annotations

from dataclasses import dataclass, field

NO_TAILNUM = "(none)"
"""Key of the row for flights whose aircraft is not recorded."""


@dataclass(frozen=True, slots=True)
class Punctuality:
    """What one carrier's flights came to.

    Attributes:
        flights: flights that left.
        on_time: of these, the ones that arrived at most 15 minutes late.
        delay_minutes: sum of the arrival delays; early arrivals count below zero.
        cancelled: flights that never left.
    """

    flights: int = 0
    on_time: int = 0
    delay_minutes: int = 0
    cancelled: int = 0


@dataclass(frozen=True, slots=True)
class Mileage:
    """What one aircraft flew: flights that left, and their distance in miles."""

    flights: int = 0
    miles: int = 0


@dataclass(frozen=True, slots=True)
class Tables:
    """Punctuality by carrier code, mileage by tail number."""

    punctuality: dict[str, Punctuality] = field(default_factory=dict[str, Punctuality])
    mileage: dict[str, Mileage] = field(default_factory=dict[str, Mileage])
