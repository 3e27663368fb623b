"""`oceanway`: reads the command line, runs one command, and turns whatever happens into an exit code (F85).

Each command loads what it needs when it runs, so that a process of one owner never loads another one's code.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from oceanway.cli.commands import bench, cases, demo, gate, init, processes, prove, status, timeline
from oceanway.cli.exit_codes import ExitCode
from oceanway.cli.failures import failure_of
from seapost.cli.output import write_stdout
from seapost.cli.program import leave, run_program

app = typer.Typer(
    name="oceanway",
    help="A metered, prepaid run from reservation to receipt: five fact databases, joined by events and reads alone.",
    epilog="Settings come from OCEANWAY_… variables, then a TOML file. Exit codes: see the reference.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        from seapost.telemetry.metrics import release  # noqa: PLC0415 - for this option alone

        write_stdout(f"oceanway {release()}\n")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and end.")
    ] = False,
) -> None:
    pass


app.command("init")(init.init)
app.command("serve")(processes.serve)
app.command("dispatch")(processes.dispatch)
app.command("work")(processes.work)
app.command("status")(status.status)
app.command("prove")(prove.prove)
app.command("timeline")(timeline.timeline)
app.add_typer(cases.case_app, name="case")
app.add_typer(cases.late_app, name="late")
app.command("apply")(gate.apply)
app.add_typer(gate.gate_app, name="gate")
app.command("demo")(demo.demo)
app.command("bench")(bench.bench)


def main() -> None:
    """Entry point of the `oceanway` program."""
    leave(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> ExitCode:
    """Run one command line; returns its exit code and raises nothing."""
    return ExitCode(run_program(app, "oceanway", arguments, failure_of))
