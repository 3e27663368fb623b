"""The delivery set registry (`functions/delivery_set/`) and its reads."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from seapost.model.delivery_set import DefinitionQuad, Member, ProjectionTarget
from seapost.store.calls import Row, call_async

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.AsyncConnection[Any]


@dataclass(frozen=True, slots=True)
class RegisteredVersion:
    """A registered definition (STO-06); `candidate` is the canonical bytes that the digest covers."""

    delivery_set_version: str
    definition_digest: str
    status: str
    registered_at: datetime
    activated_at: datetime | None
    source_release: str
    candidate: bytes


async def register(connection: Connection, *, candidate: bytes, source_release: str, actor: str) -> int:
    """Insert the definition or compare it with the one stored under its version (SET-17).

    Raises `DeliverySetConflict`, `InvalidDeliverySet`.
    """
    [(definition_id,)] = await call_async(
        connection, "select seapost.delivery_set_register_v1(%b, %s, %s)", (candidate, source_release, actor)
    )
    return definition_id


async def activate(connection: Connection, *, delivery_set_version: str, digest: bytes, actor: str) -> None:
    """Make a registered definition the active one, after every append in flight (SET-30, SET-31).

    Raises `UnknownDeliverySet`, `IllegalTransition`.
    """
    _ = await call_async(
        connection,
        "select seapost.delivery_set_activate_v1(%s, %b, %s)",
        (delivery_set_version, digest, actor),
    )


async def versions(connection: Connection) -> list[RegisteredVersion]:
    """Every registered definition, oldest first."""
    rows = await call_async(
        connection,
        "select delivery_set_version, delivery_set_definition_digest, status, registered_at, activated_at,"
        " source_release, candidate from seapost.delivery_set_versions order by definition_id",
    )
    return [RegisteredVersion(*row) for row in rows]


async def members(connection: Connection) -> dict[int, Member]:
    """Every line of every definition by its short name; definitions are few and immutable, so callers keep them."""
    rows = await call_async(
        connection,
        "select member_id, delivery_set_version, delivery_set_definition_schema_version,"
        " delivery_set_definition_digest_algorithm_version, delivery_set_definition_digest,"
        " event_type, schema_version, destination, consumer_name, mandatory, expected_receipt_type,"
        " expected_receipt_schema_version, projection_name, projection_version"
        " from seapost.delivery_set_members",
    )
    return {row[0]: _member(row) for row in rows}


def _member(row: Row) -> Member:
    return Member(
        member_id=row[0],
        definition=DefinitionQuad(*row[1:5]),
        event_type=row[5],
        schema_version=row[6],
        destination=row[7],
        consumer_name=row[8],
        mandatory=row[9],
        receipt_type=row[10],
        receipt_schema_version=row[11],
        projection=None if row[12] is None else ProjectionTarget(row[12], row[13]),
    )
