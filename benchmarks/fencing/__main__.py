"""`make fencing-rivals`: puts the same stale success to every system and prints who believes it.

Every row is what was seen in this run, on databases of their own on the embedded server or on the one of BENCH_DSN; a
system that is not installed is named as absent. Exit code 1 when Seapost believes the stale success, does not believe
the true owner, or could not be asked.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from benchmarks.entrants import RIVAL_PYTHON, ROOT
from benchmarks.fencing.scenario import Observation, Report
from benchmarks.server import fresh_database, measured_server

REPORT: Final = ROOT / "build" / "fencing-rivals.json"
SECONDS_MAX: Final = 120
ERROR_MAX: Final = 300
OWN: Final = "seapost"
PACKAGE: Final = "benchmarks.fencing.rivals"
PYTHON_MIN: Final = {"oban": (3, 12)}
RIVALS: Final = {
    "procrastinate": ("procrastinate_manager", "Procrastinate"),
    "pgqueuer": ("pgqueuer_queries", "PgQueuer"),
    "faststream-outbox": ("faststream_outbox_client", "FaststreamOutbox"),
    "oban": ("oban_workers", "Oban"),
    "chancy": ("chancy_executor", "Chancy"),
}


@dataclass(frozen=True, slots=True)
class Row:
    """One system of the report: what was seen, or why there is nothing to see."""

    name: str
    versions: dict[str, str]
    observation: Observation | None
    absent: str = ""


def main() -> int:
    """Ask everybody and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fencing", description=__doc__)
    _ = parser.add_argument(
        "--python", type=Path, default=RIVAL_PYTHON, help="the interpreter of the environment with the rivals"
    )
    arguments = parser.parse_args()
    with measured_server(os.environ.get("BENCH_DSN"), {}) as dsn:
        rows = [_ask(OWN, sys.executable, ("benchmarks.fencing.seapost", "Seapost"), dsn)]
        for name, (module, scenario) in RIVALS.items():
            rows.append(_ask_rival(name, arguments.python, (f"{PACKAGE}.{module}", scenario), dsn))
    _print(rows)
    REPORT.parent.mkdir(exist_ok=True)
    _ = REPORT.write_text(json.dumps([_fact(row) for row in rows], indent=1) + "\n", encoding="utf-8")
    own = rows[0].observation
    believed_right = own is not None and not own.stale.believed and own.owner.believed
    return 0 if believed_right else 1


def _ask_rival(name: str, python: Path, scenario: tuple[str, str], dsn: str) -> Row:
    if not python.exists():
        return Row(name, {}, None, "absent: the rivals' environment does not exist")
    row = _ask(name, str(python), scenario, dsn)
    if row.observation is None and name in PYTHON_MIN:
        version = _version(python)
        if version < PYTHON_MIN[name]:
            needs, has = (".".join(map(str, numbers)) for numbers in (PYTHON_MIN[name], version))
            return Row(name, {}, None, f"absent: needs Python {needs} or newer, and the environment has {has}")
    return row


def _version(python: Path) -> tuple[int, ...]:
    code = "import sys; print(*sys.version_info[:2])"
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True, timeout=SECONDS_MAX)
    return tuple(map(int, done.stdout.split()))


def _ask(name: str, python: str, scenario: tuple[str, str], dsn: str) -> Row:
    with fresh_database(dsn) as database:
        done = subprocess.run(
            [python, "-m", "benchmarks.fencing.subject", *scenario, database],
            cwd=ROOT,
            env=dict(os.environ) | {"PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS_MAX,
        )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no message"]
        return Row(name, {}, None, f"could not be asked: {lines[-1][:ERROR_MAX]}")
    answer: dict[str, Any] = json.loads(done.stdout)
    if "absent" in answer:
        return Row(name, {}, None, f"absent: {answer['absent']}")
    seen = answer["observation"]
    observation = Observation(seen["calls"], Report(**seen["stale"]), Report(**seen["owner"]))
    return Row(name, answer["versions"], observation)


def _print(rows: list[Row]) -> None:
    table = Table(title="worker A's claim is lost, B claims; then A reports success, then B fails", show_lines=True)
    for column in ("system", "A's stale success", "stored before → after", "B's failure", "stored after"):
        table.add_column(column, overflow="fold")
    for row in rows:
        name = row.name if not row.versions else f"{row.name} {next(iter(row.versions.values()))}"
        seen = row.observation
        if seen is None:
            table.add_row(name, row.absent)
            continue
        stale, owner = seen.stale, seen.owner
        table.add_row(
            f"{name}\n{seen.calls}",
            f"{'ACCEPTED' if stale.believed else 'refused'}\nanswer: {stale.answer}",
            f"{stale.before}\n→ {stale.after}",
            f"{'counts' if owner.believed else 'IS LOST'}\nanswer: {owner.answer}",
            owner.after,
        )
    Console(width=None if sys.stdout.isatty() else 160).print(table)
    asked = [row for row in rows if row.observation is not None]
    accepting = [row.name for row in asked if row.observation is not None and row.observation.stale.believed]
    _ = sys.stdout.write(f"evidence: asked={len(asked)} absent={len(rows) - len(asked)} accepting={len(accepting)}\n")


def _fact(row: Row) -> dict[str, object]:
    fact: dict[str, object] = {"system": row.name, "versions": row.versions}
    if row.observation is None:
        return fact | {"absent": row.absent}
    stale, owner = row.observation.stale, row.observation.owner
    return fact | {
        "calls": row.observation.calls,
        "stale_success_accepted": stale.believed,
        "owner_failure_counts": owner.believed,
        "answers": [stale.answer, owner.answer],
        "states": [stale.before, stale.after, owner.after],
    }


if __name__ == "__main__":
    sys.exit(main())
