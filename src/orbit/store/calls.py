"""One round trip to one SQL function, with SQLSTATEs of class `OB` turned into `OrbitError`.

Queries are `LiteralString`: no caller can build one from data. Results come in binary form as plain tuples. Connections
are in autocommit mode, so one call is one transaction (LCK-14).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, LiteralString, cast

import psycopg
from psycopg import AsyncCursor
from psycopg.rows import tuple_row

from orbit.model.codes import CODE_OF_SQLSTATE
from orbit.model.errors import OrbitError

if TYPE_CHECKING:
    from collections.abc import Sequence

Row = tuple[Any, ...]


async def call(
    connection: psycopg.AsyncConnection[Any], query: LiteralString, arguments: Sequence[object] = ()
) -> list[Row]:
    """Run one statement and return its rows.

    Raises:
        OrbitError: the function refused, with the detail and the extension members that it raised.
        psycopg.Error: any other error of the database; `store.database` knows which of them to repeat.
    """
    cursor = AsyncCursor(connection, row_factory=tuple_row)
    try:
        _ = await cursor.execute(query, arguments, binary=True)
        return await cursor.fetchall()
    except psycopg.Error as error:
        refused = orbit_error(error)
        if refused is None:
            raise
        raise refused from error


def orbit_error(error: psycopg.Error) -> OrbitError | None:
    """What a database function meant by an error, or None when the error is not one of ours."""
    code = CODE_OF_SQLSTATE.get(error.sqlstate or "")
    if code is None:
        return None
    detail = error.diag.message_detail
    members = cast("dict[str, object]", json.loads(detail)) if detail else {}
    return OrbitError(code, error.diag.message_primary, **members)
