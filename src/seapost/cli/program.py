"""What every program of this project does around its commands: run one, and turn whatever happens into an exit code.

A person meets one line and never a traceback; a program meets an exit code and, with `--json`, one document (F85).
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, NoReturn

import typer
from typer.main import get_command

from seapost.cli.failures import Failure, debugging
from seapost.cli.output import StdoutClosed, to_json, write_stderr, write_stdout

DONE: Final = 0
FAILED: Final = 1
INTERRUPTED: Final = 130
"""The three exit codes that mean the same in every program."""


def run_program(
    app: typer.Typer, name: str, arguments: Sequence[str], failure_of: Callable[[BaseException], Failure]
) -> int:
    """Run one command line; return its exit code and raise nothing.

    Args:
        app: the commands.
        name: the program's name, which opens each line of standard error.
        arguments: the command line without the program.
        failure_of: what to tell about an exception.
    """
    try:
        answer = get_command(app).main(args=list(arguments), prog_name=name, standalone_mode=False)
        write_stdout("")
    except StdoutClosed:
        _silence_stdout()
        return DONE
    except SystemExit as exit_:
        if isinstance(exit_.__context__, BrokenPipeError):  # the help text met a closed pipe
            _silence_stdout()
            return DONE
        return DONE if exit_.code in {None, 0} else FAILED
    except (KeyboardInterrupt, typer.Abort):
        write_stderr(f"{name}: interrupted")
        return INTERRUPTED
    except BaseException as error:  # noqa: BLE001 - the border of the program: a person must not meet a traceback
        return _report(name, error, failure_of(error), as_json="--json" in arguments)
    if answer == INTERRUPTED:
        write_stderr(f"{name}: interrupted")
    return int(answer) if isinstance(answer, int) else DONE


def leave(code: int) -> NoReturn:
    """End the process; what a library left unflushed must not change the exit code at the very end."""
    if code != DONE:
        _silence_stdout()
    sys.exit(code)


def _report(name: str, error: BaseException, failure: Failure, *, as_json: bool) -> int:
    if debugging():
        traceback.print_exception(error)
    write_stderr(f"{name}: {failure.message}")
    if as_json:
        with suppress(Exception):  # the exit code already tells; a lost output changes nothing more
            write_stdout(to_json(failure.to_json()) + "\n")
    return int(failure.code)


def _silence_stdout() -> None:
    """Let the interpreter's last flush go nowhere instead of failing."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
