"""Settlement after the finalization as PostgreSQL functions: one thin function each, in the caller's transaction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, LiteralString, Protocol

from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from oceanway.contracts.errors import translating

if TYPE_CHECKING:
    from psycopg import Connection

Json = Mapping[str, Any]
"""A document that PostgreSQL put together."""


@dataclass(frozen=True, slots=True)
class LockedDimension:
    """What one settlement input event may change.

    Attributes:
        fence: the finalization fence; None while the reservation is not bound.
        watermark: the newest known input with its identity; None before the first one.
        catch_up: fence, state revision and started work of the dimension; None before the finalization.
    """

    fence: Json | None
    watermark: Json | None
    catch_up: Json | None


@dataclass(frozen=True, slots=True)
class Advance:
    """What a settlement input event writes.

    Attributes:
        input: its payload, by wire name.
        mode: `unbound`, `held`, `finalization` or `catch_up`.
        expected_revision: of the fence that the mode names; 0 when it names none, or there is no such fence.
        trigger: of a finalization work.
        superseded: the Finish of the work before, where that was started.
    """

    input: Json
    expected_inbox_revision: int
    mode: str
    expected_revision: int = 0
    trigger: bytes | None = None
    work: bytes | None = None
    superseded: bytes | None = None


@dataclass(frozen=True, slots=True)
class ClaimedRow:
    """A leased work with what its evaluation needs of billing; amounts are decimal texts."""

    work: bytes
    fence_revision: int
    attempt_number: int
    fencing_token: int
    dimension: Json
    economic_identity: Json
    unit_price: str | None
    available: str


class Ended(Protocol):
    """A work that is caught up: its Finish and receipt, and what they are fenced by."""

    @property
    def finish(self) -> bytes:
        """The Finish."""
        ...

    @property
    def receipt(self) -> bytes:
        """Metering's word that the input is current."""
        ...

    @property
    def fencing_token(self) -> int:
        """Of the lease."""
        ...

    @property
    def expected_revision(self) -> int:
        """Of the catch-up fence."""
        ...


@dataclass(frozen=True, slots=True)
class Evaluated:
    """What an evaluated work writes.

    Attributes:
        transition, consumption, envelopes: None and empty when there was nothing to change.
        exposure: where the transition touched one.
        receipt: of the transition's own validation.
        successor: the work that verifies the result.
    """

    finish: bytes
    successor: bytes
    receipt: bytes
    fencing_token: int
    expected_revision: int
    expected_state_revision: int
    transition: bytes | None = None
    consumption: bytes | None = None
    exposure: bytes | None = None
    envelopes: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class CommandState:
    """What a late command is about: the dimension, and what the same operation came to if it was applied before."""

    subject: Json | None
    dimension: Json | None
    economic_identity: Json | None
    applied: bytes | None


@dataclass(frozen=True, slots=True)
class ChainLink:
    """One revision of a dimension.

    Attributes:
        question: the place of the question it belongs to, from 1.
        exposure: that it left, where it touched one.
    """

    question: int
    revision: int
    fact_kind: str
    document: bytes
    exposure: bytes | None


def hold(connection: Connection[Any], reservations: Sequence[str], dimensions: Sequence[str]) -> None:
    """Lock everything that some events may change, in one order."""
    query = "select billing.settlement_hold_v1(%s::text[], %s::text[])"
    _ = _value(connection, query, (list(reservations), list(dimensions)))


def lock(connection: Connection[Any], reservation: str, dimension: str) -> LockedDimension:
    """Lock and read what one event may change."""
    with translating(), connection.cursor(row_factory=class_row(LockedDimension)) as cursor:
        query = "select * from billing.settlement_lock_v1(%s, %s)"
        row = cursor.execute(query, (reservation, dimension)).fetchone()
    assert row is not None  # noqa: S101 - the function returns exactly one row
    return row


def advance(connection: Connection[Any], change: Advance) -> int:
    """Write what an event changes (TX-28); the inbox revision."""
    query = "select billing.settlement_advance_v1(%s, %s, %s, %s, %s, %s, %s)"
    arguments = (
        Jsonb(dict(change.input)),
        change.expected_inbox_revision,
        change.mode,
        change.expected_revision,
        change.trigger,
        change.work,
        change.superseded,
    )
    return int(_value(connection, query, arguments))


def claim_works(connection: Connection[Any], owner: str, limit: int, lease: timedelta) -> list[ClaimedRow]:
    """Lease works that are due."""
    with translating(), connection.cursor(row_factory=class_row(ClaimedRow)) as cursor:
        query = "select * from billing.catch_up_claim_v1(%s, %s, %s)"
        return cursor.execute(query, (owner, limit, lease)).fetchall()


def finish_works(connection: Connection[Any], ended: Sequence[Ended]) -> list[str]:
    """Catch up (TX-31); the references of the works that ended, without those that moved on."""
    query = "select billing.catch_up_finish_v1(%s::bytea[], %s::bytea[], %s::bigint[], %s::bigint[])"
    columns = (
        [one.finish for one in ended],
        [one.receipt for one in ended],
        [one.fencing_token for one in ended],
        [one.expected_revision for one in ended],
    )
    return list(_value(connection, query, columns))


def block_work(
    connection: Connection[Any],
    *,
    conflict: bytes,
    blocked: bytes,
    fencing_token: int,
    expected_revision: int,
    base: timedelta,
    longest: timedelta,
) -> bytes:
    """Block a work on an owner's conflict (TX-29); the stored Blocked."""
    query = "select billing.catch_up_block_v1(%s, %s, %s, %s, %s, %s)"
    arguments = (conflict, blocked, fencing_token, expected_revision, base, longest)
    return bytes(_value(connection, query, arguments))


def retry_works(
    connection: Connection[Any], works: Iterable[tuple[str, int]], *, base: timedelta, longest: timedelta
) -> int:
    """Give works back, each by reference and fencing token; how many were still leased."""
    items = list(works)
    query = "select billing.catch_up_retry_v1(%s::text[], %s::bigint[], %s, %s)"
    return int(_value(connection, query, ([one[0] for one in items], [one[1] for one in items], base, longest)))


def commit_evaluation(connection: Connection[Any], evaluated: Evaluated) -> bytes:
    """Write what an evaluation came to, with its successor (TX-11, TX-30); the stored Finish."""
    query = "select billing.transition_commit_v1(%s, %s, %s, %s, %s, %s, %s::bytea[], %s, %s, %s)"
    arguments = (
        evaluated.finish,
        evaluated.successor,
        evaluated.receipt,
        evaluated.transition,
        evaluated.consumption,
        evaluated.exposure,
        list(evaluated.envelopes),
        evaluated.fencing_token,
        evaluated.expected_revision,
        evaluated.expected_state_revision,
    )
    return bytes(_value(connection, query, arguments))


def read_command_state(connection: Connection[Any], case_ref: str, operation_id: str) -> CommandState:
    """What a late command starts from."""
    with translating(), connection.cursor(row_factory=class_row(CommandState)) as cursor:
        query = "select * from billing.late_command_read_v1(%s, %s)"
        row = cursor.execute(query, (case_ref, operation_id)).fetchone()
    assert row is not None  # noqa: S101 - the function returns exactly one row
    return row


def commit_late_command(
    connection: Connection[Any], *, result: bytes, exposure: bytes, envelopes: Sequence[bytes]
) -> bytes:
    """Close an exposure by hand (TX-12); the stored result."""
    query = "select billing.late_command_commit_v1(%s, %s, %s::bytea[])"
    return bytes(_value(connection, query, (result, exposure, list(envelopes))))


def read_chains(connection: Connection[Any], questions: Sequence[tuple[str, int, int]]) -> list[ChainLink]:
    """The revisions of dimensions, each after the first and up to the second revision of its question, in order."""
    with translating(), connection.cursor(row_factory=class_row(ChainLink)) as cursor:
        query = "select * from billing.exposure_chain_read_v1(%s::text[], %s::bigint[], %s::bigint[])"
        columns = ([one[0] for one in questions], [one[1] for one in questions], [one[2] for one in questions])
        return cursor.execute(query, columns).fetchall()


def _value(connection: Connection[Any], query: LiteralString, arguments: Sequence[object]) -> Any:  # noqa: ANN401 - as PostgreSQL has it
    with translating():
        row = connection.execute(query, arguments).fetchone()
    assert row is not None  # noqa: S101 - a function returns exactly one row
    return row[0]
