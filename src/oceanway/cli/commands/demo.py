"""`oceanway demo`: a day of runs, settled while the workers are killed, and the evidence that the books are right."""

from __future__ import annotations

from typing import Annotated

import typer

from oceanway.cli.exit_codes import ExitCode
from oceanway.cli.options import JsonOption
from seapost.cli.output import Output


def demo(
    runs: Annotated[int, typer.Option("--runs", min=1, help="Agent runs of the day.")] = 2_000,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the day and of the plan of blows.")] = 1,
    kills: Annotated[int, typer.Option("--kills", min=0, max=1000, help="How many workers SIGKILL ends.")] = 12,
    dsn: Annotated[
        str | None,
        typer.Option(
            "--dsn",
            metavar="DSN",
            help="Server to work on, as a superuser; five databases are made on it and dropped. "
            "Default: an embedded one.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Admit, meter and settle a day of runs with five databases and thirteen processes, killed now and then.

    What happened is shown on standard error, the evidence on standard output. The exit code is 1 unless every account
    balances, nothing is lost and nothing happened twice. Nothing is left behind.
    """
    from rich.console import Console  # noqa: PLC0415 - for this command alone

    from oceanway.demo.run import DemoSettings, run_demo  # noqa: PLC0415 - as above

    settings = DemoSettings(runs=runs, seed=seed, kills=kills, server_dsn=dsn)
    evidence = run_demo(settings, Console(stderr=True))
    Output(as_json=as_json).emit({"holds": evidence.holds, "evidence": evidence.figures()}, evidence.line())
    return ExitCode.DONE if evidence.holds else ExitCode.FAILED
