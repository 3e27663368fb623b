"""Whether a view is the one in its file.

PostgreSQL keeps a view as a tree and writes it anew when asked, each major version a little differently. So the file's
own text is made into a temporary view beside it, the server writes both, and the transaction is rolled back. That
needs no right on any table, only TEMPORARY on the database, and a session that may write.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, LiteralString, cast

import psycopg

from seapost.database.doctor.finding import Finding, FindingKind, drift
from seapost.database.installer.objects import ObjectKind, SqlObject
from seapost.database.installer.statements import split
from seapost.database.installer.tree import SqlTree

if TYPE_CHECKING:
    from psycopg import AsyncConnection

_TEMPORARY: Final = "seapost_doctor_view"
_DEFINITION: Final = """
select pg_get_viewdef(c.oid)
from pg_class as c join pg_namespace as n on n.oid = c.relnamespace
where n.nspname = %s and c.relname = %s and c.relkind = 'v'"""
_TEMPORARY_DEFINITION: Final = """
select pg_get_viewdef(c.oid) from pg_class as c where c.relnamespace = pg_my_temp_schema() and c.relname = %s"""


class _Refused(Exception):
    """This session may not make temporary views."""


async def view_findings(
    connection: AsyncConnection, tree: SqlTree, objects: Iterable[SqlObject]
) -> AsyncGenerator[Finding]:
    """Yield the views whose definition is not that of their file; a missing view is told elsewhere."""
    for one in objects:
        if one.key.kind is not ObjectKind.VIEW:
            continue
        live = await _text(connection, _DEFINITION, (tree.schema, one.key.name))
        if live is None:
            continue
        try:
            wanted = await _written_by_server(connection, _statement(tree, one), live)
        except _Refused as refused:
            yield Finding(FindingKind.UNSEEN, "views", f"the definitions of views could not be compared: {refused}")
            return
        except psycopg.Error as error:
            message = error.diag.message_primary or type(error).__name__
            yield drift(f"view {one.key.name}", "definition", "that of its file", f"one that cannot be made: {message}")
            continue
        if wanted != live:
            yield drift(f"view {one.key.name}", "definition", wanted, live)


def _statement(tree: SqlTree, one: SqlObject) -> str:
    """The text of the file as a temporary view."""
    name = re.compile(rf"^create\s+view\s+{re.escape(tree.schema)}\.{re.escape(one.key.name)}\b", re.IGNORECASE)
    for statement in split(one.text):
        text, count = name.subn(f"create temporary view {_TEMPORARY}", statement)
        if count:
            return text
    raise ValueError(f"the file of {one.label} creates no view of that name")


async def _written_by_server(connection: AsyncConnection, statement: str, live: str) -> str:
    """What the server writes for `statement`; after a dump and restore, what it writes for its own writing."""
    async with _temporary_view(connection, statement) as first:
        if first == live:
            return first
    async with _temporary_view(connection, f"create temporary view {_TEMPORARY} as {first}") as second:
        return live if second == live else first


@asynccontextmanager
async def _temporary_view(connection: AsyncConnection, statement: str) -> AsyncGenerator[str]:
    """A temporary view and how the server writes it; gone with the block."""
    async with connection.transaction(force_rollback=True):
        try:
            await connection.execute(cast("LiteralString", statement))
        except (psycopg.errors.InsufficientPrivilege, psycopg.errors.ReadOnlySqlTransaction) as error:
            raise _Refused(error.diag.message_primary) from error
        yield await _text(connection, _TEMPORARY_DEFINITION, (_TEMPORARY,)) or ""


async def _text(connection: AsyncConnection, query: LiteralString, arguments: tuple[str, ...]) -> str | None:
    row = await (await connection.execute(query, arguments)).fetchone()
    return None if row is None else str(row[0])
