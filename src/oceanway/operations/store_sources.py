"""What was received and kept beside the projection: accepted envelopes and owners' answers (AMB-39)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from oceanway.contracts.errors import translating
from seapost.store.arrays import ByteaArray
from seapost.store.calls import call

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psycopg import Connection

_ACCEPTED: Final = "select * from operations.query_accepted_v1(%s, %s)"
_READ_RESULTS: Final = "select * from operations.query_read_result_v1(%t, %t, %b)"


def accepted_after(connection: Connection[Any], *, after: UUID | None, limit: int) -> list[tuple[UUID, bytes]]:
    """At most `limit` accepted envelopes of other producers, in order of their event identifier."""
    with translating():
        return [(event_id, envelope) for event_id, envelope in call(connection, _ACCEPTED, (after, limit))]


def read_results(
    connection: Connection[Any], *, operation: str, purpose: str, arguments: Sequence[bytes]
) -> list[bytes | None]:
    """The stored answers to these questions, in order; None where there is none."""
    with translating():
        return [answer for (answer,) in call(connection, _READ_RESULTS, (operation, purpose, ByteaArray(arguments)))]
