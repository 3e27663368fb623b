"""`make bench` and `make bench-quick`: every workload, interleaved, medians, and a report that says where we lose.

Counters may gate a change, seconds never do. Absolute rates of one machine move by two from hour to hour: believe the
ratios.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Final, TypeVar

from benchmarks import chart, contest, cost, counters, decay, machine, producers, report
from benchmarks.entrants import ENTRANTS, ROOT, Entrant
from benchmarks.goals import goals
from benchmarks.orbit import plan
from benchmarks.results import Results
from benchmarks.server import fresh_database, measured_server
from benchmarks.settings import Settings
from benchmarks.systems.seapost import Seapost
from seapost.telemetry import logging

OUTPUT: Final = ROOT / "build" / "bench"
COST_DELIVERIES_MAX: Final = 20_000
LATENCY_PER_SECOND: Final = 50.0

ResultT = TypeVar("ResultT")


def main(arguments: list[str] | None = None) -> int:
    """Measure, and write report.md, report.json and bench.svg into build/bench."""
    parser = argparse.ArgumentParser(prog="benchmarks")
    _ = parser.add_argument("--quick", action="store_true", help="about three minutes; ratios are rough")
    _ = parser.add_argument(
        "--only", action="append", default=[], metavar="TEXT", help="systems with this in their name"
    )
    options = parser.parse_args(arguments)
    logging.configure("error")
    settings = Settings.from_environment(quick=options.quick)
    chosen = [one for one in ENTRANTS if not options.only or any(text in one.name for text in options.only)]
    with ExitStack() as stack:
        dsn = stack.enter_context(measured_server(settings.dsn))
        results = measure(settings, dsn, chosen)
    write(results, OUTPUT)
    _summary(results)
    return 0


def measure(settings: Settings, dsn: str, entrants: list[Entrant]) -> Results:
    """Every workload in turn; what fails is named in the report and stops nothing else."""
    say = _Clock()
    results = Results(
        machine=machine.shape(),
        server=machine.server(dsn),
        settings={**asdict(settings), "dsn": "given" if settings.dsn else "embedded"},
    )
    results.systems = contest.run(settings, dsn, entrants, say)
    deliveries = min(COST_DELIVERIES_MAX, settings.jobs_max // 4)
    is_here = settings.dsn is None

    def part(name: str, work: Callable[[], ResultT]) -> ResultT | None:
        say(name)
        try:
            return work()
        except Exception as error:  # noqa: BLE001 - one workload must not take the others with it
            results.failures[name] = f"{type(error).__name__}: {error}"
            return None

    if is_here:
        results.cost = part("server CPU", lambda: cost.measure(dsn, deliveries, settings.repetitions))
    else:
        results.failures["server CPU"] = "the server's processes may be on another machine"
    results.latency = part("latency from commit", lambda: _latency(dsn, settings.latency_events))
    results.producers = part(
        "32 producers", lambda: producers.measure(dsn, settings.producer_seconds, settings.repetitions)
    )
    results.old_snapshot = part("old snapshot", lambda: decay.old_snapshot(dsn, settings.churn))
    big = part("big tables", lambda: decay.big_tables(dsn, settings.rows))
    if big is not None:
        results.finished, results.waiting = big
    results.counters = part("counters", counters.measure)
    sizes = plan.QUICK if settings.name == "quick" else plan.FULL
    results.orbit = part("Orbit", lambda: plan.measure(sizes, settings.dsn, say))
    return results


def write(results: Results, folder: Path) -> None:
    """The report, its raw figures and its chart."""
    folder.mkdir(parents=True, exist_ok=True)
    _ = (folder / "report.md").write_text(report.page(results), encoding="utf-8")
    _ = (folder / "report.json").write_text(json.dumps(results.document(), indent=1) + "\n", encoding="utf-8")
    _ = (folder / report.CHART).write_text(chart.chart(results), encoding="utf-8")


def _latency(dsn: str, events: int) -> list[float]:
    with fresh_database(dsn) as database:
        return asyncio.run(_latency_of(database, events))


async def _latency_of(dsn: str, events: int) -> list[float]:
    system = Seapost()
    await system.setup(dsn, install=True)
    found = await system.latencies(events, LATENCY_PER_SECOND)
    await system.close()
    return [committed for _, committed in found]


class _Clock:
    """Says on standard error what happens, with the seconds since the start."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    def __call__(self, text: str) -> None:
        print(f"{time.monotonic() - self._start:7.1f} s  {text}", file=sys.stderr, flush=True)


def _summary(results: Results) -> None:
    rows = goals(results)
    print(
        f"goals: {sum(row.met is True for row in rows)} met, {sum(row.met is False for row in rows)} missed, ", end=""
    )
    print(
        f"{sum(row.met is None for row in rows)} not measured; rows where a rival leads: {len(report.losses(results))}"
    )
    print(f"the report is {(OUTPUT / 'report.md').relative_to(ROOT)}")


if __name__ == "__main__":
    sys.exit(main())
