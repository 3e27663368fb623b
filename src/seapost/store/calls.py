"""One round trip to one SQL function, with SQLSTATEs turned into exceptions.

Queries are `LiteralString`: no caller can build one from data. Results come in binary form as plain tuples, whatever
row factory the user's connection has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, LiteralString, TypeVar

from psycopg.rows import class_row, tuple_row

from seapost.database.sqlstates import translated

if TYPE_CHECKING:
    from collections.abc import Sequence

    import psycopg

Row = tuple[Any, ...]
RecordT = TypeVar("RecordT")


def call(connection: psycopg.Connection[Any], query: LiteralString, arguments: Sequence[object] = ()) -> list[Row]:
    """Run one statement on a sync connection and return its rows."""
    with translated(), connection.cursor(row_factory=tuple_row, binary=True) as cursor:
        return cursor.execute(query, arguments).fetchall()


async def call_async(
    connection: psycopg.AsyncConnection[Any], query: LiteralString, arguments: Sequence[object] = ()
) -> list[Row]:
    """Run one statement on an async connection and return its rows."""
    with translated():
        async with connection.cursor(row_factory=tuple_row, binary=True) as cursor:
            _ = await cursor.execute(query, arguments)
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
