"""Every right that could exist on every object of the schema: asked of the server, declared by the manifest, or tried.

A right is `(object, privilege)`, the object named as the manifest names it: `("table event, column digest", "select")`.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import psycopg
from psycopg import Connection, sql

from seapost.database.doctor.manifest import Manifest
from seapost.database.doctor.snapshot import Properties, Snapshot
from seapost.database.installer import GuardLevel

Right = tuple[str, str]

ON_TABLES: Final = ("select", "insert", "update", "delete", "truncate", "references", "trigger")
ON_COLUMNS: Final = ("select", "insert", "update", "references")
ON_SEQUENCES: Final = ("usage", "select", "update")
ON_SCHEMAS: Final = ("usage", "create")
MAINTAIN_SINCE: Final = 170_000

_OBJECTS: Final = """
select case when c.relispartition then 'partition' when c.relkind in ('r', 'p') then 'table'
            when c.relkind = 'S' then 'sequence' else 'view' end || ' ' || c.relname, c.oid, c.relname::text
from pg_class as c
where c.relnamespace = 'seapost'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'f', 'S')
order by 1"""
_FUNCTIONS: Final = """
select 'function ' || p.proname || '(' || pg_catalog.oidvectortypes(p.proargtypes) || ')', p.oid, p.proname::text,
       array(select pg_catalog.format_type(a.type, null)
             from unnest(p.proargtypes) with ordinality as a (type, place) order by a.place), p.provariadic <> 0
from pg_proc as p
where p.pronamespace = 'seapost'::regnamespace
order by 1"""
_COLUMNS: Final = """
select a.attname::text, a.attnum from pg_attribute as a
where a.attrelid = %s and a.attnum > 0 and not a.attisdropped order by a.attnum"""
_KEY: Final = """
select a.attname::text, pg_catalog.format_type(a.atttypid, a.atttypmod)
from pg_index as i
cross join unnest(i.indkey) with ordinality as k (attnum, place)
join pg_attribute as a on a.attrelid = i.indrelid and a.attnum = k.attnum
where i.indrelid = %s and i.indisprimary order by k.place"""


@dataclass(frozen=True, slots=True)
class Relation:
    """A table, partition, view or sequence."""

    label: str
    oid: int
    name: str

    @property
    def is_sequence(self) -> bool:
        """Whether rights on sequences apply."""
        return self.label.startswith("sequence ")


@dataclass(frozen=True, slots=True)
class Function:
    """A function with the types of its arguments."""

    label: str
    oid: int
    name: str
    types: tuple[str, ...]
    is_variadic: bool

    def call(self, argument: str = "null") -> sql.Composed:
        """A call with the same literal, or null, for every argument."""
        value = sql.SQL("null") if argument == "null" else sql.Literal(argument)
        arguments = [sql.SQL("{}::{}").format(value, _type(one)) for one in self.types]
        if self.is_variadic:
            arguments[-1] = sql.SQL("variadic {}").format(arguments[-1])
        return sql.SQL("select {}({})").format(sql.Identifier("seapost", self.name), sql.SQL(", ").join(arguments))


def _type(name: str) -> sql.SQL:
    return sql.SQL(name)  # pyright: ignore[reportArgumentType] - as format_type writes it


def relations(connection: Connection) -> list[Relation]:
    """Every relation of the schema."""
    return [Relation(*row) for row in connection.execute(_OBJECTS)]


def functions(connection: Connection) -> list[Function]:
    """Every function of the schema."""
    return [
        Function(label, oid, name, tuple(types), variadic)
        for label, oid, name, types, variadic in connection.execute(_FUNCTIONS)
    ]


def on_tables(connection: Connection) -> tuple[str, ...]:
    """The rights on tables that this server knows."""
    return (*ON_TABLES, "maintain") if connection.info.server_version >= MAINTAIN_SINCE else ON_TABLES


def asked(connection: Connection, role: str) -> set[Right]:
    """The rights that the server says a role has, columns included where they are not those of the table."""
    found: set[Right] = set()
    for one in relations(connection):
        kinds = ON_SEQUENCES if one.is_sequence else on_tables(connection)
        function = "has_sequence_privilege" if one.is_sequence else "has_table_privilege"
        held = {kind for kind in kinds if _has(connection, function, role, one.oid, kind)}
        found |= {(one.label, kind) for kind in held}
        if not one.is_sequence:
            found |= set(_on_columns(connection, role, one, held))
    for one in functions(connection):
        if _has(connection, "has_function_privilege", role, one.oid, "execute"):
            found.add((one.label, "execute"))
    for kind in ON_SCHEMAS:
        if _has(connection, "has_schema_privilege", role, "seapost", kind):
            found.add(("schema seapost", kind))
    return found


def _has(connection: Connection, function: str, role: str, what: int | str, kind: str) -> bool:
    row = connection.execute(
        sql.SQL("select {}(%s, %s{}, %s)").format(
            sql.Identifier("pg_catalog", function), sql.SQL("::oid" if isinstance(what, int) else "")
        ),
        (role, what, kind),
    ).fetchone()
    assert row is not None
    return bool(row[0])


def _on_columns(connection: Connection, role: str, relation: Relation, held: set[str]) -> Iterator[Right]:
    for name, number in connection.execute(_COLUMNS, (relation.oid,)).fetchall():
        for kind in ON_COLUMNS:
            row = connection.execute(
                "select pg_catalog.has_column_privilege(%s, %s::oid, %s::int2, %s)", (role, relation.oid, number, kind)
            ).fetchone()
            if row is not None and row[0] and kind not in held:
                yield f"{relation.label}, column {name}", kind


def declared(manifest: Manifest, level: GuardLevel, snapshot: Snapshot, role: str) -> set[Right]:
    """The rights that the manifest gives to a role, itself or through PUBLIC."""
    found: set[Right] = set()
    for name, parts in manifest.expected(level, snapshot).items():
        for part, properties in parts.items():
            label = f"{name}, {part}" if part else name
            found |= {(label, kind) for kind in _granted(properties, role)}
    return {(label, kind) for label, kind in found if not label.startswith("default privileges")}


def _granted(properties: Properties, role: str) -> Iterator[str]:
    for holder in (role, "PUBLIC"):
        kinds = properties.get(f"privileges of {holder}")
        if isinstance(kinds, list):
            yield from (str(kind).removesuffix("*") for kind in kinds)


@contextmanager
def trying_as(connection: Connection, role: str) -> Generator[None]:
    """A transaction as `role`, with a schema `scratch` of its own and a trigger function in it; rolled back."""
    with connection.transaction(force_rollback=True):
        connection.execute(sql.SQL("create schema scratch authorization {}").format(sql.Identifier(role)))
        connection.execute(sql.SQL("set local role {}").format(sql.Identifier(role)))
        connection.execute(
            "create function scratch.nothing() returns trigger language plpgsql as 'begin return new; end'"
        )
        yield


def tried(connection: Connection) -> set[Right]:
    """The rights that the current role turns out to have when it tries a statement of each kind; see `trying_as`."""
    found: set[Right] = set()
    for one in relations(connection):
        statements = _on_sequence(one) if one.is_sequence else _on_table(connection, one)
        found |= {(one.label, kind) for kind, statement in statements if _is_allowed(connection, statement)}
    for one in functions(connection):
        if _is_allowed(connection, one.call(), rf"permission denied for (schema seapost|function {one.name})$"):
            found.add((one.label, "execute"))
    if _is_allowed(connection, sql.SQL("create table seapost.mine (id int)")):
        found.add(("schema seapost", "create"))
    return found


def _on_sequence(one: Relation) -> Iterator[tuple[str, sql.Composed]]:
    name = sql.Identifier("seapost", one.name)
    yield "usage", sql.SQL("select nextval({})").format(sql.Literal(f"seapost.{one.name}"))
    yield "select", sql.SQL("select last_value from {}").format(name)
    yield "update", sql.SQL("select setval({}, 5)").format(sql.Literal(f"seapost.{one.name}"))
    yield "own", sql.SQL("alter sequence {} restart").format(name)


def _on_table(connection: Connection, one: Relation) -> Iterator[tuple[str, sql.Composed]]:
    name = sql.Identifier("seapost", one.name)
    (first, *_) = [sql.Identifier(row[0]) for row in connection.execute(_COLUMNS, (one.oid,))]
    yield "select", sql.SQL("select {} from {} limit 0").format(first, name)
    yield "insert", sql.SQL("insert into {} default values").format(name)
    yield "update", sql.SQL("update {} set {} = default").format(name, first)
    yield "delete", sql.SQL("delete from {}").format(name)
    yield "truncate", sql.SQL("truncate {}").format(name)
    yield (
        "trigger",
        sql.SQL("create trigger mine before insert on {} for each statement execute function scratch.nothing()").format(
            name
        ),
    )
    yield "maintain", sql.SQL("lock table {} in access exclusive mode").format(name)
    yield "own", sql.SQL("alter table {} rename to mine").format(name)
    yield "own", sql.SQL("create rule mine as on insert to {} do instead nothing").format(name)
    if key := connection.execute(_KEY, (one.oid,)).fetchall():
        columns = sql.SQL(", ").join(sql.SQL("{} {}").format(sql.Identifier(row[0]), _type(row[1])) for row in key)
        names = sql.SQL(", ").join(sql.Identifier(row[0]) for row in key)
        yield (
            "references",
            sql.SQL("create table scratch.child ({}, foreign key ({}) references {} ({}))").format(
                columns, names, name, names
            ),
        )


def _is_allowed(connection: Connection, statement: sql.SQL | sql.Composed, denied: str = "") -> bool:
    """Whether a statement is let through to its work, or its work to an error of its own.

    Args:
        denied: a pattern of the refusal's message, so that a refusal further inside is not taken for one.
    """
    try:
        with connection.transaction(force_rollback=True):
            connection.execute(statement)
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.WrongObjectType) as error:
        return re.search(denied, error.diag.message_primary or "") is None
    except (psycopg.errors.ObjectNotInPrerequisiteState, psycopg.errors.GeneratedAlways) as error:
        # A view that takes no rows says so before anybody asks who wants to write.
        return re.search("view|column .* can only be updated", error.diag.message_primary or "") is None
    except psycopg.Error:
        return True
    return True
