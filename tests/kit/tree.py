"""The repository as a tree of text files: what the tests of the house look at."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.kit.requirements import ROOT

SQL = ROOT / "src" / "seapost" / "sql"
ORBIT_SQL = ROOT / "src" / "orbit" / "sql"
_SKIPPED = {".git", ".venv", "build", "dist", "node_modules", "__pycache__"}
_FUNCTION = re.compile(r"^create or replace function (?P<name>[a-z_.0-9]+)\s*\(", re.MULTILINE)
_VIEW = re.compile(r"^create (?:or replace )?view (?P<name>[a-z_.0-9]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class SqlObject:
    """One function or view and the file that must be named after it."""

    path: Path
    kind: str
    root: Path = SQL

    @property
    def text(self) -> str:
        """The whole file."""
        return self.path.read_text(encoding="utf-8")

    @property
    def expected_name(self) -> str:
        """The name that folder and file spell: `functions/delivery/claim_v1.sql` is `seapost.delivery_claim_v1`."""
        parts = self.path.relative_to(self.root / f"{self.kind}s").with_suffix("").parts
        return f"{self.root.parent.name}." + "_".join(parts)

    @property
    def names(self) -> list[str]:
        """The names that the file creates."""
        pattern = _FUNCTION if self.kind == "function" else _VIEW
        return [match["name"] for match in pattern.finditer(self.text)]

    def __str__(self) -> str:
        """The path under `sql/`, which is how a test names its case; that of another schema begins with its name."""
        name = self.path.relative_to(self.root).as_posix()
        return name if self.root == SQL else f"{self.root.parent.name}/{name}"


@cache
def tracked_files() -> tuple[Path, ...]:
    """Return every file that is or would be committed; without git, every file outside generated folders."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if listing.returncode == 0:
        found = [ROOT / name for name in listing.stdout.decode().split("\0") if name]
    else:
        found = [path for path in ROOT.rglob("*") if not _SKIPPED.intersection(path.relative_to(ROOT).parts)]
    return tuple(sorted(path for path in found if path.is_file()))


def python_files() -> list[Path]:
    """Return every Python file of the repository."""
    return [path for path in tracked_files() if path.suffix == ".py"]


def sql_files(*roots: Path) -> list[Path]:
    """Return every SQL file of the kernel, or of these trees, except the generated snapshot of the schema."""
    return sorted(path for root in roots or (SQL,) for path in root.rglob("*.sql") if path.name != "snapshot.sql")


def sql_objects(kind: str, *roots: Path) -> list[SqlObject]:
    """Return the functions or the views of the kernel, or of these trees; `kind` is `function` or `view`."""
    return [
        SqlObject(path, kind, root) for root in roots or (SQL,) for path in sorted((root / f"{kind}s").rglob("*.sql"))
    ]


def relative(path: Path) -> str:
    """Return the path under the repository, for test names and messages."""
    return path.relative_to(ROOT).as_posix()
