"""What was appended: seen from inside the transaction that appended it, or after its commit."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import psycopg

from seapost.contracts.envelope import Envelope, read_envelope
from seapost.contracts.events import Event
from seapost.store import appended as store
from seapost.testing.databases import TestDatabase

SHOWN: Final = 10
NESTING_MAX: Final = 4

EventT = TypeVar("EventT", bound=Event)


@dataclass(frozen=True, slots=True)
class AppendedEvent(Generic[EventT]):
    """One stored event.

    Attributes:
        event: its payload, read by its class.
        envelope: everything else that it says: id, aggregate, tenant, correlation, time.
        deliveries: status by destination, such as `{"billing": "pending"}`.
    """

    event: EventT
    envelope: Envelope
    deliveries: dict[str, str]

    @property
    def key(self) -> str:
        """Identifier of the aggregate."""
        return self.envelope.aggregate.id

    @property
    def revision(self) -> int:
        """Revision of the aggregate that this event made."""
        return self.envelope.aggregate.revision


def appended(target: object, event: type[EventT]) -> list[AppendedEvent[EventT]]:
    """Every stored event of one class, oldest first.

    Args:
        target: a `TestDatabase`, which shows what is committed; or the session that appended, which shows its own
            open transaction: a psycopg connection, a SQLAlchemy Session or Connection over psycopg, or Django's
            connection.
        event: the class; its exact pair of type and schema version is looked for.

    Raises:
        TypeError: `target` leads to no psycopg connection.
    """
    with _connection(target) as connection:
        rows = store.events(connection, event_type=event.event_type, schema_version=event.event_schema_version)
    envelopes = [(read_envelope(row.envelope), row.deliveries) for row in rows]
    return [AppendedEvent(event.decode(envelope.payload), envelope, found) for envelope, found in envelopes]


def assert_appended(
    target: object,
    event: type[EventT],
    *,
    key: str | None = None,
    revision: int | None = None,
    to: set[str] | None = None,
    **fields: object,
) -> AppendedEvent[EventT]:
    """Fail unless exactly one stored event matches; return it.

    Args:
        target, event: see `appended`.
        key, revision: of its aggregate, when given.
        to: the destinations it owes a delivery, when given.
        fields: values of its payload.
    """
    found = appended(target, event)
    matches = [one for one in found if _matches(one, key, revision, to, fields)]
    if len(matches) != 1:
        raise AssertionError(_explain(event, found, len(matches), _wanted(key, revision, to, fields)))
    return matches[0]


def refute_appended(target: object, event: type[EventT], *, key: str | None = None, **fields: object) -> None:
    """Fail when a stored event matches; the arguments are those of `assert_appended`."""
    found = appended(target, event)
    matches = [one for one in found if _matches(one, key, None, None, fields)]
    if matches:
        raise AssertionError(_explain(event, found, len(matches), _wanted(key, None, None, fields)))


def _matches(
    one: AppendedEvent[EventT],
    key: str | None,
    revision: int | None,
    to: set[str] | None,
    fields: dict[str, object],
) -> bool:
    return (
        (key is None or one.key == key)
        and (revision is None or one.revision == revision)
        and (to is None or set(one.deliveries) == to)
        and all(getattr(one.event, name) == value for name, value in fields.items())
    )


def _wanted(key: str | None, revision: int | None, to: set[str] | None, fields: dict[str, object]) -> str:
    given = {"key": key, "revision": revision, "to": to, **fields}
    return ", ".join(f"{name}={value!r}" for name, value in given.items() if value is not None) or "anything"


def _explain(event: type[Event], found: list[AppendedEvent[EventT]], number: int, wanted: str) -> str:
    lines = [f"{number} events {event.event_type} match {wanted}; appended of this type: {len(found)}"]
    lines += [f"  key={one.key!r} revision={one.revision} {one.event!r} {one.deliveries}" for one in found[:SHOWN]]
    if len(found) > SHOWN:
        lines.append(f"  and {len(found) - SHOWN} more")
    return "\n".join(lines)


@contextmanager
def _connection(target: object) -> Generator[psycopg.Connection[Any]]:
    if isinstance(target, TestDatabase):
        with psycopg.connect(target.dsn) as connection:
            yield connection
        return
    inner = target
    for _ in range(NESTING_MAX):  # Session → Connection → pooled connection → psycopg's, whatever there is of it
        if isinstance(inner, psycopg.Connection):
            yield inner
            return
        inner = getattr(inner, "driver_connection", None) or getattr(inner, "connection", None)
        if callable(inner) and not isinstance(inner, psycopg.Connection):
            inner = inner()
    message = f"{type(target).__name__} leads to no psycopg connection; give the TestDatabase, after the commit"
    raise TypeError(message)
