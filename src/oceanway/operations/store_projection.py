"""The projector's calls (`functions/{run,finalization,settlement,late,case}/`), in its transaction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, LiteralString
from uuid import UUID

from psycopg.types.json import Jsonb

from oceanway.contracts.errors import translating
from seapost.store.calls import Row, call

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from psycopg import Connection

    from oceanway.operations.answers import Answered

_RUN_CREATED: Final = "select operations.run_created_v1(%t, %b)"
_WALLET_RESERVED: Final = "select operations.run_wallet_reserved_v1(%t, %b)"
_FINALIZATION_COMMITTED: Final = "select operations.finalization_committed_v1(%t, %b)"
_SETTLEMENT_ADVANCE: Final = "select operations.settlement_advance_v1(%t, %b, %s)"
_LATE_REQUESTED: Final = "select operations.late_requested_v1(%t, %b, %s)"
_LATE_RESOLVED: Final = "select operations.late_resolved_v1(%t, %b, %s, %s, %b, %b)"
_CASE_KNOWN: Final = "select * from operations.case_known_v1(%t, %b)"
_CASE_REQUEST: Final = "select operations.case_request_v1(%t, %b, %b, %t, %s, %s, %b, %b)"
_CASE_RESOLUTION: Final = "select operations.case_resolution_v1(%t, %b, %s, %s, %b, %b)"


@dataclass(frozen=True, slots=True)
class KnownGeneration:
    """What is known of one reserved generation of a fence; the event identifiers are None for what is not known."""

    generation: int
    identity_document: bytes
    case_ref: str | None
    request_event_id: UUID | None
    resolution_event_id: UUID | None
    fact_ref: str | None
    fact_digest: str | None


def _call(connection: Connection[Any], query: LiteralString, arguments: Sequence[object]) -> list[Row]:
    with translating():
        return call(connection, query, arguments)


def run_created(connection: Connection[Any], *, version: str, envelope: bytes) -> None:
    """Apply a run event (OPS-13)."""
    _ = _call(connection, _RUN_CREATED, (version, envelope))


def wallet_reserved(connection: Connection[Any], *, version: str, envelope: bytes) -> None:
    """Apply a wallet event (OPS-14)."""
    _ = _call(connection, _WALLET_RESERVED, (version, envelope))


def finalization_committed(connection: Connection[Any], *, version: str, envelope: bytes) -> None:
    """Apply a finalization (AMB-50)."""
    _ = _call(connection, _FINALIZATION_COMMITTED, (version, envelope))


def settlement_advance(
    connection: Connection[Any], *, version: str, envelope: bytes, change: Mapping[str, Any]
) -> None:
    """Apply a transition or a late result (CASE-31)."""
    _ = _call(connection, _SETTLEMENT_ADVANCE, (version, envelope, Jsonb(change)))


def late_requested(connection: Connection[Any], *, version: str, envelope: bytes, case: Mapping[str, Any]) -> None:
    """Apply the request of a late case (CASE-26)."""
    _ = _call(connection, _LATE_REQUESTED, (version, envelope, Jsonb(case)))


def late_resolved(
    connection: Connection[Any], *, version: str, envelope: bytes, case: Mapping[str, Any], answered: Answered
) -> None:
    """Apply the resolution of a late case whose chain was verified (CASE-29)."""
    arguments = (version, envelope, Jsonb(case), Jsonb(answered.identity()), answered.arguments, answered.answer)
    _ = _call(connection, _LATE_RESOLVED, arguments)


def case_known(connection: Connection[Any], *, version: str, envelope: bytes) -> list[KnownGeneration]:
    """Lock the run of a finalization case event, and return what is known of its fence."""
    return [KnownGeneration(*row) for row in _call(connection, _CASE_KNOWN, (version, envelope))]


def case_request(
    connection: Connection[Any],
    *,
    version: str,
    envelope: bytes,
    successor: bytes | None,
    receipt_ref: str,
    cases: Sequence[Mapping[str, Any]],
    answered: Answered,
) -> None:
    """Write a case request and the cases that follow (TX-33, TX-34)."""
    identity = Jsonb(answered.identity())
    arguments = (version, envelope, successor, receipt_ref, Jsonb(cases), identity, answered.arguments, answered.answer)
    _ = _call(connection, _CASE_REQUEST, arguments)


def case_resolution(
    connection: Connection[Any],
    *,
    version: str,
    envelope: bytes,
    cases: Sequence[Mapping[str, Any]],
    answered: Answered,
) -> None:
    """Write a resolution and the cases that follow (TX-34)."""
    identity = Jsonb(answered.identity())
    arguments = (version, envelope, Jsonb(cases), identity, answered.arguments, answered.answer)
    _ = _call(connection, _CASE_RESOLUTION, arguments)
