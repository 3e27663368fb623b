"""Calls of the delivery functions: claim, acknowledge, look, read (section 27, TX-11, TX-12, TX-15)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from orbit.model.states import PullReason
from orbit.store.calls import call

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psycopg import AsyncConnection

EARLIEST: Final = datetime.min.replace(tzinfo=UTC)
"""Before every lease: as a floor, no bound."""
LATEST: Final = datetime.max.replace(tzinfo=UTC)
"""After every lease: a connection that holds nothing."""


@dataclass(frozen=True, slots=True)
class ClaimBounds:
    """Where a claim begins to look; hints that spare the walk over dead index entries, never proof (LSE-35).

    Attributes:
        lease_floor: leases with this deadline or an earlier one have been recycled.
        held_floor: the connection holds no lease with an earlier deadline than this.
        ready_floor: nothing ready has a lower sequence.
    """

    lease_floor: datetime
    held_floor: datetime
    ready_floor: int


UNBOUNDED: Final = ClaimBounds(EARLIEST, EARLIEST, 0)
"""Look at everything."""


@dataclass(frozen=True, slots=True)
class ClaimOrder:
    """What `delivery_claim_v1` takes beside the token.

    Attributes:
        connection_id: made by the server, never by a client (LSE-11).
        secrets_sha256: one digest for each delivery asked for (LSE-34).
    """

    subscription_id: str
    connection_id: str
    capacity: int
    requested: int
    secrets_sha256: Sequence[bytes]
    bounds: ClaimBounds


@dataclass(frozen=True, slots=True)
class Leased:
    """One delivery that a claim leased.

    Attributes:
        i: place in the claim, from 1; the secret with this number belongs to it.
        snapshot_json: the stored text, to be sent as it is (WSS-09).
    """

    i: int
    delivery_id: str
    event_id: str
    event_type: str
    event_sequence: int
    lease_epoch: int
    lease_expires_at: datetime
    attempts: int
    attempt_budget: int
    snapshot_json: str


@dataclass(frozen=True, slots=True)
class Claim:
    """What one claim came to.

    Attributes:
        reason: why there is not more; `DELIVERED` when there is something.
        scan_again: nothing was leased, but the cursor moved and is still behind the head (MAT-17).
        claimed_at: time of the claim by the database's clock.
        deliveries: what was leased, in ascending sequence.
        bounded: the claim did not look at everything (LSE-35).
    """

    reason: PullReason
    scan_again: bool
    pending_count: int
    max_pending: int
    claimed_at: datetime
    deliveries: list[Leased]
    bounded: bool = False


@dataclass(frozen=True, slots=True)
class Ack:
    """One ACK as it came, with the digest of its secret."""

    delivery_id: str
    lease_epoch: int
    secret_sha256: bytes


@dataclass(frozen=True, slots=True)
class AckAnswer:
    """The answer to one ACK: a code, or the time of the effective ACK (LSE-25)."""

    code: str | None
    acked_at: datetime | None
    duplicate: bool


async def claim(connection: AsyncConnection[Any], token_sha256: bytes, order: ClaimOrder) -> Claim:
    """Recycle, materialise and lease for one connection (TX-11)."""
    rows = await call(
        connection,
        "select reason, scan_again, pending_count, max_pending, claimed_at, i, delivery_id, event_id, event_type,"
        " event_sequence, lease_epoch, lease_expires_at, attempts, attempt_budget, snapshot_json"
        " from orbit.delivery_claim_v1(%s, %s, %s, %s, %s, %s, %s, %s, %s)",
        (
            token_sha256,
            order.subscription_id,
            order.connection_id,
            order.capacity,
            order.requested,
            list(order.secrets_sha256),
            order.bounds.lease_floor,
            order.bounds.held_floor,
            order.bounds.ready_floor,
        ),
    )
    reason, scan_again, pending_count, max_pending, claimed_at, line, *_ = rows[0]
    leased = [] if line is None else [Leased(*row[5:]) for row in rows]
    bounded = order.bounds != UNBOUNDED
    return Claim(PullReason(reason), scan_again, pending_count, max_pending, claimed_at, leased, bounded)


async def acknowledge(
    connection: AsyncConnection[Any],
    token_sha256: bytes,
    subscription_id: str,
    connection_id: str,
    acks: Sequence[Ack],
) -> list[AckAnswer]:
    """Settle a group of ACKs (TX-12); the answers are in the order of the group."""
    rows = await call(
        connection,
        "select code, acked_at, duplicate from orbit.delivery_acknowledge_v1(%s, %s, %s, %s::text[], %s::bigint[], %s)",
        (
            token_sha256,
            subscription_id,
            connection_id,
            [ack.delivery_id for ack in acks],
            [ack.lease_epoch for ack in acks],
            [ack.secret_sha256 for ack in acks],
        ),
    )
    return [AckAnswer(*row) for row in rows]


async def waiting(connection: AsyncConnection[Any], subscription_id: str, bounds: ClaimBounds) -> bool:
    """Whether a claim could do anything; takes no lock (WSS-08)."""
    ((answer,),) = await call(
        connection,
        "select orbit.delivery_waiting_v1(%s, %s, %s)",
        (subscription_id, bounds.lease_floor, bounds.ready_floor),
    )
    return answer


async def page(
    connection: AsyncConnection[Any],
    token_sha256: bytes,
    subscription_id: str,
    states: Sequence[str] | None,
    limit: int,
    after_sequence: int | None,
) -> list[tuple[int, str]]:
    """Read at most `limit` deliveries; sequence and body of each."""
    rows = await call(
        connection,
        "select event_sequence, body from orbit.delivery_list_v1(%s, %s, %s::text[], %s, %s)",
        (token_sha256, subscription_id, None if states is None else list(states), limit, after_sequence),
    )
    return [(sequence, body) for sequence, body in rows]


async def get(connection: AsyncConnection[Any], token_sha256: bytes, subscription_id: str, delivery_id: str) -> str:
    """Read the body of a delivery (TX-15)."""
    ((body,),) = await call(
        connection, "select orbit.delivery_get_v1(%s, %s, %s)", (token_sha256, subscription_id, delivery_id)
    )
    return body
