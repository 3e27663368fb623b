"""Who is measured, and where each of them runs: what is missing on this machine is said, never left out."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
RIVAL_PYTHON: Final = ROOT / "build" / "bench-venv" / "bin" / "python"
RIVAL_NODE: Final = ROOT / "build" / "bench-node"
SYSTEMS: Final = "benchmarks.systems"
PROBE_SECONDS_MAX: Final = 60


class Kind(StrEnum):
    """Where a system runs."""

    OWN = "own"
    PYTHON = "python"
    NODE = "node"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrant:
    """One system in one form.

    Attributes:
        name: as in the report.
        target: module and class, or the file of a Node system.
        arguments: of its constructor.
        package: what must be installed for a rival.
        python: lowest Python version of a rival, `(major, minor)`.
        appends, drains: what is measured; a form of a system need not repeat what another form shows.
        crowds: whether it drains with several processes too.
        trial: jobs of its first drain, from which follows how many it can do.
    """

    name: str
    kind: Kind
    target: str
    arguments: tuple[str, ...] = ()
    package: str = ""
    python: tuple[int, int] = (3, 11)
    appends: bool = True
    drains: bool = True
    crowds: bool = True
    trial: int = 4_000

    @property
    def is_rival(self) -> bool:
        """Whether it is somebody else's."""
        return self.kind is not Kind.OWN

    def command(self) -> list[str]:
        """How to start its process, in the repository's folder."""
        if self.kind is Kind.NODE:
            folder = ROOT / "benchmarks" / "systems" / "node"
            return ["node", str(folder / "host.mjs"), str(folder / self.target)]
        python = sys.executable if self.kind is Kind.OWN else str(RIVAL_PYTHON)
        module, _, name = self.target.partition(":")
        return [python, "-m", f"{SYSTEMS}.host", f"{SYSTEMS}.{module}", name, *self.arguments]

    def environment(self) -> dict[str, str]:
        """Its environment: this process's, and where the Node packages are."""
        return dict(os.environ) | {"BENCH_NODE_MODULES": str(RIVAL_NODE), "PYTHONDONTWRITEBYTECODE": "1"}

    def missing(self) -> str | None:
        """Why it cannot run here; None when it can."""
        match self.kind:
            case Kind.OWN:
                return None
            case Kind.NODE:
                return self._missing_on_node()
            case Kind.PYTHON:
                return self._missing_on_python()

    def _missing_on_node(self) -> str | None:
        if shutil.which("node") is None:
            return "not run: Node is not installed"
        if not (RIVAL_NODE / "node_modules" / self.package).is_dir():
            return f"not run: the package {self.package} is not installed"
        return None

    def _missing_on_python(self) -> str | None:
        if not RIVAL_PYTHON.exists():
            return "not run: the rivals' environment does not exist"
        code = "import importlib.util as u, sys; print(*sys.version_info[:2], u.find_spec(sys.argv[1]) is not None)"
        done = subprocess.run(
            [str(RIVAL_PYTHON), "-c", code, self.package.replace("-", "_")],
            capture_output=True,
            text=True,
            check=False,
            timeout=PROBE_SECONDS_MAX,
        )
        if done.returncode != 0:
            return "not run: the rivals' environment is broken"
        major, minor, found = done.stdout.split()
        if (int(major), int(minor)) < self.python:
            return f"not run: needs Python ≥ {self.python[0]}.{self.python[1]}"
        return None if found == "True" else f"not run: the package {self.package} is not installed"


RAW: Final = Entrant(name="raw SQL, batch 100", kind=Kind.OWN, target="raw:Raw", arguments=("100",))
RAW_LARGE: Final = Entrant(
    name="raw SQL, batch 500", kind=Kind.OWN, target="raw:Raw", arguments=("500",), appends=False, crowds=False
)
SYNCHRONOUS: Final = Entrant(
    name="seapost, synchronous, batch 100",
    kind=Kind.OWN,
    target="seapost:Seapost",
    arguments=("100", "1"),
    appends=False,
    crowds=False,
)
OVERLAPPED: Final = Entrant(
    name="seapost, overlapped, batch 500", kind=Kind.OWN, target="seapost:Seapost", arguments=("500", "2")
)
TWICE: Final = Entrant(
    name="seapost, 2 destinations",
    kind=Kind.OWN,
    target="seapost:Seapost",
    arguments=("500", "2", "two"),
    drains=False,
)
HTTP: Final = Entrant(
    name="seapost over HTTP, batch 500",
    kind=Kind.OWN,
    target="seapost:Seapost",
    arguments=("500", "2", "http"),
    appends=False,
    crowds=False,
)
PGQUEUER: Final = Entrant(name="pgqueuer", kind=Kind.PYTHON, target="rival_pgqueuer:PgQueuer", package="pgqueuer")
FASTSTREAM: Final = Entrant(
    name="faststream-outbox",
    kind=Kind.PYTHON,
    target="rival_faststream_outbox:FaststreamOutbox",
    package="faststream-outbox",
)
RIVALS: Final = (
    PGQUEUER,
    FASTSTREAM,
    Entrant(
        name="procrastinate",
        kind=Kind.PYTHON,
        target="rival_procrastinate:Procrastinate",
        package="procrastinate",
        trial=200,
    ),
    Entrant(name="oban", kind=Kind.PYTHON, target="rival_oban:Oban", package="oban", python=(3, 12), trial=1_000),
    Entrant(name="chancy", kind=Kind.PYTHON, target="rival_chancy:Chancy", package="chancy", trial=1_000),
    Entrant(name="graphile-worker", kind=Kind.NODE, target="graphile-worker.mjs", package="graphile-worker"),
    Entrant(name="pg-boss", kind=Kind.NODE, target="pg-boss.mjs", package="pg-boss"),
)
ENTRANTS: Final = (RAW, RAW_LARGE, SYNCHRONOUS, OVERLAPPED, TWICE, HTTP, *RIVALS)
