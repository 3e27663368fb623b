"""From an exception to one line for a person and an exit code for a program; never a traceback (F85)."""

from __future__ import annotations

import os
import traceback
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import psycopg
import typer

from seapost.cli.exit_codes import ExitCode
from seapost.cli.output import OutputLost
from seapost.model import errors
from seapost.model.errors import SeapostError

DEBUG_VARIABLE: Final = "SEAPOST_DEBUG"
"""Set to 1, an unexpected error also shows where it came from: for a report, never for daily use."""

_CODES: Final[tuple[tuple[type[SeapostError], ExitCode], ...]] = (
    (OutputLost, ExitCode.OUTPUT_LOST),
    (errors.InvalidSetting, ExitCode.SETTING),
    (errors.SchemaMissing, ExitCode.SCHEMA),
    (errors.SchemaNewer, ExitCode.SCHEMA),
    (errors.MigrationDirty, ExitCode.SCHEMA),
    (errors.MigrationChanged, ExitCode.SCHEMA),
    (errors.UnsupportedDatabase, ExitCode.SCHEMA),
    (errors.MigrationBlocked, ExitCode.UNREACHABLE),
    (errors.UnknownEvent, ExitCode.NOT_FOUND),
    (errors.UnknownDelivery, ExitCode.NOT_FOUND),
    (errors.UnknownDeliverySet, ExitCode.NOT_FOUND),
    (errors.NoActiveDeliverySet, ExitCode.NOT_FOUND),
)


@dataclass(frozen=True, slots=True)
class Failure:
    """How a command failed: `kind` is the error's class, which the errors page of the reference explains."""

    code: IntEnum
    kind: str
    message: str

    def to_json(self) -> dict[str, object]:
        """The failure for a program."""
        return {"error": {"kind": self.kind, "message": self.message, "exitCode": int(self.code)}}


def failure_of(error: BaseException) -> Failure:
    """What to tell about an exception; messages of unexpected ones are told too, for nobody else will see them."""
    match error:
        case SeapostError():
            return Failure(_code_of(error), type(error).__name__, _one_line(str(error)))
        case typer.TyperException():
            return Failure(ExitCode.USAGE, "UsageError", _one_line(error.format_message()))
        case psycopg.Error():
            return _database_failure(error)
        case BaseExceptionGroup():
            return failure_of(error.exceptions[0])  # a group exists only around its first cause
        case OSError():
            name = f"{error.filename}: " if error.filename else ""
            text = error.strerror or str(error) or type(error).__name__
            return Failure(ExitCode.FAILED, type(error).__name__, _one_line(f"{name}{text}"))
        case _:
            kind = type(error).__name__
            where = _place(error)
            return Failure(ExitCode.FAILED, kind, _one_line(f"Unexpected {kind}: {error}{where}"))


def _code_of(error: SeapostError) -> ExitCode:
    return next((code for kind, code in _CODES if isinstance(error, kind)), ExitCode.FAILED)


def _database_failure(error: psycopg.Error) -> Failure:
    kind = type(error).__name__
    text = _one_line(error.diag.message_primary or str(error)).removesuffix(".")
    match error:
        case psycopg.errors.InsufficientPrivilege():
            message = (
                f"The database refuses: {text}. Grant the login role what the command needs, or set database.role."
            )
            return Failure(ExitCode.FAILED, kind, message)
        case psycopg.errors.QueryCanceled() | psycopg.errors.LockNotAvailable():
            return Failure(ExitCode.UNREACHABLE, kind, f"The database did not answer in time: {text}.")
        case psycopg.errors.UndefinedTable() | psycopg.errors.UndefinedFunction() | psycopg.errors.InvalidSchemaName():
            return Failure(ExitCode.SCHEMA, kind, f"The schema is not this release's: {text}; run `seapost migrate`.")
        case psycopg.OperationalError():
            return Failure(ExitCode.UNREACHABLE, kind, f"The database cannot be reached: {text}.")
        case _:
            return Failure(ExitCode.FAILED, kind, f"The database refuses: {text} (SQLSTATE {error.sqlstate}).")


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return ""
    return f" (in {frames[-1].name}; set {DEBUG_VARIABLE}=1 to see where, and report it)"


def debugging() -> bool:
    """Whether somebody looks for the place of an unexpected error."""
    return os.environ.get(DEBUG_VARIABLE) == "1"


def _one_line(text: str) -> str:
    return " ".join(text.split())
