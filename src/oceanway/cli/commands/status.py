"""`oceanway status`: how each destination of each database stands."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from oceanway.cli.exit_codes import ExitCode
from oceanway.cli.options import ConfigOption, JsonOption
from oceanway.installation.layout import DISPATCHED, Database, Kind, process_of
from oceanway.installation.settings import Settings, load_settings
from seapost.cli.output import Output, Table
from seapost.database.pool import RoleTimeouts, configure_session_async, part_dsn

if TYPE_CHECKING:
    from seapost.store.status import DestinationRecord

LOOKING = RoleTimeouts(10.0, 5.0, 10.0)
"""A command that only looks gives up sooner than any work does (F83)."""
COLUMNS = ("database", "destination", "pending", "leased", "quarantined", "oldest seconds")


def status(config: ConfigOption = None, as_json: JsonOption = False) -> ExitCode:
    """Show what waits, what runs and what is quarantined, for each destination of each of the five databases.

    The exit code tells whether a delivery is quarantined and nobody has acknowledged that.
    """
    settings = load_settings(config)
    output = Output(as_json=as_json)
    records = asyncio.run(_look(settings))
    rows = [_row(database, record) for database, found in records.items() for record in found]
    document = {
        "destinations": [
            dict(
                zip(("database", "destination", "pending", "leased", "quarantined", "oldestSeconds"), row, strict=True)
            )
            for row in rows
        ]
    }
    output.emit(document, Table(COLUMNS, rows))
    return ExitCode.CHECK_FAILED if any(row[4] for row in rows) else ExitCode.DONE


async def _look(settings: Settings) -> dict[Database, list[DestinationRecord]]:
    from psycopg import AsyncConnection  # noqa: PLC0415 - for this command alone

    from seapost.store import status as store  # noqa: PLC0415 - as above

    found: dict[Database, list[DestinationRecord]] = {}
    for database in Database:
        dsn = part_dsn(settings.process_dsn(process_of(Kind.AUDIT, database.value)), "status", program="oceanway")
        async with await AsyncConnection.connect(dsn, autocommit=True) as connection:
            await configure_session_async(connection, LOOKING)
            every = await store.destinations(connection)
        found[database] = [one for one in every if one.destination in DISPATCHED[database]]
    return found


def _row(database: Database, record: DestinationRecord) -> tuple[Any, ...]:
    oldest = None if record.oldest_seconds is None else round(record.oldest_seconds, 1)
    return (
        database.value,
        record.destination,
        record.pending,
        record.leased,
        record.quarantined_unacknowledged,
        oldest,
    )
