"""`outbox_append_v1`, in both colours, because it runs inside the caller's own transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from seapost.store.arrays import ByteaArray
from seapost.store.calls import call, call_async

if TYPE_CHECKING:
    from collections.abc import Iterable

    import psycopg

_APPEND: Final = "select seapost.outbox_append_v1(%b)"


def append(connection: psycopg.Connection[Any], envelopes: Iterable[bytes]) -> int:
    """Store events with their deliveries in the connection's transaction; return how many were new (APP-01..05).

    Raises `NoActiveDeliverySet`, `EventConflict`, `EventNotRoutable`, `InvalidEnvelope`.
    """
    [(stored,)] = call(connection, _APPEND, (ByteaArray(envelopes),))
    return stored


async def append_async(connection: psycopg.AsyncConnection[Any], envelopes: Iterable[bytes]) -> int:
    """The same as `append`, on an async connection."""
    [(stored,)] = await call_async(connection, _APPEND, (ByteaArray(envelopes),))
    return stored
