"""The workloads: the raw SQL limit and the same work with every fact and guard, on one server."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from seapost.contracts.envelope import SINGLE_TENANT, build_envelope, new_event_id
from seapost.contracts.events import Event
from seapost.contracts.receipt_registry import DEFAULT_RECEIPTS
from seapost.contracts.verification import verify_acknowledgement
from seapost.inbox.receipts import ConsumerReceiptWriter, ReceiptSubject
from seapost.outbox.application import Application
from seapost.store import delivery, inbox, outbox
from seapost.store.arrays import ByteaArray, UuidArray

if TYPE_CHECKING:
    from collections.abc import Sequence

    import psycopg

    from seapost.model.delivery import Claim
    from seapost.model.delivery_set import Member
    from seapost.model.outcome import Acknowledged

    Connection = psycopg.AsyncConnection[Any]


class Measured(Event, type="bench.measured@1", producer="bench", aggregate="bench"):
    """An event for one destination."""

    number: int
    filler: str


class MeasuredTwice(Event, type="bench.measured-twice@1", producer="bench", aggregate="bench"):
    """An event for two destinations."""

    number: int
    filler: str


APPLICATION = Application("bench")
APPLICATION.route(Measured, "one")
APPLICATION.route(MeasuredTwice, "left", "right")


@dataclass(frozen=True, slots=True)
class Timing:
    """How many items a workload did, and in how many seconds."""

    items: int
    seconds: float

    @property
    def rate(self) -> float:
        """Items per second."""
        return self.items / self.seconds


def envelopes(kind: type[Measured | MeasuredTwice], count: int, payload_bytes: int) -> list[bytes]:
    """Prepared envelopes; preparing is not what is measured."""
    filler = "x" * payload_bytes
    return [
        build_envelope(kind(number=n, filler=filler), key=f"bench-{n}", revision=1, tenant=SINGLE_TENANT).envelope
        for n in range(count)
    ]


async def append(connection: Connection, prepared: Sequence[bytes], batch: int) -> Timing:
    """Append in transactions of `batch` events."""
    started = time.perf_counter()
    for start in range(0, len(prepared), batch):
        _ = await outbox.append_async(connection, prepared[start : start + batch])
    return Timing(len(prepared), time.perf_counter() - started)


async def raw_append(connection: Connection, prepared: Sequence[bytes], batch: int) -> Timing:
    """Insert the same bytes into one plain table, with binary parameters: the limit of any append."""
    _ = await connection.execute("create table if not exists raw_append (id uuid primary key, body bytea not null)")
    started = time.perf_counter()
    for start in range(0, len(prepared), batch):
        part = prepared[start : start + batch]
        _ = await connection.execute(
            "insert into raw_append select * from unnest(%b::uuid[], %b::bytea[])",
            (UuidArray(new_event_id() for _ in part), ByteaArray(part)),
        )
    return Timing(len(prepared), time.perf_counter() - started)


async def raw_drain(connection: Connection, prepared: Sequence[bytes], batch: int) -> Timing:
    """Claim by update and finish by delete in one plain table: no facts, no receipts, no fence."""
    _ = await connection.execute("drop table if exists raw_job")
    _ = await connection.execute(
        "create table raw_job (id bigint primary key, state int not null, body bytea not null)"
    )
    _ = await connection.execute("create index on raw_job (state, id)")
    _ = await connection.execute(
        "insert into raw_job select n, 0, body from unnest(%b::bytea[]) with ordinality as u (body, n)",
        (ByteaArray(prepared),),
    )
    started = time.perf_counter()
    done = 0
    while True:
        cursor = await connection.execute(
            "update raw_job set state = 1 where id = any(array(select id from raw_job where state = 0 order by id"
            " limit %s for update skip locked)) returning id, body",
            (batch,),
            binary=True,
        )
        rows = await cursor.fetchall()
        if not rows:
            return Timing(done, time.perf_counter() - started)
        _ = await connection.execute("delete from raw_job where id = any(%s)", ([row[0] for row in rows],))
        done += len(rows)


async def drain(connection: Connection, destination: str, batch: int) -> Timing:
    """Claim, receive in an inbox, verify the acknowledgement and settle, one batch after the other."""
    members: dict[int, Member] = {}
    writer = ConsumerReceiptWriter(destination, destination)
    low: datetime | None = None
    started = time.perf_counter()
    done = 0
    while claims := await delivery.claim(
        connection,
        destination=destination,
        limit=batch,
        owner="bench",
        lease_seconds=60,
        low=low,
        suspects=False,
        members=members,
    ):
        low = claims[-1].available_at
        subjects = [_subject(claim) for claim in claims]
        candidates = [writer.candidate(subject) for subject in subjects]
        new = [
            inbox.NewReceipt(claim.fence.event_id, claim.event_digest, writer.reference(subject), candidate)
            for claim, subject, candidate in zip(claims, subjects, candidates, strict=True)
        ]
        _ = await inbox.receive_async(connection, consumer=destination, receipts=new)
        moment = datetime.now(UTC)
        settlements = [
            _verified(
                claim,
                writer.answer(subject, candidate=candidate, reference=writer.reference(subject), committed_at=moment),
            )
            for claim, subject, candidate in zip(claims, subjects, candidates, strict=True)
        ]
        refused = await delivery.acknowledge(
            connection,
            destination=destination,
            receipt_type="ConsumerReceipt",
            receipt_schema_version="1",
            receipt_algorithm="jcs-sha256-v1",
            settlements=settlements,
        )
        if refused:
            message = f"{len(refused)} acknowledgements were refused"
            raise RuntimeError(message)
        done += len(claims)
    return Timing(done, time.perf_counter() - started)


def _subject(claim: Claim) -> ReceiptSubject:
    member = claim.member
    digest = sha256(claim.envelope).hexdigest()
    return ReceiptSubject(str(claim.fence.event_id), member.event_type, member.schema_version, digest)


def _verified(claim: Claim, answer: Acknowledged) -> delivery.Settlement:
    verified = verify_acknowledgement(DEFAULT_RECEIPTS, claim, answer)
    return delivery.Settlement(claim.fence, claim.event_digest, verified.ref, verified.candidate)
