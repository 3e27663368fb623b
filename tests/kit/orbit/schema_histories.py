"""Other histories of Orbit's schema than the packaged one: shorter, damaged or longer, as files of a test."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from orbit.store.schema import orbit_tree
from seapost.database.installer import SqlTree
from tests.kit.tree import ROOT

PACKAGED: Final = ROOT / "src" / "orbit" / "sql"
NEWEST: Final = 13


@dataclass(frozen=True, slots=True)
class History:
    """A copy of the SQL files that a test may damage."""

    root: Path

    @property
    def tree(self) -> SqlTree:
        """What the migrator takes."""
        return orbit_tree(self.root)

    def file(self, number: int) -> Path:
        """The migration file of one version."""
        (found,) = (self.root / "migrations").glob(f"{number:04d}_*.sql")
        return found

    def write(self, number: int, name: str, text: str) -> None:
        """Add a migration."""
        (self.root / "migrations" / f"{number:04d}_{name}.pre.sql").write_text(text, encoding="utf-8")

    def append(self, number: int, text: str) -> None:
        """Add statements to a migration that is there."""
        with self.file(number).open("a", encoding="utf-8") as file:
            file.write(text)


HistoryUpTo = Callable[[int], History]


@pytest.fixture
def history_up_to(tmp_path: Path) -> HistoryUpTo:
    """Copy the first migrations; the newest comes with its functions, views and privileges, an older one without."""

    def copy(number: int) -> History:
        root = tmp_path / f"sql-{number}"
        shutil.copytree(PACKAGED, root)
        if number < NEWEST:
            for folder in ("functions", "views", "privileges"):
                shutil.rmtree(root / folder)
        for file in (root / "migrations").iterdir():
            if int(file.name[:4]) > number:
                file.unlink()
        return History(root)

    return copy
