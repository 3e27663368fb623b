"""An operator's word about a quarantined delivery (`functions/quarantine/`); the delivery stays where it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seapost.store.calls import call_async

if TYPE_CHECKING:
    from uuid import UUID

    import psycopg


async def acknowledge(
    connection: psycopg.AsyncConnection[Any], *, event_id: UUID, destination: str, case_id: str | None, actor: str
) -> None:
    """Record that `actor` has seen a quarantined delivery and, perhaps, which case deals with it (REF-08).

    Raises:
        UnknownDelivery: it is not in quarantine.
        ImmutableFact: it is acknowledged already.
        InvalidArgument: actor or case are empty or longer than 200 characters.
    """
    _ = await call_async(
        connection,
        "select seapost.quarantine_acknowledge_v1(%s, %s, %s, %s)",
        (event_id, destination, case_id, actor),
    )
