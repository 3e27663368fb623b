"""Accepted observations (`functions/observation/`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from seapost.store.arrays import ByteaArray, UuidArray
from seapost.store.calls import call

if TYPE_CHECKING:
    from collections.abc import Sequence

    import psycopg

    from seapost.model.delivery_set import ProjectionTarget

_ACCEPT: Final = "select seapost.observation_accept_v1(%b, %b, %b)"
_FEED: Final = "select * from seapost.observation_feed_v1(%b, %b, %b::int)"
_RECORD: Final = "select seapost.observation_record_v1(%b, %b, %b, %b)"


def accept(connection: psycopg.Connection[Any], *, observation_id: UUID, projection_name: str, envelope: bytes) -> bool:
    """Accept an observation; return whether it is new."""
    [(is_new,)] = call(connection, _ACCEPT, (observation_id, projection_name, envelope))
    return is_new


def feed(
    connection: psycopg.Connection[Any], *, target: ProjectionTarget, limit: int
) -> list[tuple[UUID, bytes, bytes]]:
    """The observations that a version has no receipt of: identifier, envelope, digest."""
    return [(row[0], row[1], row[2]) for row in call(connection, _FEED, (target.name, target.version, limit))]


def record(
    connection: psycopg.Connection[Any], *, target: ProjectionTarget, observations: Sequence[tuple[UUID, bytes]]
) -> None:
    """Write the receipts of observations, each with its digest, behind the gate of the version."""
    identifiers = UuidArray(observation_id for observation_id, _ in observations)
    digests = ByteaArray(digest for _, digest in observations)
    _ = call(connection, _RECORD, (target.name, target.version, identifiers, digests))
