"""`make bench-counters` and `make bench-baseline`: counters against the committed baseline.

A counter that is more than a tenth worse than the baseline fails the run; so does one that is missing on either side.
One that is more than a tenth better asks for a new baseline, so that the gain cannot be lost again unseen.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.counters import COUNTERS, measure
from seapost.telemetry import logging

BASELINE: Final = Path(__file__).with_name("baseline.json")
TOLERANCE: Final = 0.10
DIGITS: Final = 4


class Verdict(StrEnum):
    """What became of one counter."""

    KEPT = "kept"
    WORSE = "worse"
    BETTER = "better"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Judged:
    """One counter beside its baseline; None where there is no figure."""

    name: str
    baseline: float | None
    measured: float | None

    @property
    def change(self) -> float | None:
        """Part by which the counter grew; a counter that was nothing has grown without bound."""
        if self.baseline is None or self.measured is None:
            return None
        if self.baseline == 0:
            return 0.0 if self.measured == 0 else float("inf")
        return self.measured / self.baseline - 1

    @property
    def verdict(self) -> Verdict:
        """Ten percent either way are kept."""
        change = self.change
        if change is None:
            return Verdict.MISSING
        if change > TOLERANCE:
            return Verdict.WORSE
        return Verdict.BETTER if change < -TOLERANCE else Verdict.KEPT


def judge(baseline: Mapping[str, float], measured: Mapping[str, float]) -> list[Judged]:
    """Every counter of either side, in the order of the baseline."""
    names = list(dict.fromkeys([*baseline, *measured]))
    return [Judged(name, baseline.get(name), measured.get(name)) for name in names]


def passes(judged: list[Judged]) -> bool:
    """Whether nothing is worse and nothing is missing; no counter at all proves nothing."""
    return bool(judged) and not any(one.verdict in {Verdict.WORSE, Verdict.MISSING} for one in judged)


def main(arguments: list[str] | None = None) -> int:
    """Measure and compare, or write the baseline with `--write`; returns the exit code."""
    parser = argparse.ArgumentParser(prog="benchmarks.gate")
    _ = parser.add_argument("--write", action="store_true", help="make what is measured now the baseline")
    options = parser.parse_args(arguments)
    logging.configure("error")
    measured = {name: round(value, DIGITS) for name, value in measure().items()}
    if options.write:
        _ = BASELINE.write_text(json.dumps(measured, indent=2) + "\n", encoding="utf-8")
        print(f"wrote {BASELINE.name}: {len(measured)} counters")
        return 0
    judged = judge(read_baseline(), measured)
    _show(judged)
    return 0 if passes(judged) else 1


def read_baseline(path: Path = BASELINE) -> dict[str, float]:
    """The committed figures; none when there is no file."""
    if not path.exists():
        return {}
    return {str(name): float(value) for name, value in json.loads(path.read_text(encoding="utf-8")).items()}


def _show(judged: list[Judged]) -> None:
    units = {counter.name: counter.unit for counter in COUNTERS}
    table = Table()
    for column in ("counter", "baseline", "measured", "change", "", "counts"):
        table.add_column(column, justify="right" if column in {"baseline", "measured", "change"} else "left")
    for one in judged:
        change = "" if one.change is None else f"{one.change:+.1%}"
        table.add_row(one.name, _figure(one.baseline), _figure(one.measured), change, one.verdict, units.get(one.name))
    Console(width=150).print(table)
    for one in judged:
        if one.verdict in {Verdict.WORSE, Verdict.MISSING}:
            print(f"FAILED {one.name}: {one.verdict}, baseline {one.baseline}, measured {one.measured}")
    if any(one.verdict is Verdict.BETTER for one in judged):
        names = ", ".join(one.name for one in judged if one.verdict is Verdict.BETTER)
        print(f"better by more than {TOLERANCE:.0%}: {names}")
        print("run `make bench-baseline` and commit benchmarks/baseline.json")


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:,.4g}" if value < 10_000 else f"{value:,.0f}"  # noqa: PLR2004 - width


if __name__ == "__main__":
    sys.exit(main())
