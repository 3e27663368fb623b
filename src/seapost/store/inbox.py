"""The consumer's receipts (`functions/inbox/`), in both colours: they run inside the handler's transaction."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from seapost.store.arrays import ByteaArray, TextArray, UuidArray
from seapost.store.calls import Row, call, call_async

if TYPE_CHECKING:
    from collections.abc import Sequence

    import psycopg

_RECEIVE_AT: Final = (
    "select seapost.inbox_committed_at_v1(), r.* from (values (1)) as one (n)"
    " left join seapost.inbox_receive_v1(%b, %b, %b, %b, %b) as r on true"
)
_MEET: Final = (
    "select seapost.inbox_committed_at_v1(), r.* from (values (1)) as one (n)"
    " left join seapost.inbox_meet_v1(%b, %b, %b) as r on true"
)
_RECORD: Final = "select seapost.inbox_record_v1(%b, %b, %b, %b, %b)"
_COMMITTED_AT: Final = "select seapost.inbox_committed_at_v1()"
_READ: Final = "select * from seapost.inbox_read_v1(%b, %b, %b, %b, %b)"


class NewReceipt(NamedTuple):
    """A receipt to write if its event is new; `candidate` is the canonical bytes its digest covers."""

    event_id: UUID
    event_digest: bytes
    receipt_ref: str
    candidate: bytes


@dataclass(frozen=True, slots=True)
class KnownReceipt:
    """The first receipt of an event received before; `result` is `duplicate` or `conflict` (other content)."""

    event_id: UUID
    result: str
    receipt_ref: str
    candidate: bytes
    committed_at: datetime
    event_digest: bytes


@dataclass(frozen=True, slots=True)
class ReadReceipt:
    """The answer of a targeted read: `found`, `not_found` or `conflicting`; the rest is None unless found."""

    result: str
    receipt_ref: str | None
    candidate: bytes | None
    committed_at: datetime | None


def receive_at(
    connection: psycopg.Connection[Any], *, consumer: str, receipts: Sequence[NewReceipt]
) -> tuple[dict[UUID, KnownReceipt], datetime]:
    """Write the receipts of new events; return the known ones by event, and `committed_at` (DLV-14, DLV-20)."""
    return _known_at(call(connection, _RECEIVE_AT, _arguments(consumer, receipts)))


async def receive_at_async(
    connection: psycopg.AsyncConnection[Any], *, consumer: str, receipts: Sequence[NewReceipt]
) -> tuple[dict[UUID, KnownReceipt], datetime]:
    """The same as `receive_at`, on an async connection."""
    return _known_at(await call_async(connection, _RECEIVE_AT, _arguments(consumer, receipts)))


def meet(
    connection: psycopg.Connection[Any], *, consumer: str, events: Sequence[tuple[UUID, bytes]]
) -> tuple[dict[UUID, KnownReceipt], datetime]:
    """Take events for this transaction, each with its digest; return the known receipts by event, and `committed_at`.

    A copy that another transaction holds is waited for, and known afterwards if that one committed (DLV-14, DLV-20).
    """
    event_ids, digests = UuidArray(item[0] for item in events), ByteaArray(item[1] for item in events)
    return _known_at(call(connection, _MEET, (consumer, event_ids, digests)))


def record(connection: psycopg.Connection[Any], *, consumer: str, receipts: Sequence[NewReceipt]) -> datetime:
    """Write the receipts that handlers made; return their `committed_at`.

    Raises:
        psycopg.errors.UniqueViolation: an event already has a receipt.
    """
    [(moment,)] = call(connection, _RECORD, _arguments(consumer, receipts))
    return moment


def committed_at(connection: psycopg.Connection[Any]) -> datetime:
    """The time that receipts written by this transaction carry."""
    [(moment,)] = call(connection, _COMMITTED_AT)
    return moment


async def committed_at_async(connection: psycopg.AsyncConnection[Any]) -> datetime:
    """The same as `committed_at`, on an async connection."""
    [(moment,)] = await call_async(connection, _COMMITTED_AT)
    return moment


async def read(
    connection: psycopg.AsyncConnection[Any],
    *,
    consumer: str,
    event_id: UUID,
    event_digest: bytes,
    receipt_ref: str,
    receipt_digest: bytes,
) -> ReadReceipt:
    """Read one receipt by its complete identity; there is no list and no latest (RCP rules)."""
    [row] = await call_async(connection, _READ, (consumer, event_id, event_digest, receipt_ref, receipt_digest))
    return ReadReceipt(*row)


def read_sync(
    connection: psycopg.Connection[Any],
    *,
    consumer: str,
    event_id: UUID,
    event_digest: bytes,
    receipt_ref: str,
    receipt_digest: bytes,
) -> ReadReceipt:
    """The same as `read`, on a sync connection."""
    [row] = call(connection, _READ, (consumer, event_id, event_digest, receipt_ref, receipt_digest))
    return ReadReceipt(*row)


def _known_at(rows: list[Row]) -> tuple[dict[UUID, KnownReceipt], datetime]:
    """The moment stands in every row; the one row of a call that knew nothing holds no event."""
    moment: datetime = rows[0][0]
    return {row[1]: KnownReceipt(*row[1:]) for row in rows if row[1] is not None}, moment


def _arguments(consumer: str, receipts: Sequence[NewReceipt]) -> tuple[object, ...]:
    return (
        consumer,
        UuidArray(item.event_id for item in receipts),
        ByteaArray(item.event_digest for item in receipts),
        TextArray(item.receipt_ref for item in receipts),
        ByteaArray(item.candidate for item in receipts),
    )
