"""What operators ask: one event, one delivery with its attempts, each destination, the quarantine, the audit.

Only reads, only over views, each bounded: an event and a delivery by their key, lists by keyset pages, counts by the
view's own ceiling. Looking must never cost the database more than a moment (F83).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import UUID

from seapost.store.calls import records_async

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.AsyncConnection[Any]

RecordT = TypeVar("RecordT")

PAGE_LIMIT_MAX: Final = 1_000
COUNT_CEILING: Final = 100_000
"""Where the counts of `destination_status` stop; a count this high means "at least so many"."""


@dataclass(frozen=True, slots=True)
class EventRecord:
    """One event (STO-05); `event_envelope` is the exact stored bytes, payload included."""

    event_id: UUID
    event_type: str
    schema_version: str
    delivery_set_version: str
    delivery_set_definition_digest: str
    producer: str
    aggregate_kind: str
    aggregate_id: str
    aggregate_revision: int
    tenant_kind: str
    tenant_id: str
    workspace_id: str
    project_id: str | None
    correlation_id: str
    causation_id: str | None
    operation_id: str | None
    traceparent: str | None
    event_envelope: bytes
    event_envelope_digest_algorithm_version: str
    event_envelope_sha256: str
    occurred_at: datetime
    created_at: datetime
    mandatory_count: int
    published_at: datetime | None


@dataclass(frozen=True, slots=True)
class DeliveryRecord:
    """One delivery as the specification describes it (STO-08)."""

    event_id: UUID
    delivery_set_version: str
    destination: str
    consumer_name: str
    expected_receipt_type: str
    expected_receipt_schema_version: str
    required_projection_name: str | None
    required_projection_version: str | None
    status: str
    created_at: datetime
    available_at: datetime | None
    lease_owner: str | None
    lease_expires_at: datetime | None
    attempt_count: int
    failure_count: int | None
    last_attempt_at: datetime | None
    delivered_at: datetime | None
    last_error_code: str | None
    last_error_ref: str | None
    ack_receipt_type: str | None
    ack_receipt_key: str | None
    ack_receipt_schema_version: str | None
    ack_receipt_digest: str | None
    ack_event_envelope_sha256: str | None


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One attempt: its start, and its finish once there is one (STO-09, STO-10)."""

    attempt_id: int
    attempt_number: int
    lease_owner: str
    started_at: datetime
    finished_at: datetime | None
    outcome: str | None
    normalized_error_code: str | None
    sanitized_error_ref: str | None


@dataclass(frozen=True, slots=True)
class DestinationRecord:
    """How one destination stands (MET-01); counts stop at `COUNT_CEILING`."""

    destination: str
    pending: int
    due: int
    oldest_created_at: datetime | None
    next_available_at: datetime | None
    suspects: int
    leased: int
    oldest_expiry_at: datetime | None
    quarantined: int
    quarantined_unacknowledged: int
    fair_lanes: int
    lanes_due: int
    starved_since: datetime | None
    read_at: datetime

    @property
    def oldest_seconds(self) -> float:
        """Age of the oldest waiting delivery by the database's clock; 0 when none waits."""
        return 0.0 if self.oldest_created_at is None else (self.read_at - self.oldest_created_at).total_seconds()

    @property
    def starved_seconds(self) -> float:
        """How long a due delivery has waited in a fair lane with no more than an equal share of what is due (F23)."""
        return 0.0 if self.starved_since is None else (self.read_at - self.starved_since).total_seconds()


@dataclass(frozen=True, slots=True)
class QuarantineRecord:
    """One quarantined delivery (STO-11); `case_id` links an operator's case (REF-08)."""

    destination: str
    event_id: UUID
    reason: str
    sanitized_error_ref: str | None
    event_envelope_digest_algorithm_version: str
    event_envelope_sha256: str
    quarantined_at: datetime
    acknowledged_at: datetime | None
    case_id: str | None
    attempt_id: int


@dataclass(frozen=True, slots=True)
class ReceiptRecord:
    """One receipt as a consumer's database keeps it; `receipt_candidate` is the bytes that its digest covers."""

    consumer: str
    event_id: UUID
    committed_at: datetime
    event_envelope_sha256: str
    receipt_ref: str
    receipt_digest: str
    receipt_candidate: bytes


@dataclass(frozen=True, slots=True)
class Defect:
    """One row of `audit_places`: something that must never be."""

    defect: str
    event_id: UUID
    destination: str | None


@dataclass(frozen=True, slots=True)
class GuardRecord:
    """The guard level of a database, and since when."""

    level: str
    changed_at: datetime


@dataclass(frozen=True, slots=True)
class QuarantineKey:
    """Where a page of the quarantine ended; pages go from new to old and never skip or repeat a row (F49)."""

    quarantined_at: datetime
    event_id: UUID
    destination: str


_DELIVERY_COLUMNS: Final = (
    "select event_id, delivery_set_version, destination, consumer_name, expected_receipt_type,"
    " expected_receipt_schema_version, required_projection_name, required_projection_version, status, created_at,"
    " available_at, lease_owner, lease_expires_at, attempt_count, failure_count, last_attempt_at, delivered_at,"
    " last_error_code, last_error_ref, ack_receipt_type, ack_receipt_key, ack_receipt_schema_version,"
    " ack_receipt_digest, ack_event_envelope_sha256 from seapost.outbox_deliveries"
)
_QUARANTINE_COLUMNS: Final = (
    "select destination, event_id, reason, sanitized_error_ref, event_envelope_digest_algorithm_version,"
    " event_envelope_sha256, quarantined_at, acknowledged_at, case_id, attempt_id from seapost.outbox_quarantine"
)


async def event(connection: Connection, *, event_id: UUID) -> EventRecord | None:
    """One event by its id."""
    return _only(
        await records_async(
            connection,
            EventRecord,
            "select event_id, event_type, schema_version, delivery_set_version, delivery_set_definition_digest,"
            " producer, aggregate_kind, aggregate_id, aggregate_revision, tenant_kind, tenant_id, workspace_id,"
            " project_id, correlation_id, causation_id, operation_id, traceparent, event_envelope,"
            " event_envelope_digest_algorithm_version, event_envelope_sha256, occurred_at, created_at,"
            " mandatory_count, published_at from seapost.outbox_events where event_id = %s",
            (event_id,),
        )
    )


async def deliveries(connection: Connection, *, event_id: UUID) -> list[DeliveryRecord]:
    """Every delivery of one event, by destination."""
    return await records_async(
        connection, DeliveryRecord, _DELIVERY_COLUMNS + " where event_id = %s order by destination", (event_id,)
    )


async def delivery(connection: Connection, *, event_id: UUID, destination: str) -> DeliveryRecord | None:
    """One delivery by its key."""
    return _only(
        await records_async(
            connection,
            DeliveryRecord,
            _DELIVERY_COLUMNS + " where event_id = %s and destination = %s",
            (event_id, destination),
        )
    )


async def attempts(connection: Connection, *, event_id: UUID, destination: str, limit: int) -> list[AttemptRecord]:
    """The newest attempts of one delivery, oldest of them first."""
    return (
        await records_async(
            connection,
            AttemptRecord,
            "select s.attempt_id, s.attempt_number, s.lease_owner, s.started_at, f.finished_at, f.outcome,"
            " f.normalized_error_code, f.sanitized_error_ref"
            " from seapost.outbox_delivery_attempt_starts as s"
            " left join seapost.outbox_delivery_attempt_finishes as f"
            " on f.event_id = s.event_id and f.attempt_id = s.attempt_id"
            " where s.event_id = %s and s.destination = %s order by s.attempt_number desc limit %s",
            (event_id, destination, limit),
        )
    )[::-1]


async def destinations(connection: Connection) -> list[DestinationRecord]:
    """How every destination of any registered definition stands."""
    return await records_async(
        connection,
        DestinationRecord,
        "select destination, pending, due, oldest_created_at, next_available_at, suspects, leased,"
        " oldest_expiry_at, quarantined, quarantined_unacknowledged, fair_lanes, lanes_due, starved_since,"
        " seapost.clock_now() as read_at"
        " from seapost.destination_status order by destination",
    )


async def quarantine_page(
    connection: Connection,
    *,
    limit: int,
    before: QuarantineKey | None = None,
    destination: str | None = None,
    open_only: bool = False,
) -> list[QuarantineRecord]:
    """One page of the quarantine, newest first, from `before` (left out itself) towards older rows.

    Args:
        open_only: only what no operator has acknowledged.
    """
    key = (None, None, None) if before is None else (before.quarantined_at, before.event_id, before.destination)
    return await records_async(
        connection,
        QuarantineRecord,
        _QUARANTINE_COLUMNS + " where (%s::timestamptz is null"
        " or (quarantined_at, event_id, destination) < (%s::timestamptz, %s::uuid, %s::text))"
        " and (%s::text is null or destination = %s::text)"
        " and (not %s::boolean or acknowledged_at is null)"
        " order by quarantined_at desc, event_id desc, destination desc limit %s",
        (key[0], *key, destination, destination, open_only, min(limit, PAGE_LIMIT_MAX)),
    )


async def quarantined(connection: Connection, *, event_id: UUID, destination: str) -> QuarantineRecord | None:
    """One quarantined delivery by its key."""
    return _only(
        await records_async(
            connection,
            QuarantineRecord,
            _QUARANTINE_COLUMNS + " where event_id = %s and destination = %s",
            (event_id, destination),
        )
    )


async def receipt(connection: Connection, *, consumer: str, event_id: UUID) -> ReceiptRecord | None:
    """The receipt of one event in a consumer's database."""
    return _only(
        await records_async(
            connection,
            ReceiptRecord,
            "select consumer, event_id, committed_at, event_envelope_sha256, receipt_ref, receipt_digest,"
            " receipt_candidate from seapost.inbox_receipts where consumer = %s and event_id = %s",
            (consumer, event_id),
        )
    )


async def audit(connection: Connection, *, limit: int) -> list[Defect]:
    """The first defects of `audit_places`; none is what must be. This one reads everything."""
    return await records_async(
        connection, Defect, "select defect, event_id, destination from seapost.audit_places limit %s", (limit,)
    )


async def guards(connection: Connection) -> GuardRecord | None:
    """The guard level of this database."""
    return _only(await records_async(connection, GuardRecord, "select level, changed_at from seapost.guard_levels"))


def _only(records: list[RecordT]) -> RecordT | None:
    """The record of a key, which has one or none."""
    return records[0] if records else None
