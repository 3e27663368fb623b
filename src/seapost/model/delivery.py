"""A delivery as the dispatcher sees it, and the closed names of its states (STO-19, STO-24)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from seapost.model.delivery_set import Member


class DeliveryStatus(StrEnum):
    """Where a delivery is; each value is one table that holds it (STO-08, design of the kernel)."""

    PENDING = "pending"
    LEASED = "leased"
    ACKNOWLEDGED = "acknowledged"
    QUARANTINED = "quarantined"


class Fence(NamedTuple):
    """The condition every change of a leased delivery must carry (CLM-05): equality decides, not time."""

    event_id: UUID
    attempt_id: int
    token: UUID


@dataclass(slots=True)  # not frozen: thousands are made in a second, and a frozen one takes three times as long to make
class Claim:
    """One leased delivery: the right to call the consumer once, until the lease is recovered. Nothing ever changes it.

    Attributes:
        attempt_number: 1 for the first claim of this delivery, counted at claim (AMB-24).
        failure_count: finishes so far that count towards `policy_max_attempts`.
        lost_count: attempts in a row that ended without any answer about this very delivery.
        company: deliveries claimed in the same call, this one included.
        event_digest: sha256 of `envelope`, 32 bytes, as stored.
        envelope: canonical event envelope, the exact stored bytes.
        lane: the fair lane it waited in; 0 where the destination has one only.
    """

    destination: str
    fence: Fence
    attempt_number: int
    failure_count: int
    lost_count: int
    company: int
    member: Member
    event_digest: bytes
    envelope: bytes
    available_at: datetime
    lane: int = 0


@dataclass(frozen=True, slots=True)
class Refusal:
    """A delivery that a settle call did not move, and why.

    `stale`: another attempt or nobody holds it (CLM-09); forget it. `invalid`: the lease is still
    ours, but the acknowledgement does not match the frozen member or event (PUB-03, AMB-52).
    """

    event_id: UUID
    attempt_id: int
    result: str
