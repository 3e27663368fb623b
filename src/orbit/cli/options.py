"""Options that several commands share, so that they are called and explained alike."""

from __future__ import annotations

import os
from typing import Annotated, Final

import typer

from seapost.cli.options import JsonOption
from seapost.database.pool import check_dsn
from seapost.model.errors import InvalidSetting

__all__ = [
    "DATABASE_VARIABLE",
    "ApplicationOption",
    "DsnOption",
    "JsonOption",
    "NamespaceOption",
    "SomeNamespaceOption",
    "dsn_of",
]

DATABASE_VARIABLE: Final = "ORBIT_DATABASE_URL"

DsnOption = Annotated[
    str | None,
    typer.Option(
        "--dsn",
        metavar="DSN",
        help=f"Database to work on; by default {DATABASE_VARIABLE}. A password belongs into that variable or "
        "PGPASSWORD, where no list of processes shows it.",
    ),
]
NamespaceOption = Annotated[str, typer.Option("--namespace", metavar="N", help="Name of the namespace.")]
SomeNamespaceOption = Annotated[
    str | None, typer.Option("--namespace", metavar="N", help="Needed when several have such an application.")
]
ApplicationOption = Annotated[str, typer.Option("--application", metavar="A", help="Name of the application.")]


def dsn_of(given: str | None) -> str:
    """The connection string of a flag, else of the environment.

    Raises:
        InvalidSetting: there is none, or it cannot be read; it is never quoted.
    """
    found = given or os.environ.get(DATABASE_VARIABLE)
    if not found:
        raise InvalidSetting(f"No database is named; set {DATABASE_VARIABLE} or give --dsn.")
    return check_dsn(found)
