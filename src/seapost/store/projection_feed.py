"""What feeds a version of a projection beside its deliveries (`functions/projection/`, AMB-39)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from seapost.store.arrays import UuidArray
from seapost.store.calls import call

if TYPE_CHECKING:
    from collections.abc import Sequence

    import psycopg

    from seapost.model.delivery_set import ProjectionTarget

FIRST: Final = UUID(int=0)
"""Before every identifier."""

_CLAIM: Final = "select seapost.projection_claim_v1(%b, %b, %b)"
_PAUSE: Final = "select seapost.projection_pause_v1(%b, %b, %b)"
_FEED: Final = "select * from seapost.projection_feed_v1(%b, %b, %b, %b, %b::int, %b::int, %b::int, %b)"
_MISSING: Final = "select seapost.projection_missing_v1(%b, %b, %b, %b)"
_PROGRESS: Final = "select seapost.projection_progress_v1(%b, %b, %b, %b, %b::bigint, %b::bigint, %b)"
_STALL: Final = "select seapost.projection_stall_v1(%b, %b, %b, %b, %b)"
_EXPECTED: Final = "select seapost.projection_expected_v1(%b, %b)"
_APPLIED: Final = (
    "select coalesce(sum(applied_count), 0)::bigint from seapost.projection_versions"
    " where projection_name = %b and projection_version = %b"
)


class SourceEvent(NamedTuple):
    """An event as its source keeps it: the canonical bytes, and the digest that was computed over them."""

    event_id: UUID
    envelope: bytes
    digest: bytes


class Slot(NamedTuple):
    """The share of one feeder: the aggregates that hash to `number` of `slots`."""

    number: int
    slots: int


def claim(connection: psycopg.Connection[Any], *, target: ProjectionTarget, actor: str) -> UUID:
    """Start or take over the shadow claim of a version; return its token.

    Raises:
        InvalidArgument: the version is not registered here, or is retired.
        SwitchUnderWay: a switch holds the claim.
    """
    [(token,)] = call(connection, _CLAIM, (target.name, target.version, actor))
    return token


def pause(connection: psycopg.Connection[Any], *, target: ProjectionTarget, actor: str) -> None:
    """End the shadow claim of a version; what was in flight under it has ended."""
    _ = call(connection, _PAUSE, (target.name, target.version, actor))


def feed(
    connection: psycopg.Connection[Any],
    *,
    target: ProjectionTarget,
    token: UUID,
    after: UUID,
    limit: int,
    slot: Slot,
    is_bounded: bool = False,
) -> list[SourceEvent]:
    """The next events of the hot source without a receipt of this version, in the order of their identifiers.

    Raises:
        ClaimFenced: the claim was taken over or paused.
    """
    arguments = (target.name, target.version, token, after, limit, slot.number, slot.slots, is_bounded)
    return [SourceEvent(*row) for row in call(connection, _FEED, arguments)]


def missing(
    connection: psycopg.Connection[Any],
    *,
    target: ProjectionTarget,
    token: UUID,
    event_ids: Sequence[UUID],
) -> set[UUID]:
    """Those of the events that the version has no receipt of.

    Raises:
        ClaimFenced: the claim was taken over or paused.
    """
    arguments = (target.name, target.version, token, UuidArray(event_ids))
    return {event_id for (event_id,) in call(connection, _MISSING, arguments)}


def progress(
    connection: psycopg.Connection[Any],
    *,
    target: ProjectionTarget,
    token: UUID,
    cursor: UUID | None,
    applied: int,
    expected: int | None = None,
    is_caught_up: bool = False,
) -> str:
    """Add to the record of the rebuild; return the state of the version. `cursor` is None at the end of a pass."""
    arguments = (target.name, target.version, token, cursor, applied, expected, is_caught_up)
    [(state,)] = call(connection, _PROGRESS, arguments)
    return state


def stall(
    connection: psycopg.Connection[Any], *, target: ProjectionTarget, token: UUID, event_id: UUID, reason: str
) -> None:
    """Remember the event that the feed cannot pass (F40)."""
    _ = call(connection, _STALL, (target.name, target.version, token, event_id, reason))


def expected(connection: psycopg.Connection[Any], *, target: ProjectionTarget) -> int:
    """How many events of the source the version folds in all."""
    [(number,)] = call(connection, _EXPECTED, (target.name, target.version))
    return number


def applied(connection: psycopg.Connection[Any], *, target: ProjectionTarget) -> int:
    """How many events the version has applied, by its summary."""
    [(number,)] = call(connection, _APPLIED, (target.name, target.version))
    return number
