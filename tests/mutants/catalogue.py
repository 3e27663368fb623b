"""The catalogue of mutants: which rule each one breaks, by which edit of the source, and which tests must notice.

The entries are data, in the TOML files beside this file. An edit replaces text that stands exactly
once in its file, so that a mutant cannot quietly stop being one when the source moves on.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
SOURCE: Final = ROOT / "src"
FILES: Final = ("sql.toml", "python.toml", "orbit.toml", "oceanway.toml")


class StaleMutant(Exception):
    """The text that a mutant replaces does not stand exactly once in its file."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One planted bug.

    Attributes:
        name: short, unique, kebab-case.
        breaks: the rule that no longer holds, as one sentence.
        file: the changed file, relative to `src`.
        find: text that stands exactly once in it.
        replace: what stands there in the mutant.
        killers: pytest node ids; the mutant is killed when one of these tests fails.
    """

    name: str
    breaks: str
    file: str
    find: str
    replace: str
    killers: tuple[str, ...]

    def apply(self, source: Path) -> None:
        """Plant the bug in a copy of the source tree; raise `StaleMutant` when it does not fit."""
        path = source / self.file
        text = path.read_text(encoding="utf-8")
        if text.count(self.find) != 1:
            message = f"{self.name}: its text stands {text.count(self.find)} times in {self.file}, not once"
            raise StaleMutant(message)
        path.write_text(text.replace(self.find, self.replace), encoding="utf-8")


def load() -> list[Mutant]:
    """Every mutant, in the order of the files."""
    mutants: list[Mutant] = []
    for name in FILES:
        document = tomllib.loads((Path(__file__).parent / name).read_text(encoding="utf-8"))
        mutants += (
            Mutant(
                name=entry["name"],
                breaks=entry["breaks"],
                file=entry["file"],
                find=entry["find"].strip("\n"),
                replace=entry["replace"].strip("\n"),
                killers=tuple(entry["killers"]),
            )
            for entry in document["mutant"]
        )
    return mutants
