"""`python -m benchmarks.orbit [--quick]`: Orbit's chapter alone, into build/bench/orbit.md and orbit.json."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Final

from benchmarks import machine
from benchmarks.entrants import ROOT
from benchmarks.orbit.chapter import chapter
from benchmarks.orbit.plan import FULL, QUICK, measure
from seapost.telemetry import logging

OUTPUT: Final = ROOT / "build" / "bench"


def main(arguments: list[str] | None = None) -> int:
    """Measure and write."""
    parser = argparse.ArgumentParser(prog="benchmarks.orbit")
    _ = parser.add_argument("--quick", action="store_true", help="a minute; only to see that everything runs")
    options = parser.parse_args(arguments)
    logging.configure("error")
    shape = machine.shape()
    figures = measure(
        QUICK if options.quick else FULL, os.environ.get("BENCH_DSN"), lambda text: print(text, file=sys.stderr)
    )
    OUTPUT.mkdir(parents=True, exist_ok=True)
    heading = "# Orbit\n\n" + ", ".join(f"{name}: {value}" for name, value in shape.items())
    _ = (OUTPUT / "orbit.md").write_text(f"{heading}\n\n{chapter(figures)}\n", encoding="utf-8")
    document = {"machine": shape, **figures.document()}
    _ = (OUTPUT / "orbit.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(f"the report is {(OUTPUT / 'orbit.md').relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
