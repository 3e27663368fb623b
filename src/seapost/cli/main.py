"""`seapost`: reads the command line, runs one command, and turns whatever happens into an exit code (F85)."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated

import typer
from typer.main import get_command

from seapost.cli.commands import (
    backpressure,
    contracts,
    delivery,
    dispatch,
    doctor,
    event,
    init,
    migrate,
    quarantine,
    receipt,
    routes,
    serve,
    status,
)
from seapost.cli.exit_codes import ExitCode
from seapost.cli.failures import debugging, failure_of
from seapost.cli.output import StdoutClosed, to_json, write_stderr, write_stdout
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
app.add_typer(contracts.app, name="contracts")


def main() -> None:
    """Entry point of the `seapost` program."""
    code = run(sys.argv[1:])
    if code is not ExitCode.DONE:
        # What a library left unflushed must not change the exit code at the very end.
        _silence_stdout()
    sys.exit(int(code))


def run(arguments: Sequence[str]) -> ExitCode:
    """Run one command line; returns its exit code and raises nothing."""
    try:
        answer = get_command(app).main(args=list(arguments), prog_name="seapost", standalone_mode=False)
        write_stdout("")
    except StdoutClosed:
        _silence_stdout()
        return ExitCode.DONE
    except SystemExit as exit_:
        if isinstance(exit_.__context__, BrokenPipeError):  # the help text met a closed pipe
            _silence_stdout()
            return ExitCode.DONE
        return ExitCode.DONE if exit_.code in {None, 0} else ExitCode.FAILED
    except (KeyboardInterrupt, typer.Abort):
        write_stderr("seapost: interrupted")
        return ExitCode.INTERRUPTED
    except BaseException as error:  # noqa: BLE001 - the border of the program: a person must not meet a traceback
        return _report(error, as_json="--json" in arguments)
    if answer == ExitCode.INTERRUPTED:
        write_stderr("seapost: interrupted")
    return ExitCode(answer) if isinstance(answer, int) else ExitCode.DONE


def _report(error: BaseException, *, as_json: bool) -> ExitCode:
    failure = failure_of(error)
    if debugging():
        traceback.print_exception(error)
    write_stderr(f"seapost: {failure.message}")
    if as_json:
        with suppress(Exception):  # the exit code already tells; a lost output changes nothing more
            write_stdout(to_json(failure.to_json()) + "\n")
    return failure.code


def _silence_stdout() -> None:
    """Let the interpreter's last flush go nowhere instead of failing."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
