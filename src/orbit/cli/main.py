"""`orbit`: reads the command line, runs one command, and turns whatever happens into an exit code (F85)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from orbit.cli.commands import bench, credentials, demo, events, history, limits, migrate, serve, tasks
from orbit.cli.exit_codes import ExitCode
from orbit.cli.failures import failure_of
from seapost.cli.output import write_stdout
from seapost.cli.program import leave, run_program
from seapost.telemetry.metrics import release

app = typer.Typer(
    name="orbit",
    help="A task platform whose results reach outside consumers through durable subscriptions.",
    epilog="The database comes from --dsn or ORBIT_DATABASE_URL. Exit codes: see the reference.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        write_stdout(f"orbit {release()}\n")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and end.")
    ] = False,
) -> None:
    pass


app.command("bootstrap")(credentials.bootstrap)
app.add_typer(migrate.app, name="migrate")
app.command("serve")(serve.serve)
app.add_typer(tasks.app, name="tasks")
app.add_typer(credentials.app, name="credentials")
app.add_typer(limits.queues, name="queues")
app.add_typer(limits.quotas, name="quotas")
events.app.command("verify")(history.verify)
events.app.command("export")(history.export)
app.add_typer(events.app, name="events")
app.add_typer(bench.app, name="bench")
app.command("demo")(demo.demo)


def main() -> None:
    """Entry point of the `orbit` program."""
    leave(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> ExitCode:
    """Run one command line; returns its exit code and raises nothing."""
    return ExitCode(run_program(app, "orbit", arguments, failure_of))
