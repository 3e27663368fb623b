"""What the doctor says: one finding per thing that differs, is wrong, deserves a look, or could not be seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from seapost.database.doctor.snapshot import Json

MISSING: Final = "missing"
PRESENT: Final = "present"
NOT_THERE: Final = "not there"


class FindingKind(StrEnum):
    """How much a finding matters."""

    DRIFT = "drift"
    """The database is not what this release installs."""
    DEFECT = "defect"
    """A promise of Seapost is broken, or cannot hold with this server."""
    WARNING = "warning"
    """It works, but not as safely as it could."""
    UNSEEN = "unseen"
    """This role may not look, so nothing is known."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding.

    Attributes:
        subject: the object, with its part: `table event, trigger keep`.
        about: the property that differs; empty when the object itself is missing or unexpected.
        expected, found: both sides of a difference; None is a property at its usual value.
        text: the whole of it as a sentence without a stop.
    """

    kind: FindingKind
    subject: str
    text: str
    about: str = ""
    expected: Json = None
    found: Json = None

    def to_json(self) -> dict[str, object]:
        """The finding for a program."""
        return {
            "kind": str(self.kind),
            "subject": self.subject,
            "about": self.about,
            "expected": self.expected,
            "found": self.found,
            "text": self.text,
        }


@dataclass(frozen=True, slots=True)
class Examination:
    """Everything that was found, and by what measure.

    Attributes:
        guard_level: the level that the database was compared at.
        objects: how many objects and parts were compared.
    """

    guard_level: str
    objects: int
    findings: Sequence[Finding]

    def of(self, kind: FindingKind) -> list[Finding]:
        """The findings of one kind."""
        return [one for one in self.findings if one.kind is kind]


def drift(subject: str, about: str, expected: Json, found: Json) -> Finding:
    """A difference between what is installed and what should be."""
    if not about:
        text = f"{subject}: {found if expected == PRESENT else 'is not part of this release'}"
    else:
        text = f"{subject}: {about} should be {spoken(expected)} and is {spoken(found)}"
    return Finding(FindingKind.DRIFT, subject, text, about, expected, found)


def spoken(value: Json) -> str:
    """One side of a difference for a person."""
    match value:
        case None:
            return "unset"
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(spoken(one) for one in value) or "none"
        case dict():
            return ", ".join(f"{name} {spoken(one)}" for name, one in value.items())
        case _:
            return str(value)
