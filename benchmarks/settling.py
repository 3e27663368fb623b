"""The verbs of a delivery one by one: claim, receive and acknowledge through the store, without a dispatcher."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any, Final

import psycopg

from seapost.inbox.receipts import ConsumerReceiptWriter, ReceiptSubject
from seapost.model.delivery import Claim
from seapost.model.delivery_set import Member
from seapost.store import delivery, inbox

SWEEP_SECONDS: Final = 1.0
SWEEP_PAUSE_FACTOR: Final = 20.0


@dataclass(slots=True)
class Took:
    """Milliseconds of each call, in order."""

    claim: list[float] = field(default_factory=list[float])
    settle: list[float] = field(default_factory=list[float])


class Settling:
    """One session that claims and settles for one destination; consumer and destination have the same name.

    It keeps the dispatcher's low-water hint and sweeps as often as the dispatcher does.
    """

    def __init__(self, connection: psycopg.AsyncConnection[Any], destination: str) -> None:
        self._connection = connection
        self._destination = destination
        self._writer = ConsumerReceiptWriter(destination, destination)
        self._members: dict[int, Member] = {}
        self._low: datetime | None = None
        self._sweep_at = 0.0
        self.took = Took()

    async def claim(self, limit: int) -> list[Claim]:
        """Lease up to `limit` due deliveries."""
        started = time.perf_counter()
        low = None if started >= self._sweep_at else self._low
        claims = await delivery.claim(
            self._connection,
            destination=self._destination,
            limit=limit,
            owner="bench",
            lease_seconds=3_600.0,
            low=None if low is None else [low],
            suspects=False,
            members=self._members,
        )
        seconds = time.perf_counter() - started
        if low is None:
            self._sweep_at = started + seconds + max(SWEEP_SECONDS, SWEEP_PAUSE_FACTOR * seconds)
        if claims:
            self._low = claims[-1].available_at
            self.took.claim.append(seconds * 1_000)
        return claims

    async def receive(self, claims: Sequence[Claim]) -> None:
        """Write a receipt for each claim, as its consumer would."""
        receipts = [
            inbox.NewReceipt(
                claim.fence.event_id,
                claim.event_digest,
                self._writer.reference(subject),
                self._writer.candidate(subject),
            )
            for claim, subject in ((claim, _subject(claim)) for claim in claims)
        ]
        _ = await inbox.receive_at_async(self._connection, consumer=self._destination, receipts=receipts)

    async def acknowledge(self, claims: Sequence[Claim]) -> None:
        """Confirm the claims; raise RuntimeError when one was refused."""
        settlements = [
            delivery.Settlement(
                claim.fence, claim.event_digest, self._writer.reference(subject), self._writer.candidate(subject)
            )
            for claim, subject in ((claim, _subject(claim)) for claim in claims)
        ]
        started = time.perf_counter()
        refused = await delivery.acknowledge(
            self._connection,
            destination=self._destination,
            receipt_type=self._writer.receipt_type,
            receipt_schema_version=self._writer.schema_version,
            receipt_algorithm="jcs-sha256-v1",
            settlements=settlements,
        )
        self.took.settle.append((time.perf_counter() - started) * 1_000)
        if refused:
            message = f"{len(refused)} acknowledgements were refused"
            raise RuntimeError(message)

    async def drain(self, batch: int, *, receive: bool = True) -> int:
        """Claim and settle, one batch after the other, until nothing is due; return how many."""
        done = 0
        while claims := await self.claim(batch):
            if receive:
                await self.receive(claims)
            await self.acknowledge(claims)
            done += len(claims)
        return done


def _subject(claim: Claim) -> ReceiptSubject:
    member = claim.member
    digest = sha256(claim.envelope).hexdigest()
    return ReceiptSubject(str(claim.fence.event_id), member.event_type, member.schema_version, digest)
