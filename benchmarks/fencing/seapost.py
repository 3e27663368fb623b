"""Seapost: a claim is lost when its lease has expired and is recovered; the next claim carries another token."""

from __future__ import annotations

import asyncio
from hashlib import sha256
from typing import Any, Final

import psycopg
from typing_extensions import override

from benchmarks.events import Measured, install, prepare
from benchmarks.fencing.scenario import GONE, Scenario, Worker
from seapost.inbox.receipts import ConsumerReceiptWriter, ReceiptSubject
from seapost.model.delivery import Claim
from seapost.outbox.append import append_many_async
from seapost.store import delivery, inbox

DESTINATION: Final = "one"
LEASE_SECONDS: Final = 0.1
LONG_SECONDS: Final = 3_600.0
STATE: Final = "select status, attempt_count from seapost.outbox_deliveries"


class Seapost(Scenario):
    """The store's calls, which the dispatcher makes; both workers have the consumer's receipt in hand."""

    packages = ("seapost", "psycopg")
    calls = "delivery_acknowledge_v1 after delivery_recover_v1"

    def __init__(self) -> None:
        self._writer = ConsumerReceiptWriter(DESTINATION, DESTINATION)
        self._claims: dict[Worker, Claim] = {}
        self._connection: psycopg.AsyncConnection[Any] | None = None

    @property
    def _session(self) -> psycopg.AsyncConnection[Any]:
        assert self._connection is not None  # noqa: S101 - `open` comes first
        return self._connection

    @override
    async def open(self, dsn: str) -> None:
        await asyncio.to_thread(install, dsn)
        self._connection = await psycopg.AsyncConnection.connect(dsn, autocommit=True)

    @override
    async def append(self) -> None:
        async with self._session.transaction():
            _ = await append_many_async(self._session, prepare(Measured, 0, 1))

    @override
    async def claim(self, worker: Worker) -> None:
        again = bool(self._claims)
        found = await delivery.claim(
            self._session,
            destination=DESTINATION,
            limit=1,
            owner=worker,
            lease_seconds=LONG_SECONDS if again else LEASE_SECONDS,
            low=None,
            suspects=again,
            members={},
        )
        if not found:
            raise LookupError(worker)
        self._claims[worker] = found[0]

    @override
    async def lose(self) -> None:
        await asyncio.sleep(2 * LEASE_SECONDS)
        _ = await delivery.recover(self._session, limit=1)

    @override
    async def succeed(self, worker: Worker) -> object:
        claim = self._claims[worker]
        subject = _subject(claim)
        reference, candidate = self._writer.reference(subject), self._writer.candidate(subject)
        receipt = inbox.NewReceipt(claim.fence.event_id, claim.event_digest, reference, candidate)
        _ = await inbox.receive_at_async(self._session, consumer=DESTINATION, receipts=[receipt])
        refusals = await delivery.acknowledge(
            self._session,
            destination=DESTINATION,
            receipt_type=self._writer.receipt_type,
            receipt_schema_version=self._writer.schema_version,
            receipt_algorithm="jcs-sha256-v1",
            settlements=[delivery.Settlement(claim.fence, claim.event_digest, reference, candidate)],
        )
        return [refusal.result for refusal in refusals]

    @override
    async def fail(self, worker: Worker) -> object:
        fence = self._claims[worker].fence
        postponement = delivery.Postponement(fence, 0.0, "timeout", None, counted=True, lost=False)
        refusals = await delivery.retry(self._session, destination=DESTINATION, postponements=[postponement])
        return [refusal.result for refusal in refusals]

    @override
    async def state(self) -> str:
        cursor = await self._session.execute(STATE)
        return "; ".join(f"{status}, attempts={attempts}" for status, attempts in await cursor.fetchall()) or GONE

    @override
    async def close(self) -> None:
        await self._session.close()


def _subject(claim: Claim) -> ReceiptSubject:
    member = claim.member
    digest = sha256(claim.envelope).hexdigest()
    return ReceiptSubject(str(claim.fence.event_id), member.event_type, member.schema_version, digest)
