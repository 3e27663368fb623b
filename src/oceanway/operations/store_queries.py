"""What queries read (`functions/query/`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from oceanway.contracts.errors import translating
from seapost.store.calls import call

if TYPE_CHECKING:
    from psycopg import Connection

_FIND: Final = "select * from operations.query_find_v1(%t, %t, %t, %s)"
_OPERATION: Final = "select operations.query_operation_v1(%t, %t)"
_CASE: Final = "select * from operations.query_case_v1(%t, %t)"
_LATE_CASE: Final = "select * from operations.query_late_case_v1(%t, %t)"
_PSEUDONYM_KEY: Final = "select operations.query_pseudonym_key_v1()"


class StoredCase(NamedTuple):
    """A finalization case with the identity and the request behind it."""

    state: str
    identity_document: bytes
    request_envelope: bytes
    resolution_event_id: UUID | None


class StoredLateCase(NamedTuple):
    """A late case; its request is None while only its resolution is known."""

    state: str
    request_envelope: bytes | None
    state_revision: int | None
    exposure_amount: str | None
    last_event_id: UUID | None


def find(connection: Connection[Any], *, version: str, kind: str, value: str, limit: int) -> list[str]:
    """The operations that an exact identifier belongs to."""
    with translating():
        return [operation_id for (operation_id,) in call(connection, _FIND, (version, kind, value, limit))]


def operation(connection: Connection[Any], *, version: str, operation_id: str) -> dict[str, Any] | None:
    """Everything the projection shows of one operation."""
    with translating():
        [(document,)] = call(connection, _OPERATION, (version, operation_id))
    return document


def case(connection: Connection[Any], *, version: str, case_ref: str) -> StoredCase | None:
    """A finalization case by its exact reference."""
    with translating():
        rows = call(connection, _CASE, (version, case_ref))
    return StoredCase(*rows[0]) if rows else None


def late_case(connection: Connection[Any], *, version: str, case_ref: str) -> StoredLateCase | None:
    """A late case by its exact reference."""
    with translating():
        rows = call(connection, _LATE_CASE, (version, case_ref))
    return StoredLateCase(*rows[0]) if rows else None


def pseudonym_key(connection: Connection[Any]) -> bytes:
    """The key of this database's pseudonyms."""
    with translating():
        [(key,)] = call(connection, _PSEUDONYM_KEY)
    return key
