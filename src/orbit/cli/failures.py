"""From an exception to one line for a person and an exit code for a program (F85).

What the kernel's program knows to tell, it tells here as well; only the exit codes are Orbit's, and the sentences that
name a command.
"""

from __future__ import annotations

from typing import Final

import psycopg

from orbit.cli.exit_codes import ExitCode
from orbit.model.codes import ErrorCode
from orbit.model.errors import OrbitError
from orbit.store.migrations import MigrationRefused
from seapost.cli import failures
from seapost.cli.exit_codes import ExitCode as KernelExitCode
from seapost.cli.failures import Failure

_OF_KERNEL: Final[dict[KernelExitCode, ExitCode]] = {
    KernelExitCode.USAGE: ExitCode.USAGE,
    KernelExitCode.SETTING: ExitCode.SETTING,
    KernelExitCode.UNREACHABLE: ExitCode.UNREACHABLE,
    KernelExitCode.SCHEMA: ExitCode.HISTORY,
    KernelExitCode.NOT_FOUND: ExitCode.NOT_FOUND,
    KernelExitCode.CHECK_FAILED: ExitCode.CHECK_FAILED,
    KernelExitCode.OUTPUT_LOST: ExitCode.OUTPUT_LOST,
}
_UNREACHABLE: Final = frozenset({ErrorCode.SERVICE_BUSY, ErrorCode.SERVICE_NOT_READY})


def failure_of(error: BaseException) -> Failure:
    """What to tell about an exception."""
    match error:
        case OrbitError():
            return Failure(_code_of(error.code), str(error.code), " ".join(f"{error.code}: {error.detail}".split()))
        case MigrationRefused():
            return Failure(ExitCode(error.exit_code), type(error).__name__, " ".join(str(error).split()))
        case psycopg.errors.UndefinedTable() | psycopg.errors.UndefinedFunction() | psycopg.errors.InvalidSchemaName():
            text = (error.diag.message_primary or "the schema is missing").removesuffix(".")
            message = f"The schema is not this release's: {text}; run `orbit migrate up`."
            return Failure(ExitCode.HISTORY, type(error).__name__, message)
        case BaseExceptionGroup():
            return failure_of(error.exceptions[0])  # a group exists only around its first cause
        case _:
            kernel = failures.failure_of(error)
            code = _OF_KERNEL.get(KernelExitCode(kernel.code), ExitCode.FAILED)
            return Failure(code, kernel.kind, kernel.message)


def _code_of(code: ErrorCode) -> ExitCode:
    if code in _UNREACHABLE:
        return ExitCode.UNREACHABLE
    return ExitCode.NOT_FOUND if code.endswith("_NOT_FOUND") else ExitCode.FAILED
