"""Append: a fact and its deliveries become part of the caller's own transaction, and of no other.

Authority: the caller's transaction. Nothing here commits, rolls back or opens a connection, so an event exists exactly
when the business change beside it does (F01). `append` and `append_async` are the same call in two colours, because
they run inside the user's code; both are thin callers of `seapost.outbox_append_v1`, which any other client may call
with equal rights.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypedDict, Unpack
from uuid import UUID

from psycopg.pq import TransactionStatus

from seapost.contracts.envelope import SINGLE_TENANT, Correlation, PreparedEvent, Tenant, build_envelope, new_event_id
from seapost.model.errors import AppendOutsideTransaction, InvalidSetting, LimitExceeded
from seapost.store import outbox
from seapost.telemetry.tracing import current_traceparent

if TYPE_CHECKING:
    from collections.abc import Iterable

    import psycopg

    from seapost.contracts.events import Event

EVENTS_PER_CALL_MAX: Final = 10_000


class EventOptions(TypedDict, total=False):
    """What an append may say beyond the event, its key and its revision.

    Attributes:
        tenant: whose event it is; by default the one tenant of an application without tenants.
        correlation: absent, the event starts a story under its own id, with the current W3C trace context.
        occurred_at: an aware moment; absent, now.
        event_id: a UUIDv7; absent, a fresh one. Give the same id again to make a repeated append harmless.
        producer: used when the event's class names none.
    """

    tenant: Tenant
    correlation: Correlation
    occurred_at: datetime
    event_id: UUID
    producer: str


def prepare(event: Event, *, key: str, revision: int, **options: Unpack[EventOptions]) -> PreparedEvent:
    """Write the canonical envelope of one event without storing it.

    Args:
        event: the payload; its class names the event type, schema version and aggregate kind.
        key: identifier of the aggregate, 1 to 200 characters.
        revision: revision of the aggregate that this event made, from 1; consumers see gaps and repeats by it (ORD-02).
        options: see `EventOptions`.

    Raises:
        ContractError: a value breaks its rule; the error names the field by JSON pointer.
    """
    identity = options.get("event_id") or new_event_id()
    correlation = options.get("correlation")
    traceparent = current_traceparent()
    if correlation is None and traceparent is not None:
        correlation = Correlation(str(identity), traceparent=traceparent)
    return build_envelope(
        event,
        key=key,
        revision=revision,
        tenant=options.get("tenant", SINGLE_TENANT),
        producer=options.get("producer"),
        correlation=correlation,
        occurred_at=options.get("occurred_at"),
        event_id=identity,
    )


def append(
    connection: psycopg.Connection[Any], event: Event, *, key: str, revision: int, **options: Unpack[EventOptions]
) -> UUID:
    """Append one event to the connection's open transaction; return its id (APP-01..05).

    Takes the arguments of `prepare`. Appending the same id with the same content again changes nothing.

    Raises:
        AppendOutsideTransaction: the connection is in autocommit mode and no transaction is open.
        EventConflict: the id is stored with other content.
        EventNotRoutable: the active delivery set does not contain the event.
        NoActiveDeliverySet: no delivery set is active in this database.
        ContractError: a value breaks its rule.
    """
    prepared = prepare(event, key=key, revision=revision, **options)
    _ = append_many(connection, (prepared,))
    return prepared.event_id


async def append_async(
    connection: psycopg.AsyncConnection[Any], event: Event, *, key: str, revision: int, **options: Unpack[EventOptions]
) -> UUID:
    """The same as `append`, on an async connection."""
    prepared = prepare(event, key=key, revision=revision, **options)
    _ = await append_many_async(connection, (prepared,))
    return prepared.event_id


def append_many(connection: psycopg.Connection[Any], events: Iterable[PreparedEvent]) -> int:
    """Append many prepared events in one round trip; return how many were new. Errors as `append`.

    At most 10,000 events in one call; all of them are stored, or none.
    """
    envelopes = envelopes_of(events)
    _require_transaction(connection)
    return outbox.append(connection, envelopes) if envelopes else 0


async def append_many_async(connection: psycopg.AsyncConnection[Any], events: Iterable[PreparedEvent]) -> int:
    """The same as `append_many`, on an async connection."""
    envelopes = envelopes_of(events)
    _require_transaction(connection)
    return await outbox.append_async(connection, envelopes) if envelopes else 0


def envelopes_of(events: Iterable[PreparedEvent]) -> list[bytes]:
    """The bytes to append in one call, whatever the driver; raises LimitExceeded above 10,000."""
    envelopes = [event.envelope for event in events]
    if len(envelopes) > EVENTS_PER_CALL_MAX:
        message = f"One call appends at most {EVENTS_PER_CALL_MAX} events, not {len(envelopes)}"
        raise LimitExceeded(message, rule="events_per_call_max")
    return envelopes


def _require_transaction(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
    """In autocommit mode an event would commit alone, without the change it speaks of."""
    if not hasattr(connection, "pgconn"):
        raise InvalidSetting(
            f"seapost.append takes a psycopg connection, not {type(connection).__qualname__}; "
            "seapost.adapters has the same call for SQLAlchemy, asyncpg and Django."
        )
    if connection.autocommit and connection.info.transaction_status is TransactionStatus.IDLE:
        raise AppendOutsideTransaction(
            "Append needs an open transaction: the connection is in autocommit mode; "
            "use `with connection.transaction():` around the business change and the append"
        )
