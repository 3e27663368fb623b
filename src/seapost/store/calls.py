"""One round trip to one SQL function, with SQLSTATEs turned into exceptions.

Queries are `LiteralString`: no caller can build one from data. Results come in binary form as plain tuples, whatever
row factory and kind of cursor the user's connection has: a `ClientCursor`, which is Django's default, knows no binary
parameters. Where a result holds many identifiers, they are read by `store.uuids`, on our own cursor only; for a few,
telling the cursor would cost more than it saves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, LiteralString, TypeVar

from psycopg import AsyncCursor, Cursor
from psycopg.rows import class_row, tuple_row

from seapost.database.sqlstates import translated
from seapost.store.uuids import UUID_OID, UuidLoader

if TYPE_CHECKING:
    from collections.abc import Sequence

    import psycopg

Row = tuple[Any, ...]
RecordT = TypeVar("RecordT")


def call(connection: psycopg.Connection[Any], query: LiteralString, arguments: Sequence[object] = ()) -> list[Row]:
    """Run one statement on a sync connection and return its rows."""
    with translated():
        return Cursor(connection, row_factory=tuple_row).execute(query, arguments, binary=True).fetchall()


async def call_async(
    connection: psycopg.AsyncConnection[Any],
    query: LiteralString,
    arguments: Sequence[object] = (),
    *,
    many_identifiers: bool = False,
) -> list[Row]:
    """Run one statement on an async connection and return its rows."""
    with translated():
        cursor = AsyncCursor(connection, row_factory=tuple_row)
        if many_identifiers:
            cursor.adapters.register_loader(UUID_OID, UuidLoader)
        _ = await cursor.execute(query, arguments, binary=True)
        return await cursor.fetchall()


async def records_async(
    connection: psycopg.AsyncConnection[Any],
    kind: type[RecordT],
    query: LiteralString,
    arguments: Sequence[object] = (),
) -> list[RecordT]:
    """Run one read on an async connection and return its rows as `kind`, whose fields are named like the columns."""
    with translated():
        async with connection.cursor(row_factory=class_row(kind)) as cursor:
            _ = await cursor.execute(query, arguments)
            return await cursor.fetchall()
