"""The projections of a consumer's database (`functions/projection/`), for the transactions that apply events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from seapost.store.arrays import Int8Array, TextArray, UuidArray
from seapost.store.calls import call

if TYPE_CHECKING:
    from collections.abc import Sequence

    import psycopg

    from seapost.model.delivery_set import ProjectionTarget

_REGISTER: Final = "select seapost.projection_register_v1(%b, %b, %b)"
_MEET: Final = "select * from seapost.projection_meet_v1(%b, %b, %b, %b, %b)"
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


def register(connection: psycopg.Connection[Any], *, target: ProjectionTarget, actor: str) -> str:
    """Make a version of a projection known; return its state."""
    [(state,)] = call(connection, _REGISTER, (target.name, target.version, actor))
    return state


def meet(connection: psycopg.Connection[Any], *, target: ProjectionTarget, keys: Sequence[AggregateKey]) -> list[int]:
    """Lock or create the aggregates; return the revision each was applied to, 0 for never (OPS-03)."""
    rows = call(connection, _MEET, (target.name, target.version, *_columns(keys)))
    revisions = dict(rows)
    return [revisions[place] for place in range(1, len(keys) + 1)]


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
