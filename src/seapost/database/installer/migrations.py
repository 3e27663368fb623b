"""Migrations: numbered files that are written once, `migrations/NNNN_name.{pre,post}.sql`.

`pre` prepares the database for this release while the last one still runs; `post` removes what the last
one needed, and runs on request. Header lines steer how a file runs:

    -- transaction: off     statement by statement, outside a transaction (a concurrent index)
    -- repeat: safe         after a crash half-way the file may simply run again
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources.abc import Traversable
from typing import Final

_FILE_NAME: Final = re.compile(r"(?P<number>\d{4})_(?P<name>[a-z][a-z0-9_]*)\.(?P<phase>pre|post)\.sql")
_HEADER: Final = re.compile(r"--\s*(transaction|repeat):\s*(\w+)")


class Phase(StrEnum):
    """Before or after the new release runs everywhere."""

    PRE = "pre"
    POST = "post"


@dataclass(frozen=True, slots=True, order=True)
class MigrationKey:
    """What names a migration; its order is the order of history."""

    number: int
    rank: int  # pre before post

    @property
    def phase(self) -> Phase:
        """The phase that `rank` stands for."""
        return Phase.POST if self.rank else Phase.PRE


@dataclass(frozen=True, slots=True)
class Migration:
    """One migration file.

    Attributes:
        checksum: sha256 (hex) of the text with line ends of the repository.
        transactional: False runs it outside a transaction, under a dirty marker.
        repeatable: it may run again after it stopped half-way; only means something when not transactional.
    """

    number: int
    name: str
    phase: Phase
    text: str
    checksum: str
    transactional: bool
    repeatable: bool

    @property
    def key(self) -> MigrationKey:
        """What the database remembers the migration by."""
        return MigrationKey(self.number, 0 if self.phase is Phase.PRE else 1)

    @property
    def label(self) -> str:
        """File name without the ending: `0003_moving.pre`."""
        return f"{self.number:04d}_{self.name}.{self.phase}"


def read_sql(file: Traversable) -> str:
    """Text of an SQL file; line ends are those of the repository, whatever the checkout did to them."""
    return file.read_bytes().decode("utf-8").replace("\r\n", "\n")


def checksum_of(text: str) -> str:
    """Checksum under which the installer remembers an SQL file."""
    return hashlib.sha256(text.encode()).hexdigest()


def discover_migrations(root: Traversable) -> tuple[Migration, ...]:
    """Read the migrations below `root` in the order of history.

    Raises:
        ValueError: a file name breaks the pattern, or two files share number and phase.
    """
    folder = root.joinpath("migrations")
    if not folder.is_dir():
        return ()
    found: dict[MigrationKey, Migration] = {}
    for file in folder.iterdir():
        if not file.name.endswith(".sql"):
            continue
        migration = _read_migration(file)
        if (other := found.get(migration.key)) is not None:
            raise ValueError(f"{migration.label} and {other.label} share a number and phase")
        found[migration.key] = migration
    return tuple(found[key] for key in sorted(found))


def _read_migration(file: Traversable) -> Migration:
    match = _FILE_NAME.fullmatch(file.name)
    if match is None:
        raise ValueError(f"{file.name} is not named NNNN_name.pre.sql or NNNN_name.post.sql")
    text = read_sql(file)
    headers: dict[str, str] = {}
    for line in text.splitlines():
        if not line.startswith("--"):
            break
        if (header := _HEADER.match(line)) is not None:
            headers[header.group(1)] = header.group(2)
    return Migration(
        number=int(match["number"]),
        name=match["name"],
        phase=Phase(match["phase"]),
        text=text,
        checksum=checksum_of(text),
        transactional=headers.get("transaction") != "off",
        repeatable=headers.get("repeat") == "safe",
    )
