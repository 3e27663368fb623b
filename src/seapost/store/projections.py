"""The projections of a consumer's database (`functions/projection/`), for the transactions that apply events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from seapost.store.arrays import ByteaArray, Int8Array, TextArray, UuidArray
from seapost.store.calls import call

if TYPE_CHECKING:
    from collections.abc import Sequence

    import psycopg

    from seapost.model.delivery_set import ProjectionTarget

_REGISTER: Final = "select seapost.projection_register_v2(%b, %b, %b, %b, %b, %b, %b, %b)"
_VERSIONS: Final = (
    "select projection_name, projection_version, state, is_current, is_fed, applied_count, open_gaps,"
    " stalled_event_id, stalled_reason from seapost.projection_versions order by 1, registered_at, 2"
)
_IS_REGISTERED: Final = (
    "select exists (select from seapost.projection_versions where projection_name = %b and projection_version = %b)"
)
_MEET: Final = "select * from seapost.projection_meet_v2(%b, %b, %b, %b, %b, %b, %b)"
_ACCEPT: Final = "select seapost.projection_accept_v1(%b, %b)"
_ADVANCE: Final = "select seapost.projection_advance_v1(%b, %b, %b, %b, %b, %b, %b, %b)"
_WAIT: Final = "select seapost.projection_wait_v1(%b, %b, %b, %b, %b, %b, %b)"


class AggregateKey(NamedTuple):
    """What a revision is counted in (AMB-29); sorts as the database sorts it, by code points."""

    producer: str
    kind: str
    id: str


class Advance(NamedTuple):
    """An aggregate that moved; `event_id` is the event of `to_revision`."""

    key: AggregateKey
    from_revision: int
    to_revision: int
    event_id: UUID


class Gap(NamedTuple):
    """A revision that came while `expected` had not been applied."""

    key: AggregateKey
    expected: int
    seen: int


def register(
    connection: psycopg.Connection[Any],
    *,
    target: ProjectionTarget,
    pairs: Sequence[tuple[str, str]],
    tables: Sequence[tuple[str, str]],
    receipt_key: str,
    actor: str,
) -> str:
    """Make a version of a projection known with its events and tables (schema, name); return its state."""
    arguments = (
        target.name,
        target.version,
        TextArray(event_type for event_type, _ in pairs),
        TextArray(version for _, version in pairs),
        TextArray(schema for schema, _ in tables),
        TextArray(name for _, name in tables),
        receipt_key,
        actor,
    )
    [(state,)] = call(connection, _REGISTER, arguments)
    return state


def versions(connection: psycopg.Connection[Any]) -> list[tuple[Any, ...]]:
    """Every version of every projection, as an operator looks at them."""
    return call(connection, _VERSIONS)


def is_registered(connection: psycopg.Connection[Any], *, target: ProjectionTarget) -> bool:
    """Whether the version is known here; for the operator."""
    [(found,)] = call(connection, _IS_REGISTERED, (target.name, target.version))
    return found


def meet(
    connection: psycopg.Connection[Any],
    *,
    target: ProjectionTarget,
    token: UUID | None,
    event_ids: Sequence[UUID],
    keys: Sequence[AggregateKey],
) -> list[int]:
    """Pass the gate of the version, lock or create the aggregates; return how far each was applied, 0 for never.

    Args:
        token: of the shadow claim that feeds these events; None for deliveries (OPS-03, AMB-39).

    Raises:
        ClaimFenced, OutsideCandidate, SwitchUnderWay: see `projection_enter`.
    """
    rows = call(connection, _MEET, (target.name, target.version, token, UuidArray(event_ids), *_columns(keys)))
    revisions = dict(rows)
    return [revisions[place] for place in range(1, len(keys) + 1)]


def accept(connection: psycopg.Connection[Any], *, events: Sequence[tuple[UUID, bytes]]) -> int:
    """Keep the envelopes of events that this database did not append itself; return how many are new (AMB-39)."""
    arguments = (UuidArray(event_id for event_id, _ in events), ByteaArray(envelope for _, envelope in events))
    [(kept,)] = call(connection, _ACCEPT, arguments)
    return kept


def advance(
    connection: psycopg.Connection[Any], *, target: ProjectionTarget, advances: Sequence[Advance]
) -> int | None:
    """Move the aggregates, resolve the gaps that this filled and add to the summary (OPS-07, OPS-11).

    Returns how many gaps are open now; None when none was resolved.
    """
    [(open_gaps,)] = call(
        connection,
        _ADVANCE,
        (
            target.name,
            target.version,
            *_columns([item.key for item in advances]),
            Int8Array(item.from_revision for item in advances),
            Int8Array(item.to_revision for item in advances),
            UuidArray(item.event_id for item in advances),
        ),
    )
    return open_gaps


def wait(connection: psycopg.Connection[Any], *, target: ProjectionTarget, gaps: Sequence[Gap]) -> int:
    """Record what came too early; return how many gaps are open now (OPS-11)."""
    [(open_gaps,)] = call(
        connection,
        _WAIT,
        (
            target.name,
            target.version,
            *_columns([item.key for item in gaps]),
            Int8Array(item.expected for item in gaps),
            Int8Array(item.seen for item in gaps),
        ),
    )
    return open_gaps


def _columns(keys: Sequence[AggregateKey]) -> tuple[TextArray, TextArray, TextArray]:
    return (
        TextArray(key.producer for key in keys),
        TextArray(key.kind for key in keys),
        TextArray(key.id for key in keys),
    )
