"""The steps of a switch (`functions/projection/cutover_*.sql`): each is a transaction of its own."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from seapost.store.arrays import TextArray, UuidArray
from seapost.store.calls import call

if TYPE_CHECKING:
    from collections.abc import Sequence

    import psycopg

    from seapost.model.delivery_set import ProjectionTarget

_BEGIN: Final = "select seapost.projection_cutover_begin_v1(%b, %b, %b, %b, %b, %b)"
_FREEZE: Final = "select * from seapost.projection_cutover_freeze_v1(%b, %b, %b::int)"
_STOP_ACTIVE: Final = "select seapost.projection_cutover_stop_active_v1(%b, %b)"
_SWITCH: Final = "select seapost.projection_cutover_switch_v1(%b, %b, %b, %b, %b)"
_ACTIVATED: Final = "select seapost.projection_cutover_activated_v1(%b, %b, %b)"
_FINISH: Final = "select seapost.projection_cutover_finish_v1(%b, %b, %b)"
_ABANDON: Final = "select seapost.projection_cutover_abandon_v1(%b, %b, %b)"
_RETIRE: Final = "select seapost.projection_retire_v1(%b, %b, %b, %b)"
_UNDER_WAY: Final = (
    "select token, from_version, to_version, phase, producers, activated from seapost.projection_switches"
    " where projection_name = %b and producers is not null"
)
_DIGEST: Final = (
    "select pg_catalog.decode(delivery_set_definition_digest, 'hex') from seapost.delivery_set_versions"
    " where delivery_set_version = %b"
)
_CURRENT: Final = "select seapost.projection_current(%b)"
_APPLIED: Final = "select * from seapost.projection_applied_v1(%b, %b)"


class Frozen(NamedTuple):
    """A frozen candidate: the claim that may catch up, and how many members are missing."""

    claim_token: UUID
    rest: int


class UnderWay(NamedTuple):
    """A switch that has not ended."""

    token: UUID
    from_version: str
    to_version: str
    phase: str
    producers: list[str]
    activated: list[str]


def begin(
    connection: psycopg.Connection[Any],
    *,
    target: ProjectionTarget,
    delivery_set_version: str,
    definition_digest: bytes,
    producers: Sequence[str],
    actor: str,
) -> UUID:
    """Begin a switch, or find the same one again; return its token.

    Raises:
        WrongPhase: another switch of the projection is under way.
        NotReady: the version or the delivery set is not fit for it.
    """
    arguments = (
        target.name,
        target.version,
        delivery_set_version,
        definition_digest,
        TextArray(producers),
        actor,
    )
    [(token,)] = call(connection, _BEGIN, arguments)
    return token


def freeze(connection: psycopg.Connection[Any], *, name: str, token: UUID, rest_max: int) -> Frozen:
    """Freeze the candidate in one snapshot and bind a new claim to it (ORD-16)."""
    [row] = call(connection, _FREEZE, (name, token, rest_max))
    return Frozen(*row)


def stop_active(connection: psycopg.Connection[Any], *, name: str, token: UUID) -> None:
    """End the shadow claim, stop and drain the version that is left (ORD-17)."""
    _ = call(connection, _STOP_ACTIVE, (name, token))


def switch(
    connection: psycopg.Connection[Any],
    *,
    name: str,
    token: UUID,
    manifest_digest: bytes,
    rollback: timedelta,
    actor: str,
) -> bytes:
    """Switch; return the readiness proof (SET-30)."""
    [(proof,)] = call(connection, _SWITCH, (name, token, manifest_digest, rollback, actor))
    return proof


def activated(connection: psycopg.Connection[Any], *, name: str, token: UUID, producer: str) -> None:
    """Note that another producer's database has activated the delivery set (AMB-03)."""
    _ = call(connection, _ACTIVATED, (name, token, producer))


def finish(connection: psycopg.Connection[Any], *, name: str, token: UUID, actor: str) -> None:
    """End a switch that every producer has followed."""
    _ = call(connection, _FINISH, (name, token, actor))


def abandon(connection: psycopg.Connection[Any], *, name: str, token: UUID, actor: str) -> None:
    """Give up a switch that has not switched."""
    _ = call(connection, _ABANDON, (name, token, actor))


def retire(connection: psycopg.Connection[Any], *, target: ProjectionTarget, confirmed: str, actor: str) -> None:
    """Retire a version that drains; `confirmed` says whose word it is that nobody else needs it."""
    _ = call(connection, _RETIRE, (target.name, target.version, confirmed, actor))


def under_way(connection: psycopg.Connection[Any], *, name: str) -> UnderWay | None:
    """The switch of a projection that has not ended."""
    rows = call(connection, _UNDER_WAY, (name,))
    return UnderWay(*rows[0]) if rows else None


def current(connection: psycopg.Connection[Any], *, name: str) -> str | None:
    """The version that is read now."""
    [(version,)] = call(connection, _CURRENT, (name,))
    return version


def applied(connection: psycopg.Connection[Any], *, name: str, event_ids: Sequence[UUID]) -> tuple[str | None, bool]:
    """The version that is read now, and whether it has applied all of these events (F41)."""
    rows = call(connection, _APPLIED, (name, UuidArray(event_ids)))
    return (rows[0][0], rows[0][1]) if rows else (None, False)


def definition_digest(connection: psycopg.Connection[Any], *, delivery_set_version: str) -> bytes | None:
    """The digest of a registered delivery set; None when there is none."""
    rows = call(connection, _DIGEST, (delivery_set_version,))
    return rows[0][0] if rows else None
