"""The verbs of a delivery: claim, renew, acknowledge, retry, quarantine, recover (`functions/delivery/`).

Every function is one round trip and must be committed by the caller; the pools run in autocommit mode, so each call is
its own transaction. Settle functions return what they refused; everything else was moved.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, LiteralString, NamedTuple
from uuid import UUID

from seapost.model.delivery import Claim, Fence, Refusal
from seapost.store import delivery_set
from seapost.store.arrays import (
    BooleanArray,
    ByteaArray,
    Int8Array,
    IntervalArray,
    TextArray,
    TimestampArray,
    UuidArray,
)
from seapost.store.calls import call_async

if TYPE_CHECKING:
    from collections.abc import Sequence

    import psycopg

    from seapost.model.delivery_set import Member

    Connection = psycopg.AsyncConnection[Any]


class Settlement(NamedTuple):
    """An acknowledgement to write: the fence, the event's digest and the verified receipt (candidate bytes)."""

    fence: Fence
    event_digest: bytes
    receipt_ref: str
    receipt_candidate: bytes


@dataclass(frozen=True, slots=True)
class Postponement:
    """A retry to write: when (seconds from now), why, and how it counts (see `delivery_retry_v1`)."""

    fence: Fence
    delay_seconds: float
    code: str
    reference: str | None
    counted: bool
    lost: bool


@dataclass(frozen=True, slots=True)
class Isolation:
    """A quarantine to write, with its normalized reason."""

    fence: Fence
    code: str
    reference: str | None


async def claim(
    connection: Connection,
    *,
    destination: str,
    limit: int,
    owner: str,
    lease_seconds: float,
    low: Sequence[datetime | None] | None,
    suspects: bool,
    members: dict[int, Member],
    first_lane: int = 0,
) -> list[Claim]:
    """Lease due deliveries of one destination, oldest first (CLM-01..03).

    `low` is the low-water hint of each fair lane from 0 on (None: sweep everything); `first_lane` is where a claim
    smaller than the number of lanes begins. `members` is the caller's cache of frozen members; it is filled here when a
    claim shows a member it does not know yet, which happens once after each activation.
    """
    rows = await call_async(
        connection,
        "select * from seapost.delivery_claim_v1(%b, %b::int, %b, %b, %b, %b, %b::int)",
        (
            destination,
            limit,
            owner,
            timedelta(seconds=lease_seconds),
            TimestampArray(low or ()),
            suspects,
            first_lane,
        ),
        many_identifiers=True,
    )
    if any(row[7] not in members for row in rows):
        members.update(await delivery_set.members(connection))
    return [
        Claim(
            destination,
            Fence(event_id, attempt_id, token),
            attempt_number,
            failure_count,
            lost_count,
            company,
            members[member_id],
            event_digest,
            envelope,
            available_at,
            lane,
        )
        for (
            event_id,
            attempt_id,
            token,
            attempt_number,
            failure_count,
            lost_count,
            company,
            member_id,
            event_digest,
            envelope,
            available_at,
            lane,
        ) in rows
    ]


async def acknowledge(
    connection: Connection,
    *,
    destination: str,
    receipt_type: str,
    receipt_schema_version: str,
    receipt_algorithm: str,
    settlements: Sequence[Settlement],
) -> list[Refusal]:
    """Confirm deliveries of one destination and one receipt type; return the refused ones (DLV-07, DLV-12)."""
    return await _refusals(
        connection,
        "select * from seapost.delivery_acknowledge_v1(%b, %b, %b, %b, %b, %b, %b, %b, %b, %b)",
        (
            destination,
            *_fences([item.fence for item in settlements]),
            ByteaArray(item.event_digest for item in settlements),
            receipt_type,
            receipt_schema_version,
            receipt_algorithm,
            TextArray(item.receipt_ref for item in settlements),
            ByteaArray(item.receipt_candidate for item in settlements),
        ),
    )


async def retry(connection: Connection, *, destination: str, postponements: Sequence[Postponement]) -> list[Refusal]:
    """Finish attempts as retryable and make their deliveries due again (DLV-04, DLV-13)."""
    return await _refusals(
        connection,
        "select * from seapost.delivery_retry_v1(%b, %b, %b, %b, %b, %b, %b, %b, %b)",
        (
            destination,
            *_fences([item.fence for item in postponements]),
            IntervalArray(timedelta(seconds=item.delay_seconds) for item in postponements),
            TextArray(item.code for item in postponements),
            TextArray(item.reference for item in postponements),
            BooleanArray(item.counted for item in postponements),
            BooleanArray(item.lost for item in postponements),
        ),
    )


async def quarantine(connection: Connection, *, destination: str, isolations: Sequence[Isolation]) -> list[Refusal]:
    """Finish attempts as non-retryable and put their deliveries into quarantine (DLV-05, DLV-13)."""
    return await _refusals(
        connection,
        "select * from seapost.delivery_quarantine_v1(%b, %b, %b, %b, %b, %b)",
        (
            destination,
            *_fences([item.fence for item in isolations]),
            TextArray(item.code for item in isolations),
            TextArray(item.reference for item in isolations),
        ),
    )


async def renew(
    connection: Connection, *, destination: str, fences: Sequence[Fence], lease_seconds: float
) -> set[UUID]:
    """Lengthen the leases still held; return the events renewed. What is missing is lost (CLM-05)."""
    rows = await call_async(
        connection,
        "select * from seapost.delivery_renew_v1(%b, %b, %b, %b, %b)",
        (destination, *_fences(fences), timedelta(seconds=lease_seconds)),
    )
    return {row[0] for row in rows}


async def recover(connection: Connection, *, limit: int, delay_seconds: float = 0.0) -> dict[str, int]:
    """End attempts whose lease expired by the database's clock; return the number per destination (CLM-07)."""
    rows = await call_async(
        connection,
        "select * from seapost.delivery_recover_v1(%b::int, %b)",
        (limit, timedelta(seconds=delay_seconds)),
    )
    return {row[0]: row[1] for row in rows}


def _fences(fences: Sequence[Fence]) -> tuple[UuidArray, Int8Array, UuidArray]:
    return (
        UuidArray(fence.event_id for fence in fences),
        Int8Array(fence.attempt_id for fence in fences),
        UuidArray(fence.token for fence in fences),
    )


async def _refusals(connection: Connection, query: LiteralString, arguments: tuple[object, ...]) -> list[Refusal]:
    return [Refusal(*row) for row in await call_async(connection, query, arguments)]
