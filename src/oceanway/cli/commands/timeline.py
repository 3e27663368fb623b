"""`oceanway timeline`: everything that operations knows of one run, by one exact identifier."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, cast

import psycopg
import typer

from oceanway.cli.exit_codes import ExitCode
from oceanway.cli.options import ConfigOption, JsonOption
from oceanway.installation.layout import Database, Kind, process_of
from oceanway.installation.settings import load_settings
from seapost.cli.output import Block, Fields, Output, Table
from seapost.database.pool import RoleTimeouts, configure_session, part_dsn

LOOKING = RoleTimeouts(10.0, 5.0, 10.0)
"""A command that only looks gives up sooner than any work does (F83)."""


NOTHING = "nothing is known under this identifier"


class Identifier(StrEnum):
    """What can be named."""

    RUN = "run"
    RESERVATION = "reservation"
    ACCOUNT = "account"
    STEP = "step"
    ATTEMPT = "attempt"
    DIMENSION = "dimension"
    FENCE = "fence"
    CASE = "case"
    EVENT = "event"


class Audience(StrEnum):
    """For whom it is shown."""

    OPERATOR = "operator"
    SUPPORT = "support"
    AUDITOR = "auditor"


def timeline(
    kind: Annotated[Identifier, typer.Argument(metavar="KIND", help=f"One of {', '.join(Identifier)}.")],
    value: Annotated[str, typer.Argument(metavar="IDENTIFIER", help="The complete identifier.")],
    audience: Annotated[
        Audience,
        typer.Option("--as", metavar="WHO", help=f"One of {', '.join(Audience)}; hides what they may not see."),
    ] = Audience.AUDITOR,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Show the timeline of each operation that an exact identifier belongs to. There is no search and no list."""
    from oceanway.operations import queries  # noqa: PLC0415 - for this command alone

    settings = load_settings(config)
    dsn = settings.process_dsn(process_of(Kind.DRIVE, Database.CORE.value))
    with psycopg.connect(part_dsn(dsn, "timeline", program="oceanway"), autocommit=True) as connection:
        configure_session(connection, LOOKING)
        found = queries.find(connection, queries.IdentifierKind(kind.value), value, queries.Audience(audience.value))
    document = {"operations": list(found.operations), "truncated": found.truncated}
    blocks = [block for operation in found.operations for block in _blocks(operation)]
    Output(as_json=as_json).emit(document, *(blocks or [NOTHING]))
    return ExitCode.DONE if found.operations else ExitCode.NOT_FOUND


def _blocks(operation: dict[str, Any]) -> list[Block]:
    """The plain fields of an operation, those one level down included, then each list of records as a table."""
    plain: dict[str, object] = {}
    tables: list[Block] = []
    for name, value in operation.items():
        match value:
            case dict():
                plain |= {f"{name}.{key}": below for key, below in cast("dict[str, object]", value).items()}
            case [dict(), *_]:
                tables.append(_table(name, cast("list[dict[str, object]]", value)))
            case _:
                plain[name] = value
    return [Fields(plain), *tables]


def _table(title: str, records: list[dict[str, object]]) -> Table:
    columns = tuple(dict.fromkeys(key for record in records for key in record))
    return Table(columns, [[record.get(key) for key in columns] for record in records], title)
