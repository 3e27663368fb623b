"""The operation timeline: one operation by one exact identifier, for one audience (REF-58, OPS-13, OPS-17).

There is no prefix, no pattern and no list of everything; an account is an exact identifier too, with a bounded number
of operations. Everything shown lies in this database: the projection, and what its own outbox knows of deliveries.

| Audience | Tenant and account | Amounts | Everything else |
|---|---|---|---|
| `operator` | plain | plain | plain |
| `support` | pseudonyms, stable within this database | plain | plain, without names of people |
| `auditor` | digests | digests | event ids, types, revisions, states and times plain; identifiers as digests |

A digest lets an auditor confirm a value that is known from elsewhere; a pseudonym confirms nothing without the key.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, cast
from uuid import UUID

from oceanway.contracts.errors import InvalidArgument
from oceanway.contracts.release import PROJECTION
from oceanway.operations import store_queries as store

if TYPE_CHECKING:
    from psycopg import Connection

OPERATIONS_MAX: Final = 100
VALUE_LENGTH_MAX: Final = 200


class Audience(StrEnum):
    """Who looks."""

    OPERATOR = "operator"
    SUPPORT = "support"
    AUDITOR = "auditor"


class IdentifierKind(StrEnum):
    """What an exact identifier names."""

    RUN = "run"
    RESERVATION = "reservation"
    ACCOUNT = "account"
    STEP = "step"
    ATTEMPT = "attempt"
    DIMENSION = "dimension"
    FENCE = "fence"
    CASE = "case"
    EVENT = "event"


@dataclass(frozen=True, slots=True)
class Found:
    """The operations of one exact identifier, redacted for their audience.

    Attributes:
        truncated: there are more than the `OPERATIONS_MAX` shown.
    """

    operations: tuple[dict[str, Any], ...]
    truncated: bool


_TENANT: Final = frozenset({"tenantId", "workspaceId", "projectId", "billingAccountId"})
_PEOPLE: Final = frozenset({"actorWorkforcePrincipalId"})
_OPEN_TO_AUDITORS: Final = frozenset(
    {
        "aggregateKind", "aggregateRevision", "appliedAt", "admittedAt", "attemptCount", "causationId", "deliveredAt",
        "destination", "dimensions", "effectEventId", "eventEnvelopeSha256", "eventId", "eventType",
        "exposureState", "factDigest", "finalizationFenceRevision", "fromRevision", "generation", "kind",
        "lastErrorCode", "occurredAt", "openedRevision", "producer", "reason", "requestEventId",
        "reservationStateVersion", "resolutionEventId", "resolutionFactDigest", "resolutionKind", "resolvedRevision",
        "revision", "runAdmissionManifestDigest", "sourceDelay", "state", "stateRevision", "status", "steps",
        "tenantKind", "toRevision", "action",
    }
)  # fmt: skip


def find(
    connection: Connection[Any],
    kind: IdentifierKind,
    value: str,
    audience: Audience,
    *,
    version: str = PROJECTION[1],
) -> Found:
    """The operations that one complete identifier belongs to, as this audience may see them.

    Raises:
        InvalidArgument: the value is no identifier of this kind.
    """
    if not 1 <= len(value) <= VALUE_LENGTH_MAX:
        raise InvalidArgument(f"An identifier has 1 to {VALUE_LENGTH_MAX} characters.")
    if kind is IdentifierKind.EVENT and not _is_uuid(value):
        raise InvalidArgument("An event is named by its UUID.")
    limit = OPERATIONS_MAX + 1
    found = store.find(connection, version=version, kind=kind.value, value=value, limit=limit)
    key = store.pseudonym_key(connection) if audience is Audience.SUPPORT else b""
    shown: list[dict[str, Any]] = []
    for operation_id in found[:OPERATIONS_MAX]:
        document = store.operation(connection, version=version, operation_id=operation_id)
        if document is not None:
            shown.append(redact(document, audience, key))
    return Found(tuple(shown), len(found) > OPERATIONS_MAX)


def redact(document: dict[str, Any], audience: Audience, key: bytes = b"") -> dict[str, Any]:
    """A document as this audience may see it; `key` makes the pseudonyms of support."""
    match audience:
        case Audience.OPERATOR:
            return document
        case Audience.SUPPORT:

            def hide(name: str, value: Any) -> Any:  # noqa: ANN401 - a JSON value
                return pseudonym(key, name, str(value)) if name in _TENANT | _PEOPLE else value

        case Audience.AUDITOR:

            def hide(name: str, value: Any) -> Any:  # noqa: ANN401 - as above
                return value if name in _OPEN_TO_AUDITORS else f"sha256:{sha256(str(value).encode()).hexdigest()}"

    return _walk(document, hide)


def _is_uuid(value: str) -> bool:
    try:
        return str(UUID(value)) == value.lower()
    except ValueError:
        return False


def pseudonym(key: bytes, name: str, value: str) -> str:
    """A stable name for a value that must not be seen."""
    return f"hidden:{hmac.digest(key, f'{name}:{value}'.encode(), 'sha256').hex()[:32]}"


def _walk(value: Any, hide: Callable[[str, Any], Any], name: str = "") -> Any:  # noqa: ANN401 - a JSON value
    """Every leaf of a document through `hide`, with the name of the field it stands in."""
    match value:
        case dict():
            members = cast("dict[str, Any]", value)
            return {field: _walk(below, hide, field) for field, below in members.items()}
        case list():
            return [_walk(below, hide, name) for below in cast("list[Any]", value)]
        case None:
            return None
        case _:
            return hide(name, value)
