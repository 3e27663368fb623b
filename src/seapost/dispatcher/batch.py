"""The deliveries of one claim while this process works on them, and how long it may believe that it holds them.

Authority: the database; what is kept here only stops us from starting side effects too late (F14).
States: believed until a local monotonic time, counted from before the claim was sent; single deliveries become lost
when a renewal does not name them; the call runs, ends, or is cancelled for a reason.
Failures: a process that was stopped by the system finds its belief expired; the fence refuses whatever it still sends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final
from uuid import UUID

from seapost.model.delivery import Claim
from seapost.model.outcome import Outcome

MARGIN: Final = 0.1


class Cancelled(StrEnum):
    """Why a call was cancelled by ourselves."""

    LEASE_LOST = "lease_lost"
    STOPPED = "stopped"


@dataclass(slots=True, eq=False)
class Batch:
    """Claims of one destination, called and settled together.

    Attributes:
        sent_at: monotonic time just before the claim was sent.
        lease_seconds: duration of the lease.
        renew_at: when the next renewal is due.
        epoch: the breaker's ticket of this call.
    """

    claims: Sequence[Claim]
    sent_at: float
    lease_seconds: float
    renew_every_seconds: float
    suspects: bool = False
    epoch: int = 0
    believed_until: float = field(init=False)
    renew_at: float = field(init=False)
    lost: set[UUID] = field(init=False, default_factory=set[UUID])
    cancelled: Cancelled | None = field(init=False, default=None)
    call: asyncio.Future[Sequence[Outcome]] | None = field(init=False, default=None)
    cancelling: asyncio.Event = field(init=False, default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        """The belief counts from before the claim was sent, so it ends before the lease does."""
        self.believed_until = self.sent_at + self.lease_seconds
        self.renew_at = self.sent_at + self.renew_every_seconds

    def may_call(self, now: float) -> bool:
        """Whether enough of the lease is left to start a side effect."""
        return now < self.believed_until - MARGIN * self.lease_seconds

    def held(self) -> list[Claim]:
        """Claims not known to be lost."""
        if not self.lost:
            return list(self.claims)
        return [claim for claim in self.claims if claim.fence.event_id not in self.lost]

    def renewed(self, sent_at: float, event_ids: set[UUID]) -> int:
        """Note the answer of a renewal sent at `sent_at`; return how many claims it showed to be lost."""
        before = len(self.lost)
        self.lost.update(claim.fence.event_id for claim in self.claims if claim.fence.event_id not in event_ids)
        self.believed_until = sent_at + self.lease_seconds
        self.renew_at = sent_at + self.renew_every_seconds
        if len(self.lost) == len(self.claims):
            self.cancel(Cancelled.LEASE_LOST)
        return len(self.lost) - before

    def cancel(self, reason: Cancelled) -> None:
        """End the call, if it runs; the first reason stays."""
        if self.call is not None and not self.call.done():
            self.cancelled = self.cancelled or reason
            self.call.cancel()
            self.cancelling.set()
