"""From exceptions to exit codes: each kind has one, and the message is one line without a traceback."""

from __future__ import annotations

import psycopg
import pytest

from seapost.cli.exit_codes import MEANINGS, ExitCode
from seapost.cli.failures import failure_of
from seapost.cli.output import OutputLost
from seapost.model import errors
from seapost.model.errors import SeapostError


@pytest.mark.req("F85")
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.InvalidSetting("database.dsn: missing"), ExitCode.SETTING),
        (errors.SchemaMissing(), ExitCode.SCHEMA),
        (errors.SchemaNewer(), ExitCode.SCHEMA),
        (errors.MigrationDirty(), ExitCode.SCHEMA),
        (errors.MigrationBlocked(), ExitCode.UNREACHABLE),
        (errors.UnknownEvent(), ExitCode.NOT_FOUND),
        (errors.DeliverySetConflict(), ExitCode.FAILED),
        (OutputLost(detail="No space left on device"), ExitCode.OUTPUT_LOST),
        (psycopg.OperationalError("connection refused\n\tIs it running?"), ExitCode.UNREACHABLE),
        (psycopg.errors.QueryCanceled("canceling statement due to statement timeout"), ExitCode.UNREACHABLE),
        (psycopg.errors.InsufficientPrivilege("permission denied for view destination_status"), ExitCode.FAILED),
        (psycopg.errors.UndefinedTable("relation does not exist"), ExitCode.SCHEMA),
        (psycopg.errors.DivisionByZero("division by zero"), ExitCode.FAILED),
        (FileNotFoundError(2, "No such file or directory", "receipt.json"), ExitCode.FAILED),
        (RuntimeError("unforeseen\nand long"), ExitCode.FAILED),
        (ExceptionGroup("group", [errors.SchemaMissing()]), ExitCode.SCHEMA),
    ],
)
def test_each_failure_has_its_code_and_one_line(error: BaseException, code: ExitCode) -> None:
    """No failure ends with 0, and its message is one readable line."""
    failure = failure_of(error)
    assert failure.code is code
    assert failure.code is not ExitCode.DONE
    assert failure.message
    assert "\n" not in failure.message
    assert "Traceback" not in failure.message
    document = failure.to_json()["error"]
    assert document == {"kind": failure.kind, "message": failure.message, "exitCode": int(code)}


def test_a_refusal_of_rights_says_what_helps() -> None:
    """Whoever lacks a right is told what to grant, in the words of the database."""
    message = failure_of(psycopg.errors.InsufficientPrivilege("permission denied for view audit_places")).message
    assert "audit_places" in message
    assert "Grant" in message


@pytest.mark.req("F85")
def test_every_code_is_explained() -> None:
    """The table that the reference page shows has a sentence for each code, and codes are distinct."""
    assert set(MEANINGS) == set(ExitCode)
    assert all(text.endswith(".") for text in MEANINGS.values())


@pytest.mark.req("F85")
def test_every_error_of_ours_has_a_code_other_than_done() -> None:
    """A new error class can never make a command look successful."""
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, SeapostError)]
    assert kinds
    assert all(failure_of(kind("text")).code is not ExitCode.DONE for kind in kinds)
