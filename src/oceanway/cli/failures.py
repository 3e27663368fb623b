"""From an exception to one line for a person and an exit code for a program (F85)."""

from __future__ import annotations

import psycopg

from oceanway.cli.exit_codes import ExitCode
from oceanway.installation.errors import ReleaseIncomplete
from seapost.cli import failures
from seapost.cli.failures import Failure


def failure_of(error: BaseException) -> Failure:
    """What to tell about an exception; what the kernel's program knows to tell, it tells here as well."""
    match error:
        case ReleaseIncomplete():
            return Failure(ExitCode.RELEASE, type(error).__name__, " ".join(str(error).split()))
        case psycopg.errors.UndefinedTable() | psycopg.errors.UndefinedFunction() | psycopg.errors.InvalidSchemaName():
            text = (error.diag.message_primary or "the schema is missing").removesuffix(".")
            message = f"The schema is not this release's: {text}; run `oceanway init`."
            return Failure(ExitCode.SCHEMA, type(error).__name__, message)
        case BaseExceptionGroup():
            return failure_of(error.exceptions[0])  # a group exists only around its first cause
        case _:
            kernel = failures.failure_of(error)
            known = {int(code) for code in ExitCode}
            code = ExitCode(kernel.code) if int(kernel.code) in known else ExitCode.FAILED
            return Failure(code, kernel.kind, kernel.message)
