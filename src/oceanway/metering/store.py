"""One thin function for each SQL function of the lanes and works of metering."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from oceanway.contracts.errors import translating
from seapost.store.arrays import ByteaArray, Int8Array, TextArray
from seapost.store.calls import call

if TYPE_CHECKING:
    from psycopg import Connection

_LOCK: Final = "select * from metering.input_lock_v1(%b, %b)"
_ADVANCE: Final = "select metering.input_advance_v1(%b, %b, %b, %b, %b)"
_CLAIM: Final = "select * from metering.work_claim_v1(%b, %b, %b, %b)"
_RELEASE: Final = "select metering.work_release_v1(%b, %b, %b, %b)"
_SUPERSEDED: Final = "select metering.work_superseded_v1(%b)"
_WAIT: Final = "select metering.work_wait_v1(%b, %b, %b)"
_BLOCK: Final = "select metering.work_block_v1(%b, %b, %b, %b, %b, %b)"
_APPLY: Final = "select metering.eligibility_apply_v1(%b, %b, %b, %b, %b, %b, %b, %b)"
_PROCESS: Final = "select metering.cost_process_v1(%b, %b, %b, %b, %b, %b)"


class Claim(NamedTuple):
    """A leased work with what its worker needs of this database.

    Attributes:
        envelopes: the accepted events behind the watermarks of the lane.
        pointers: the current snapshots of the attempt, each with its decision; none for a cost lane.
    """

    work: bytes
    manifest: bytes
    envelopes: list[bytes]
    pointers: list[dict[str, Any]]
    attempt_number: int
    fencing_token: int
    fence_revision: int


class Backoff(NamedTuple):
    """How long a fruitless work waits: doubled each time, up to the longest."""

    base: timedelta
    longest: timedelta


def lock(
    connection: Connection[Any], *, envelope: bytes, manifest: bytes
) -> tuple[list[dict[str, Any]], dict[str, Any] | None, bytes | None]:
    """Take the fence and the lane of an event; its watermarks, its row and its active work."""
    with translating():
        [(watermarks, lane, work)] = call(connection, _LOCK, (envelope, manifest))
    return watermarks, lane, work


def advance(
    connection: Connection[Any],
    *,
    envelope: bytes,
    work: bytes,
    state: bytes,
    superseded: bytes | None,
    expected_revision: int,
) -> None:
    """Write watermark, work, lane and a superseded finish (TX-17)."""
    with translating():
        _ = call(connection, _ADVANCE, (envelope, work, state, superseded, expected_revision))


def claim(connection: Connection[Any], *, lane_kind: str, owner: str, limit: int, lease: timedelta) -> list[Claim]:
    """Lease works that are due, each with a started row."""
    with translating():
        return [Claim(*row) for row in call(connection, _CLAIM, (lane_kind, owner, limit, lease))]


def release(connection: Connection[Any], *, leases: Sequence[tuple[str, int]], backoff: Backoff) -> None:
    """Give leases back, as pairs of work and token, and let the works wait (MTR-39)."""
    refs, tokens = TextArray(ref for ref, _ in leases), Int8Array(token for _, token in leases)
    with translating():
        _ = call(connection, _RELEASE, (refs, tokens, *backoff))


def superseded(connection: Connection[Any], *, finish: bytes) -> bytes | None:
    """Append the finish of a superseded work, or get the first one; None where it is not superseded (MTR-12)."""
    with translating():
        [(document,)] = call(connection, _SUPERSEDED, (finish,))
    return document


def wait(connection: Connection[Any], *, token: int, finish: bytes, state: bytes) -> None:
    """Finish a work that waits for its counterpart."""
    with translating():
        _ = call(connection, _WAIT, (token, finish, state))


def block(
    connection: Connection[Any],
    *,
    token: int,
    evidence: bytes | None,
    blocked: bytes,
    state: bytes,
    backoff: Backoff,
) -> None:
    """Record a blocked attempt; the work stays (TX-21)."""
    with translating():
        _ = call(connection, _BLOCK, (token, evidence, blocked, state, *backoff))


def apply(
    connection: Connection[Any],
    *,
    token: int,
    decision: bytes,
    receipts: Sequence[bytes],
    meter_events: Sequence[bytes],
    snapshots: Sequence[bytes],
    envelopes: Sequence[bytes],
    finish: bytes,
    state: bytes,
) -> None:
    """Commit an applied eligibility work with its snapshots and their events (TX-18, TX-16)."""
    arrays = (ByteaArray(receipts), ByteaArray(meter_events), ByteaArray(snapshots), ByteaArray(envelopes))
    with translating():
        _ = call(connection, _APPLY, (token, decision, *arrays, finish, state))


def process(
    connection: Connection[Any],
    *,
    token: int,
    processing: bytes,
    fact: bytes | None,
    receipts: Sequence[bytes],
    finish: bytes,
    state: bytes,
) -> None:
    """Commit how a cost work ended (TX-19, TX-20)."""
    with translating():
        _ = call(connection, _PROCESS, (token, processing, fact, ByteaArray(receipts), finish, state))
