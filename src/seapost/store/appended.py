"""Stored events of one pair, with the status of their deliveries; for tests of an application."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from seapost.store.calls import call

if TYPE_CHECKING:
    import psycopg

EVENTS_MAX: Final = 10_000

_EVENTS: Final = """
    select e.event_envelope,
           coalesce((select jsonb_object_agg(d.destination, d.status)
                     from seapost.outbox_deliveries as d where d.event_id = e.event_id), '{}')
    from seapost.outbox_events as e
    where e.event_type = %s and e.schema_version = %s
    order by e.created_at, e.event_id
    limit %s"""


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """The canonical bytes of an event, and the status of each delivery by destination."""

    envelope: bytes
    deliveries: dict[str, str]


def events(connection: psycopg.Connection[Any], *, event_type: str, schema_version: str) -> list[StoredEvent]:
    """The events of an exact pair as the connection's transaction sees them, oldest first, at most 10,000."""
    rows = call(connection, _EVENTS, (event_type, schema_version, EVENTS_MAX))
    return [StoredEvent(envelope, deliveries) for envelope, deliveries in rows]
