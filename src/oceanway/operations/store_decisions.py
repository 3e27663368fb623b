"""The chain of decisions (`functions/decision/`)."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from oceanway.contracts.errors import translating
from seapost.store.calls import call

if TYPE_CHECKING:
    from psycopg import Connection

_RECORD: Final = "select operations.decision_record_v1(%t, %s::smallint, %t, %t, %t, %t, %t, %b)"
_READ: Final = "select * from operations.decision_read_v1(%t)"
_ISSUE: Final = "select operations.decision_issue_grant_v1(%t, %t, %t, %s)"


class Step(NamedTuple):
    """One step of a chain; `document` is the canonical text of its object."""

    number: int
    name: str
    document: bytes


def record(
    connection: Connection[Any],
    *,
    chain_id: str,
    step: Step,
    object_ref: str,
    object_digest: str,
    predecessor_digest: str | None,
    actor: str,
) -> bytes:
    """Store a step, or return the first one.

    Raises:
        OwnerConflict: the step exists with other content.
        Stale: what it builds on is missing or another.
    """
    arguments = (chain_id, step.number, step.name, object_ref, object_digest, predecessor_digest, actor, step.document)
    with translating():
        [(stored,)] = call(connection, _RECORD, arguments)
    return stored


def read(connection: Connection[Any], *, chain_id: str) -> dict[str, bytes]:
    """The documents of a chain by the name of their step."""
    with translating():
        return {name: document for _, name, document in call(connection, _READ, (chain_id,))}


def issue_grant(
    connection: Connection[Any], *, chain_id: str, grant_jti: str, grant_digest: str, expires_at: datetime
) -> None:
    """Register the one grant of a chain.

    Raises:
        OwnerConflict: it has another one.
    """
    with translating():
        _ = call(connection, _ISSUE, (chain_id, grant_jti, grant_digest, expires_at))
