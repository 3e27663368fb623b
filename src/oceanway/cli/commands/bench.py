"""`oceanway bench`: what a run costs, measured on an embedded server."""

from __future__ import annotations

from typing import Annotated

import typer

from oceanway.cli.exit_codes import ExitCode
from oceanway.cli.options import JsonOption
from seapost.cli.output import Fields, Output


def bench(
    runs: Annotated[int, typer.Option("--runs", min=1, help="Runs settled as fast as possible.")] = 1_000,
    rate: Annotated[int, typer.Option("--rate", min=1, help="Runs a second where the waiting time is taken.")] = 20,
    seconds: Annotated[int, typer.Option("--seconds", min=1, help="For how long.")] = 30,
    growth: Annotated[
        int, typer.Option("--growth", min=0, help="Runs settled in all, to compare the first with the last; 0: none.")
    ] = 0,
    as_json: JsonOption = False,
) -> ExitCode:
    """Measure runs settled a second, the time from closure to settled, and the cost of a run.

    All processes run as in the demo; nobody is killed and nothing is left behind.
    """
    from rich.console import Console  # noqa: PLC0415 - for this command alone

    from oceanway.bench.measure import BenchSettings, run_bench  # noqa: PLC0415 - as above

    figures = run_bench(BenchSettings(runs, rate, seconds, growth), Console(stderr=True))
    p50, p99 = figures.closure_to_settled
    told = {
        "settled per second": f"{figures.settled_per_second:.1f}",
        "closure to settled": f"p50 {p50:.2f} s, p99 {p99:.2f} s",
        "round trips per run": "not counted" if figures.statements is None else f"{figures.statements:.0f}",
        "transactions per run": f"{figures.transactions:.0f}",
        "WAL per run": f"{figures.wal / 1_000:.0f} kB",
    }
    if figures.growth_ratio is not None:
        told["cost of the last runs"] = f"{figures.growth_ratio:.2f} × that of the first"
    Output(as_json=as_json).emit(figures.document(), Fields(told))
    return ExitCode.DONE
