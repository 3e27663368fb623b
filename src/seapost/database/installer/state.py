"""What the installer remembers in a database, read and written: `schema_migration` and `schema_object`.

These two tables exist before any database function does, so this file is the one place outside the SQL
folder that writes rows. All other tables are written by database functions only.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import metadata, resources
from typing import TYPE_CHECKING, Final, LiteralString, cast

import psycopg
from psycopg import Connection, sql

from seapost.database.installer.migrations import Migration, MigrationKey, checksum_of, read_sql
from seapost.database.installer.objects import ObjectKey, ObjectKind, SqlObject
from seapost.database.installer.tree import SqlTree

if TYPE_CHECKING:
    from collections.abc import Mapping

BOOTSTRAP: Final = "bootstrap"
ROLES: Final = "roles"

_EXISTING: Final = """
select 'function' as kind, p.proname as name
from pg_catalog.pg_proc as p join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
where n.nspname = %(schema)s
union
select 'view', c.relname
from pg_catalog.pg_class as c join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
where n.nspname = %(schema)s and c.relkind in ('v', 'm')"""
_MIGRATIONS: Final = "select number, phase, name, checksum, release, finished_at is null as dirty from {}"
_OBJECTS: Final = "select kind, name, checksum from {}"
_RECORD_MIGRATION: Final = """
insert into {} as m (number, phase, name, checksum, release, finished_at)
values (%(number)s, %(phase)s, %(name)s, %(checksum)s, %(release)s,
        case when %(finished)s then clock_timestamp() end)
on conflict (number, phase) do update
set name = excluded.name, checksum = excluded.checksum, release = excluded.release,
    finished_at = excluded.finished_at"""
_RECORD_RESOLUTION: Final = """
insert into {} (number, phase, started_at, state, reason)
select m.number, m.phase, m.applied_at, %(state)s, %(reason)s
from {} as m
where m.number = %(number)s and m.phase = %(phase)s and m.finished_at is null"""
_END_MARKER: Final = """
update {} as m set finished_at = clock_timestamp()
where m.number = %(number)s and m.phase = %(phase)s and m.finished_at is null"""
_REMOVE_MARKER: Final = """
delete from {} as m
where m.number = %(number)s and m.phase = %(phase)s and m.finished_at is null"""
_RECORD_OBJECT: Final = """
insert into {} as o (kind, name, checksum, release)
values (%(kind)s, %(name)s, %(checksum)s, %(release)s)
on conflict (kind, name) do update
set checksum = excluded.checksum, release = excluded.release, applied_at = clock_timestamp()"""
_FORGET_OBJECTS: Final = "delete from {} where kind = %(kind)s and name = any(%(names)s)"


@dataclass(frozen=True, slots=True)
class AppliedMigration:
    """One row of `schema_migration`; `dirty` began outside a transaction and did not end."""

    key: MigrationKey
    name: str
    checksum: str
    release: str
    dirty: bool

    @property
    def label(self) -> str:
        """File name without the ending, as it was when it ran."""
        return f"{self.key.number:04d}_{self.name}.{self.key.phase}"


@dataclass(frozen=True, slots=True)
class SchemaState:
    """What one database holds of one schema.

    Attributes:
        bootstrap: checksum of the installer's own tables, None when they are missing.
        existing: functions and views that are there, whoever made them.
        recorded: checksum under which each replaceable object was last applied.
        guard_level: as recorded in the database, None where the schema has no guard levels.
        missing_roles: roles of the roles file that this server does not have.
    """

    missing_roles: frozenset[str]
    bootstrap: str | None = None
    roles: str | None = None
    migrations: dict[MigrationKey, AppliedMigration] = field(default_factory=dict[MigrationKey, AppliedMigration])
    recorded: dict[ObjectKey, str] = field(default_factory=dict[ObjectKey, str])
    existing: frozenset[ObjectKey] = frozenset()
    guard_level: str | None = None

    @property
    def is_fresh(self) -> bool:
        """Whether no migration ever began here."""
        return not self.migrations

    @property
    def number(self) -> int:
        """Number of the newest migration that began here; 0 when none did."""
        return max((key.number for key in self.migrations), default=0)


def bootstrap_text(tree: SqlTree) -> str:
    """SQL of the installer's own tables for the schema of `tree`."""
    folder = resources.files("seapost.database.installer")
    text = read_sql(folder.joinpath("bootstrap.sql"))
    if tree.stepwise:
        text = f"{text}\n{read_sql(folder.joinpath('stepwise.sql'))}"
    return text.replace("seapost.", f"{tree.schema}.")


def bootstrap_checksum(tree: SqlTree) -> str:
    """Checksum of `bootstrap_text`."""
    return checksum_of(bootstrap_text(tree))


def release_name() -> str:
    """Version of the installed package, as recorded beside what it applied."""
    try:
        return metadata.version("seapost")
    except metadata.PackageNotFoundError:
        return "unknown"


def read_state(connection: Connection, tree: SqlTree, roles: Iterable[str]) -> SchemaState:
    """Read everything the installer decides by, in the caller's transaction."""
    wanted = frozenset(roles)
    found = connection.execute("select rolname from pg_catalog.pg_roles where rolname = any(%s)", (list(wanted),))
    missing = wanted - {str(row[0]) for row in found}
    existing = _existing(connection, tree)
    if not _has_table(connection, tree, "schema_object"):
        return SchemaState(missing_roles=missing, existing=existing)
    bootstrap = roles_checksum = None
    recorded: dict[ObjectKey, str] = {}
    for kind, name, checksum in connection.execute(_on(_OBJECTS, tree, "schema_object")):
        if kind == BOOTSTRAP:
            bootstrap = str(checksum)
        elif kind == ROLES:
            roles_checksum = str(checksum)
        else:
            recorded[ObjectKey(ObjectKind(kind), name)] = str(checksum)
    return SchemaState(
        missing_roles=missing,
        bootstrap=bootstrap,
        roles=roles_checksum,
        migrations=_migrations(connection, tree),
        recorded=recorded,
        existing=existing,
        guard_level=_guard_level(connection, tree),
    )


def read_as_owner(connection: Connection, tree: SqlTree, roles: Iterable[str]) -> SchemaState:
    """Read the state as the owner role where it exists and we may, for it alone reads the tables."""
    with connection.transaction():
        with (
            suppress(psycopg.errors.InsufficientPrivilege, psycopg.errors.InvalidParameterValue),
            connection.transaction(),
        ):
            connection.execute(sql.SQL("set local role {}").format(sql.Identifier(tree.owner)))
        return read_state(connection, tree, roles)


def _existing(connection: Connection, tree: SqlTree) -> frozenset[ObjectKey]:
    rows = connection.execute(_EXISTING, {"schema": tree.schema})
    return frozenset(ObjectKey(ObjectKind(kind), name) for kind, name in rows)


def _migrations(connection: Connection, tree: SqlTree) -> dict[MigrationKey, AppliedMigration]:
    found: dict[MigrationKey, AppliedMigration] = {}
    for number, phase, name, checksum, release, dirty in connection.execute(_on(_MIGRATIONS, tree, "schema_migration")):
        key = MigrationKey(number, 0 if phase == "pre" else 1)
        found[key] = AppliedMigration(key, name, checksum, release, dirty)
    return found


def _guard_level(connection: Connection, tree: SqlTree) -> str | None:
    if not _has_table(connection, tree, "guard_level"):
        return None
    row = connection.execute(_on("select level from {}", tree, "guard_level")).fetchone()
    return None if row is None else str(row[0])


def _has_table(connection: Connection, tree: SqlTree, table: str) -> bool:
    row = connection.execute(
        "select exists (select from pg_catalog.pg_class as c join pg_catalog.pg_namespace as n"
        " on n.oid = c.relnamespace where n.nspname = %s and c.relname = %s)",
        (tree.schema, table),
    ).fetchone()
    return row is not None and bool(row[0])


def record_migration(connection: Connection, tree: SqlTree, migration: Migration, *, finished: bool) -> None:
    """Remember that `migration` ended, or (not finished) that it begins outside a transaction."""
    connection.execute(
        _on(_RECORD_MIGRATION, tree, "schema_migration"),
        {
            "number": migration.number,
            "phase": str(migration.phase),
            "name": migration.name,
            "checksum": migration.checksum,
            "release": release_name(),
            "finished": finished,
        },
    )


def record_resolution(connection: Connection, tree: SqlTree, key: MigrationKey, *, state: str, reason: str) -> bool:
    """Remember what an operator decided about a dirty migration, and settle its marker; False when it is not dirty.

    `applied` ends the marker, `reverted` removes it.
    """
    values = {"number": key.number, "phase": str(key.phase), "state": state, "reason": reason}
    resolution, marker = (sql.Identifier(tree.schema, table) for table in ("schema_resolution", "schema_migration"))
    if not connection.execute(sql.SQL(_RECORD_RESOLUTION).format(resolution, marker), values).rowcount:
        return False
    settle = _END_MARKER if state == "applied" else _REMOVE_MARKER
    connection.execute(sql.SQL(settle).format(marker), values)
    return True


def record_objects(connection: Connection, tree: SqlTree, objects: Iterable[SqlObject]) -> None:
    """Remember the checksum under which each object was applied."""
    for one in objects:
        _record_object(connection, tree, str(one.key.kind), one.key.name, one.checksum)


def record_bootstrap(connection: Connection, tree: SqlTree) -> None:
    """Remember the version of the installer's own tables."""
    _record_object(connection, tree, BOOTSTRAP, BOOTSTRAP, bootstrap_checksum(tree))


def record_roles(connection: Connection, tree: SqlTree, checksum: str) -> None:
    """Remember that the roles file ran, from this database, with this checksum."""
    _record_object(connection, tree, ROLES, ROLES, checksum)


def forget_objects(connection: Connection, tree: SqlTree, keys: Iterable[ObjectKey]) -> None:
    """Forget objects that are neither shipped nor in the database any more."""
    by_kind: dict[ObjectKind, list[str]] = {}
    for key in keys:
        by_kind.setdefault(key.kind, []).append(key.name)
    for kind, names in by_kind.items():
        connection.execute(_on(_FORGET_OBJECTS, tree, "schema_object"), {"kind": str(kind), "names": names})


def _record_object(connection: Connection, tree: SqlTree, kind: str, name: str, checksum: str) -> None:
    values: Mapping[str, str] = {"kind": kind, "name": name, "checksum": checksum, "release": release_name()}
    connection.execute(_on(_RECORD_OBJECT, tree, "schema_object"), values)


def _on(query: LiteralString, tree: SqlTree, table: str) -> sql.Composed:
    return sql.SQL(query).format(sql.Identifier(tree.schema, table))


def execute_text(connection: Connection, text: str, label: str) -> None:
    """Run the text of an SQL file; an error carries the file and line as a note.

    The one place that passes text which is no literal of the program: files of the package are code too.
    """
    try:
        connection.execute(cast("LiteralString", text))
    except psycopg.Error as error:
        position = error.diag.statement_position
        line = "" if position is None else f", line {text.count(chr(10), 0, int(position)) + 1}"
        error.add_note(f"in {label}{line}")
        raise
