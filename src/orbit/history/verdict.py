"""The invariants, and what a check of them came to."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

VIOLATIONS_KEPT_MAX: Final = 20
"""Violations kept for each invariant; all are counted."""


class Invariant(StrEnum):
    """What a history must keep. H10 and H11 speak of projections, which Orbit does not have."""

    H1 = "H1"
    H2 = "H2"
    H3 = "H3"
    H4 = "H4"
    H5 = "H5"
    H6 = "H6"
    H7 = "H7"
    H8 = "H8"
    H9 = "H9"
    H12 = "H12"
    H13 = "H13"

    @property
    def promise(self) -> str:
        """The invariant as a sentence."""
        return PROMISES[self]


PROMISES: Final[dict[Invariant, str]] = {
    Invariant.H1: "each result has one sequence; those of a namespace have no hole and never change content",
    Invariant.H2: "a result confirmed before another began has the smaller sequence",
    Invariant.H3: "a subscription gets exactly the matching results from its start to its cursor, each once",
    Invariant.H4: "a window never holds more than max_pending deliveries",
    Invariant.H5: "a delivery has one live lease at a time, and each has the next epoch",
    Invariant.H6: "only the newest proof acknowledges, once, and nothing is delivered after it",
    Invariant.H7: "a repeated request gets the receipt of the first, byte for byte",
    Invariant.H8: "whatever was delivered or confirmed is in the journal",
    Invariant.H9: "no delivery comes back before its lease and its backoff are over",
    Invariant.H12: "nothing is leased between the answers to a pause and the next resume",
    Invariant.H13: "each change of state has exactly one row in the audit log",
}


@dataclass(frozen=True, slots=True)
class Violation:
    """One promise that this history breaks; `subject` is the id of what broke it."""

    invariant: Invariant
    subject: str
    detail: str


@dataclass(slots=True)
class Verdict:
    """What the checks found.

    Attributes:
        checked: how many things each invariant was held against; 0 is no proof, the history holds nothing for it.
        violations: the first ones of each invariant.
        found: how many there are in all, by invariant.
        lines, open_operations, aged: size of the history, operations without an end, leases aged by hand.
    """

    lines: int = 0
    open_operations: int = 0
    aged: int = 0
    checked: dict[Invariant, int] = field(default_factory=lambda: dict.fromkeys(Invariant, 0))
    found: dict[Invariant, int] = field(default_factory=lambda: dict.fromkeys(Invariant, 0))
    violations: list[Violation] = field(default_factory=list[Violation])

    @property
    def holds(self) -> bool:
        """Whether nothing is broken."""
        return not any(self.found.values())

    def count(self, invariant: Invariant, number: int = 1) -> None:
        """Note that so many things were held against an invariant."""
        self.checked[invariant] += number

    def refuse(self, invariant: Invariant, subject: str, detail: str) -> None:
        """Note a violation."""
        self.found[invariant] += 1
        if self.found[invariant] <= VIOLATIONS_KEPT_MAX:
            self.violations.append(Violation(invariant, subject, detail))

    def expect(self, holds: bool, invariant: Invariant, subject: str, detail: str) -> None:  # noqa: FBT001 - the point
        """Hold one thing against an invariant."""
        self.count(invariant)
        if not holds:
            self.refuse(invariant, subject, detail)
