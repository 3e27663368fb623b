"""A snapshot: every fact about one schema that a release decides, read in one transaction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, LiteralString, TypeAlias

from seapost.database.doctor import access, catalog
from seapost.database.installer.tree import Shipment

if TYPE_CHECKING:
    from psycopg import AsyncConnection

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Properties: TypeAlias = dict[str, Json]
Parts: TypeAlias = dict[str, Properties]
Objects: TypeAlias = dict[str, Parts]
"""Object → part (empty for the object itself) → property → value."""

ANY_PARTITION: Final = "/*"
"""How a manifest names a partition of a table: `partition event/*`."""

_ASSIGNMENTS: Final = {"options": "option", "settings": "setting"}
"""Lists of `name=value`, and what one of them is called."""
_PLAIN_TEXT: Final = """
select set_config('search_path', 'pg_catalog, pg_temp', true), set_config('TimeZone', 'UTC', true),
       set_config('DateStyle', 'ISO, YMD', true), set_config('IntervalStyle', 'postgres', true),
       set_config('extra_float_digits', '1', true), set_config('quote_all_identifiers', 'off', true)"""
_QUERIES: Final[tuple[LiteralString, ...]] = (
    access.SCHEMA,
    access.ROLES,
    access.DEFAULT_PRIVILEGES,
    access.EVENT_TRIGGERS,
    catalog.RELATIONS,
    catalog.COLUMNS,
    catalog.CONSTRAINTS,
    catalog.INDEXES,
    catalog.TRIGGERS,
    catalog.ATTACHED,
    catalog.FUNCTIONS,
    catalog.TYPES,
)


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition: its bound as PostgreSQL writes it, and its size."""

    name: str
    bound: str
    detaching: bool
    size_bytes: int

    @property
    def is_default(self) -> bool:
        """Whether it takes what no other partition takes."""
        return self.bound == "DEFAULT"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What is there; `partitions` by partitioned table, which may have none."""

    objects: Objects
    partitions: dict[str, tuple[Partition, ...]]


def parameters_of(shipment: Shipment) -> dict[str, object]:
    """The parameters of every catalog query."""
    tree = shipment.tree
    return {"schema": tree.schema, "owner": tree.owner, "roles": sorted(shipment.roles.names)}


async def write_plainly(connection: AsyncConnection) -> None:
    """Settle, for the caller's transaction, everything that decides how the server writes definitions and names."""
    await connection.execute(_PLAIN_TEXT)


async def read_snapshot(connection: AsyncConnection, shipment: Shipment) -> Snapshot:
    """Read the facts in the caller's transaction, after `write_plainly`."""
    parameters = parameters_of(shipment)
    objects: Objects = {}
    for query in _QUERIES:
        for name, part, properties in await (await connection.execute(query, parameters)).fetchall():
            objects.setdefault(name, {})[part] = _one_by_one(properties)
    partitions: dict[str, list[Partition]] = {}
    for table, name, bound, detaching, size in await (
        await connection.execute(catalog.PARTITIONED, parameters)
    ).fetchall():
        known = partitions.setdefault(table, [])
        if name is not None:
            known.append(Partition(name, bound or "", bool(detaching), int(size)))
    return Snapshot(objects, {table: tuple(known) for table, known in partitions.items()})


def _one_by_one(properties: Properties) -> Properties:
    """Each holder of privileges, option and setting as a property of its own, so that a difference is exact."""
    shown: Properties = {}
    for name, value in properties.items():
        if name == "privileges" and isinstance(value, dict):
            shown |= {f"privileges of {holder}": rights for holder, rights in value.items()}
        elif name in _ASSIGNMENTS and isinstance(value, list):
            for assignment in map(str, value):
                key, _, setting = assignment.partition("=")
                shown[f"{_ASSIGNMENTS[name]} {key}"] = setting
        else:
            shown[name] = value
    return shown
