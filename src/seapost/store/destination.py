"""Operational settings of destinations (`functions/destination/`); they are part of no delivery set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seapost.store.calls import call_async

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.AsyncConnection[Any]


async def fair_lanes(connection: Connection) -> dict[str, int]:
    """The fair lanes of each destination that was ever given more than one."""
    rows = await call_async(connection, "select destination, fair_lanes from seapost.destination_settings")
    return {row[0]: row[1] for row in rows}


async def set_fair_lanes(connection: Connection, *, destination: str, fair_lanes: int, actor: str) -> None:
    """Spread new events of a destination over so many lanes by their tenant; 1 keeps one queue (F23).

    Raises:
        InvalidArgument: not 1 to 256 lanes, no registered destination, or no actor.
    """
    _ = await call_async(
        connection,
        "select seapost.destination_set_fair_lanes_v1(%s, %s::int, %s)",
        (destination, fair_lanes, actor),
    )
