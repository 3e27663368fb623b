"""Start-up check: does this database hold the schema that this release was written for?"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from psycopg import AsyncConnection, Connection, sql

from seapost.database.installer.migrations import MigrationKey, Phase
from seapost.database.installer.objects import ObjectKind
from seapost.database.installer.plan import refuse_changed, refuse_gap, refuse_newer
from seapost.database.installer.state import AppliedMigration, SchemaState
from seapost.database.installer.tree import Shipment, SqlTree, packaged_tree, read_tree
from seapost.model.errors import SchemaMissing

_VIEW_EXISTS: Final = """
select exists (
    select from pg_catalog.pg_class as c join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
    where n.nspname = %s and c.relname = 'schema_versions')"""
_FUNCTIONS: Final = """
select p.proname::text
from pg_catalog.pg_proc as p join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
where n.nspname = %s"""


def _versions(tree: SqlTree) -> sql.Composed:
    return sql.SQL("select number, phase, name, checksum, release, finished_at is null from {}").format(
        sql.Identifier(tree.schema, "schema_versions")
    )


@lru_cache(maxsize=1)
def _packaged_shipment() -> Shipment:
    return read_tree(packaged_tree())


def _shipment(tree: SqlTree | Shipment | None) -> Shipment:
    if isinstance(tree, Shipment):
        return tree
    return _packaged_shipment() if tree is None else read_tree(tree)


def check_schema(connection: Connection, *, tree: SqlTree | Shipment | None = None) -> None:
    """Refuse to work on another schema than this release knows; any of our roles may ask.

    `tree` is the kernel's by default; who asks often passes one that was read already (`read_tree`).

    Raises:
        SchemaMissing: nothing is installed, or a `pre` migration or a function of this release is missing.
        SchemaNewer: a newer release has migrated the database (F62).
        MigrationChanged: the database has another history.
    """
    shipment = _shipment(tree)
    schema = shipment.tree.schema
    row = connection.execute(_VIEW_EXISTS, (schema,)).fetchone()
    if row is None or not row[0]:
        raise SchemaMissing
    versions = connection.execute(_versions(shipment.tree)).fetchall()
    functions = connection.execute(_FUNCTIONS, (schema,)).fetchall()
    _judge(shipment, versions, (str(one[0]) for one in functions))


async def check_schema_async(connection: AsyncConnection, *, tree: SqlTree | Shipment | None = None) -> None:
    """Asynchronous twin of `check_schema`."""
    shipment = _shipment(tree)
    schema = shipment.tree.schema
    row = await (await connection.execute(_VIEW_EXISTS, (schema,))).fetchone()
    if row is None or not row[0]:
        raise SchemaMissing
    versions = await (await connection.execute(_versions(shipment.tree))).fetchall()
    functions = await (await connection.execute(_FUNCTIONS, (schema,))).fetchall()
    _judge(shipment, versions, (str(one[0]) for one in functions))


async def read_history_async(connection: AsyncConnection, tree: SqlTree) -> SchemaState:
    """The migrations that were applied, as any of our roles may read them."""
    return _history(await (await connection.execute(_versions(tree))).fetchall())


def _history(rows: Iterable[tuple[int, str, str, str, str, bool]]) -> SchemaState:
    migrations: dict[MigrationKey, AppliedMigration] = {}
    for number, phase, name, checksum, release, dirty in rows:
        key = MigrationKey(number, 0 if phase == Phase.PRE else 1)
        migrations[key] = AppliedMigration(key, name, checksum, release, dirty)
    return SchemaState(missing_roles=frozenset(), migrations=migrations)


def _judge(shipment: Shipment, rows: Iterable[tuple[int, str, str, str, str, bool]], functions: Iterable[str]) -> None:
    state = _history(rows)
    refuse_newer(shipment, state)
    refuse_changed(shipment, state)
    refuse_gap(shipment, state)
    for migration in shipment.migrations:
        if migration.phase is Phase.PRE:
            applied = state.migrations.get(migration.key)
            if applied is None or applied.dirty:
                raise SchemaMissing(detail=f"migration {migration.label} is missing")
    shipped = {one.key.name for one in shipment.objects if one.key.kind is ObjectKind.FUNCTION}
    missing = sorted(shipped.difference(functions))
    if missing:
        raise SchemaMissing(detail=f"function {missing[0]} is missing")
