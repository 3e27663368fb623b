"""The second source of a projection: accepted observations, which no event tells (REF-52, ORD-06).

An observation is accepted once, under an identifier of its own, and applied once to each version, with a receipt. It
has no aggregate and no order; what it says about completeness is only that everything accepted here was applied.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from seapost.store import observations as store

if TYPE_CHECKING:
    from psycopg import Connection

    from seapost.projections.projection import Projection

BATCH: Final = 500


@dataclass(frozen=True, slots=True)
class Observation:
    """A fact that was seen.

    Attributes:
        projection_name: the projection that it is for.
        envelope: its canonical bytes, at most 1 MiB.
    """

    observation_id: UUID
    projection_name: str
    envelope: bytes


def accept(connection: Connection[Any], observation: Observation) -> bool:
    """Accept an observation; return whether it is new.

    Raises:
        EventConflict: the identifier is known with other content.
    """
    return store.accept(
        connection,
        observation_id=observation.observation_id,
        projection_name=observation.projection_name,
        envelope=observation.envelope,
    )


def apply_observations(
    connection: Connection[Any],
    projection: Projection,
    apply: Callable[[Connection[Any], Observation], None],
    *,
    limit: int = BATCH,
) -> int:
    """Apply the observations that a version lacks, at most `limit`, with their receipts, in one transaction.

    Raises:
        SwitchUnderWay: a switch holds the version for a moment.
    """
    name = projection.target.name
    with connection.transaction():
        found = store.feed(connection, target=projection.target, limit=limit)
        if not found:
            return 0
        store.record(connection, target=projection.target, observations=[(one, digest) for one, _, digest in found])
        for observation_id, envelope, _ in found:
            apply(connection, Observation(observation_id, name, envelope))
    return len(found)
