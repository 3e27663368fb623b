"""How readers follow the pointer: always one version, old or new, never neither.

Readers that ask one question use a switching view: the branch of a version that is not current is not even scanned,
because its condition is known before the first row. Readers that ask several take one snapshot, or ask for the version
first and read its tables: they stay where they are until its rollback time has passed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from psycopg import sql

from seapost.contracts.identifiers import check_name, check_version
from seapost.store import projection_cutover as store

if TYPE_CHECKING:
    from uuid import UUID

    from psycopg import Connection


def current(connection: Connection[Any], name: str) -> str | None:
    """The version of a projection that is read now; None when the projection is not known here."""
    return store.current(connection, name=name)


def applied(connection: Connection[Any], name: str, event_ids: Sequence[UUID]) -> bool:
    """Whether the version that is read now has applied all of these events: read your own writes (F41)."""
    _, is_applied = store.applied(connection, name=name, event_ids=event_ids)
    return is_applied


def switching_view(view: str, name: str, tables: Mapping[str, str]) -> sql.Composed:
    """The statement that makes a view of whichever version is current.

    Args:
        view: `schema.view` to make.
        name: of the projection.
        tables: `schema.table` of each version; they must have the same columns.
    """
    check_name(name, "/projectionName")
    branches = [
        sql.SQL("select * from {table} where (select seapost.projection_current({name})) = {version}").format(
            table=sql.Identifier(*table.split(".")),
            name=sql.Literal(name),
            version=sql.Literal(check_version(version, "/projectionVersion")),
        )
        for version, table in tables.items()
    ]
    return sql.SQL("create or replace view {view} as {branches}").format(
        view=sql.Identifier(*view.split(".")), branches=sql.SQL(" union all ").join(branches)
    )
