"""What a run costs: how many are settled in a second, how soon after their closure, and at what price.

All processes run as they do in the demo, nobody is killed, and every figure comes from moments that facts carry and
from counters of the server. Figures of one call belong together; those of two machines do not.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg import conninfo

from oceanway.bench import store_bench as store
from oceanway.demo import supervise
from oceanway.demo.plan import PlannedRun, plan
from oceanway.demo.processes import DemoFailed, Processes
from oceanway.installation.layout import Database
from seapost.model.errors import InvalidSetting

if TYPE_CHECKING:
    from rich.console import Console

    from oceanway.demo.supervise import Platform

SEED: Final = 1
WARM_UP_RUNS: Final = 100
SLICE_RUNS: Final = 1_000
STEADY_BATCH: Final = 5
RUNS_MAX: Final = 100_000
ENDS: Final = 3
"""Slices at each end of the growth that are compared, by their median."""


@dataclass(frozen=True, slots=True)
class BenchSettings:
    """What is measured.

    Attributes:
        runs: settled as fast as possible.
        rate, seconds: runs a second, and for how long, where the time from closure to settled is taken.
        growth: runs settled in all, in slices of 1,000 whose cost is compared; 0 leaves that out.
    """

    runs: int = 1_000
    rate: int = 20
    seconds: int = 30
    growth: int = 0

    def __post_init__(self) -> None:
        for name in ("runs", "rate", "seconds"):
            if not 1 <= getattr(self, name) <= RUNS_MAX:
                raise InvalidSetting(f"{name}: 1 to {RUNS_MAX}, not {getattr(self, name)}")
        if self.growth and self.growth < 2 * ENDS * SLICE_RUNS:
            raise InvalidSetting(f"growth: at least {2 * ENDS * SLICE_RUNS}, not {self.growth}")


@dataclass(slots=True)
class Figures:
    """What was found; times in seconds, WAL in bytes.

    Attributes:
        settled_per_second: end to end, from the first admission to the last settlement, at full speed.
        closure_to_settled: p50 and p99 at the steady rate, of runs whose closure was the last word before the bill.
        transactions, statements, wal: for each run, everything that follows from it included.
        slice_seconds: of each slice of the growth.
        growth_ratio: cost of a run in the last slices as a multiple of that in the first ones.
    """

    settled_per_second: float = 0.0
    closure_to_settled: tuple[float, float] = (0.0, 0.0)
    transactions: float = 0.0
    statements: float | None = None
    wal: float = 0.0
    slice_seconds: list[float] = field(default_factory=list[float])
    growth_ratio: float | None = None

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


def run_bench(settings: BenchSettings, console: Console) -> Figures:
    """Measure on an embedded server; nothing is left behind.

    Raises:
        DemoFailed: the processes do not come up, or a driver fails.
    """
    figures = Figures()
    loaded = {**supervise.SERVER_SETTINGS, "shared_preload_libraries": "pg_stat_statements"}
    with ExitStack() as stack:
        folder = stack.enter_context(supervise.open_folder())
        processes = Processes(folder / supervise.PRIVATE, supervise.environment())
        stack.enter_context(closing(processes))
        platform = stack.enter_context(supervise.open_platform(folder, None, loaded))
        _ = stack.callback(processes.close)
        supervise.start(platform, processes)
        bench = _Bench(platform, stack)
        with console.status("warming up"):
            _ = bench.play(WARM_UP_RUNS, seconds=0.0)
        with console.status(f"settling {settings.runs:,} runs"):
            _throughput(bench, settings, figures)
        with console.status(f"{settings.rate} runs a second for {settings.seconds} s"):
            _latency(bench, settings, figures)
        if settings.growth:
            _growth(bench, settings, figures, console)
        _ = supervise.stop(processes)
    return figures


class _Bench:
    """A platform on which days are played one after the other."""

    def __init__(self, platform: Platform, stack: ExitStack) -> None:
        self._platform = platform
        self._played = 0
        self.databases = [str(conninfo.conninfo_to_dict(dsn)["dbname"]) for dsn in platform.dsns.values()]
        self.execution, self.billing = (
            stack.enter_context(psycopg.connect(platform.dsns[one], autocommit=True))
            for one in (Database.EXECUTION, Database.BILLING)
        )
        self.counts_statements = store.count_statements(self.billing)

    def play(self, runs: int, *, seconds: float, batch: int = 40) -> tuple[PlannedRun, ...]:
        """Play the next day to its end; its runs."""
        first, self._played = self._played, self._played + runs
        given = {
            "--config": self._platform.config,
            "--ledger": self._platform.folder / f"ledger-{first}.jsonl",
            "--runs": runs,
            "--seed": SEED,
            "--seconds": seconds,
            "--first": first,
            "--batch": batch,
        }
        command = [sys.executable, "-m", "oceanway.demo.drive", *(str(one) for pair in given.items() for one in pair)]
        done = subprocess.run(  # noqa: S603 - our own module
            command, env=supervise.environment(), capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise DemoFailed(f"the driver ended with exit code {done.returncode}:\n{done.stderr[-2_000:]}")
        return plan(SEED, runs, first).runs

    def took(self, runs: Sequence[PlannedRun]) -> float:
        """Seconds from the first admission to the last settlement of these runs."""
        names = [f"run-{run.name}" for run in runs]
        begun, settled = store.admitted_at(self.billing, names), store.settled_at(self.billing, names)
        if begun is None or len(settled) != len(names):
            raise DemoFailed(f"{len(names) - len(settled)} runs were not settled")
        return (max(settled.values()) - begun).total_seconds()


def _throughput(bench: _Bench, settings: BenchSettings, figures: Figures) -> None:
    wal, transactions = store.counters(bench.billing, bench.databases)
    sent = store.statements(bench.billing, bench.databases) if bench.counts_statements else 0
    runs = bench.play(settings.runs, seconds=0.0)
    figures.settled_per_second = settings.runs / bench.took(runs)
    after, more = store.counters(bench.billing, bench.databases)
    figures.wal = (after - wal) / settings.runs
    figures.transactions = (more - transactions) / settings.runs
    if bench.counts_statements:
        figures.statements = (store.statements(bench.billing, bench.databases) - sent) / settings.runs


def _latency(bench: _Bench, settings: BenchSettings, figures: Figures) -> None:
    count = settings.rate * settings.seconds
    runs = bench.play(count, seconds=float(settings.seconds), batch=STEADY_BATCH)
    names = [f"run-{run.name}" for run in runs if not run.closes_early and run.trouble == "none"]
    closed, settled = store.closed_at(bench.execution, names), store.settled_at(bench.billing, names)
    waits = [(settled[name] - closed[name]).total_seconds() for name in names]
    figures.closure_to_settled = (median(waits), quantiles(waits, n=100)[-1])


def _growth(bench: _Bench, settings: BenchSettings, figures: Figures, console: Console) -> None:
    for number in range(settings.growth // SLICE_RUNS):
        figures.slice_seconds.append(bench.took(bench.play(SLICE_RUNS, seconds=0.0)))
        console.print(f"{(number + 1) * SLICE_RUNS:,} runs: the last slice took {figures.slice_seconds[-1]:.1f} s")
    ends = figures.slice_seconds[:ENDS], figures.slice_seconds[-ENDS:]
    figures.growth_ratio = median(ends[1]) / median(ends[0])
