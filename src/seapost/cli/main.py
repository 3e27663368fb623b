"""`seapost`: reads the command line, runs one command, and turns whatever happens into an exit code (F85)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from seapost.cli.commands import (
    backpressure,
    contracts,
    delivery,
    dispatch,
    doctor,
    event,
    init,
    migrate,
    projection,
    quarantine,
    receipt,
    routes,
    serve,
    status,
)
from seapost.cli.exit_codes import ExitCode
from seapost.cli.failures import failure_of
from seapost.cli.output import write_stdout
from seapost.cli.program import leave, run_program
from seapost.telemetry.metrics import release

app = typer.Typer(
    name="seapost",
    help="Moves committed facts out of PostgreSQL to everyone who must have them, and believes only a durable receipt.",
    epilog="Settings come from flags, then SEAPOST_… variables, then a TOML file. Exit codes: see the reference.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        write_stdout(f"seapost {release()}\n")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and end.")
    ] = False,
) -> None:
    pass


app.command("init")(init.init)
app.command("migrate")(migrate.migrate)
app.command("doctor")(doctor.doctor)
app.add_typer(routes.app, name="routes")
app.command("dispatch")(dispatch.dispatch)
app.command("serve")(serve.serve)
app.command("status")(status.status)
app.add_typer(event.app, name="event")
app.add_typer(delivery.app, name="delivery")
app.add_typer(receipt.app, name="receipt")
app.add_typer(quarantine.app, name="quarantine")
app.add_typer(backpressure.app, name="backpressure")
app.add_typer(projection.app, name="projection")
app.add_typer(contracts.app, name="contracts")


def main() -> None:
    """Entry point of the `seapost` program."""
    leave(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> ExitCode:
    """Run one command line; returns its exit code and raises nothing."""
    return ExitCode(run_program(app, "seapost", arguments, failure_of))
