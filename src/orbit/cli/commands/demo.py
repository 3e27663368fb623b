"""`orbit demo`: real flights as tasks, subscribers under a chaos loop, and the evidence that nothing was lost."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console

from orbit.cli.commands.history import verdict_document
from orbit.cli.exit_codes import ExitCode
from orbit.cli.extras import require
from orbit.cli.options import JsonOption
from seapost.cli.output import Output


def demo(
    flights: Annotated[int, typer.Option("--flights", min=1, help="Flights that become tasks.")] = 800,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the plan of blows.")] = 1,
    kills: Annotated[
        int, typer.Option("--kills", min=0, max=1000, help="How often one subscriber is killed; the rest come on top.")
    ] = 8,
    dsn: Annotated[
        str | None,
        typer.Option(
            "--dsn",
            metavar="DSN",
            help="Server to work on, as a superuser; a database is made on it and dropped. Default: an embedded one.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Confirm results while workers, subscribers and the server are killed, and check what came of it.

    What happened is shown on standard error, the evidence on standard output. The exit code is 1 when a promise was
    broken. Nothing is left behind.
    """
    require("demo", "server,embedded", "fastapi", "uvicorn", "websockets")
    from orbit.demo.run import DemoSettings, run_demo  # noqa: PLC0415 - needs the extra `server`

    settings = DemoSettings(flights=flights, seed=seed, kills=kills, server_dsn=dsn)
    outcome = run_demo(settings, Console(stderr=True))
    document = {
        "holds": outcome.holds,
        "evidence": asdict(outcome.evidence),
        "history": verdict_document(outcome.verdict),
    }
    Output(as_json=as_json).emit(document, outcome.evidence.line())
    return ExitCode.DONE if outcome.holds else ExitCode.FAILED
