"""The canonical event envelope on its two hot paths: written once by the producer, read by each consumer.

The envelope covers the payload, and its digest is the SHA-256 of its canonical bytes (REF-01). Both
directions work on plain dicts: identifiers are checked once where they enter, and no model is built.
`envelope_contract.CanonicalEventEnvelope` is the same structure as a published contract; a test holds
the two to one verdict.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Final
from uuid import UUID

import uuid_utils.compat

from seapost.contracts.canonical import check_canonical, encode
from seapost.contracts.envelope_text import EnvelopeText, around, scan_envelope
from seapost.contracts.examination import INTEGER_MAX, JSONValue, escape
from seapost.contracts.identifiers import (
    AGGREGATE_KIND_LENGTH_MAX,
    UUID_VERSION,
    check_event_id,
    check_event_type,
    check_identifier,
    check_name,
    check_traceparent,
    check_version,
    read_timestamp,
    write_timestamp,
)
from seapost.model.errors import ContractError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seapost.contracts.events import Event

TENANT_KINDS: Final = frozenset({"organization", "user"})

_ENVELOPE_FIELDS: Final = frozenset(
    {
        "eventId",
        "eventType",
        "eventSchemaVersion",
        "producer",
        "aggregate",
        "tenant",
        "correlation",
        "occurredAt",
        "payload",
    }
)
_AGGREGATE_FIELDS: Final = frozenset({"kind", "id", "revision"})
_TENANT_FIELDS: Final = frozenset({"tenantKind", "tenantId", "workspaceId"})
_TENANT_OPTIONAL: Final = frozenset({"projectId"})
_CORRELATION_FIELDS: Final = frozenset({"correlationId"})
_CORRELATION_OPTIONAL: Final = frozenset({"causationId", "operationId", "traceparent"})


@dataclass(frozen=True, slots=True)
class Aggregate:
    """The thing an event is about: its kind, its identifier, and its revision, counted from 1."""

    kind: str
    id: str
    revision: int

    def __post_init__(self) -> None:
        """Refuse a kind, identifier or revision that breaks its rule."""
        _ = check_name(self.kind, "/aggregate/kind", AGGREGATE_KIND_LENGTH_MAX)
        _ = check_identifier(self.id, "/aggregate/id")
        if type(self.revision) is not int or not 1 <= self.revision <= INTEGER_MAX:
            message = "A revision is an integer from 1 to 2^53-1"
            raise ContractError(message, pointer="/aggregate/revision", rule="revision")


@dataclass(frozen=True, slots=True)
class Tenant:
    """Whose event it is (REF-12). Checked when it is made, so one object can serve many events.

    `kind` is `organization` or `user`; the identifiers are exact, in case as in spelling.
    """

    kind: str
    id: str
    workspace_id: str
    project_id: str | None = None
    document: Mapping[str, JSONValue] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse a kind or identifier that breaks its rule."""
        if self.kind not in TENANT_KINDS:
            message = "A tenant kind is 'organization' or 'user'"
            raise ContractError(message, pointer="/tenant/tenantKind", rule="not_in_enumeration")
        document: dict[str, JSONValue] = {
            "tenantKind": self.kind,
            "tenantId": check_identifier(self.id, "/tenant/tenantId"),
            "workspaceId": check_identifier(self.workspace_id, "/tenant/workspaceId"),
        }
        if self.project_id is not None:
            document["projectId"] = check_identifier(self.project_id, "/tenant/projectId")
        object.__setattr__(self, "document", document)


SINGLE_TENANT: Final = Tenant("organization", "default", "default")
"""For an application that serves one organization and has no word for tenants."""


@dataclass(frozen=True, slots=True)
class Correlation:
    """Which story an event belongs to, and what caused it. Checked when it is made.

    `traceparent` carries W3C Trace Context from the producer's transaction to the consumer's handler.
    """

    correlation_id: str
    causation_id: str | None = None
    operation_id: str | None = None
    traceparent: str | None = None
    document: Mapping[str, JSONValue] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse an identifier or trace context that breaks its rule."""
        document: dict[str, JSONValue] = {
            "correlationId": check_identifier(self.correlation_id, "/correlation/correlationId")
        }
        if self.causation_id is not None:
            document["causationId"] = check_identifier(self.causation_id, "/correlation/causationId")
        if self.operation_id is not None:
            document["operationId"] = check_identifier(self.operation_id, "/correlation/operationId")
        if self.traceparent is not None:
            document["traceparent"] = check_traceparent(self.traceparent)
        object.__setattr__(self, "document", document)


@dataclass(frozen=True, slots=True)
class PreparedEvent:
    """An event ready to be appended: its exact canonical bytes, and what append's caller wants to know."""

    event_id: UUID
    event_type: str
    schema_version: str
    envelope: bytes


@dataclass(frozen=True, slots=True)
class Envelope:
    """An envelope as a consumer reads it.

    Attributes:
        payload: the sender's payload, to be decoded by the exact pair of type and schema version.
        canonical: the exact bytes received; the digest is computed from them.
    """

    event_id: UUID
    event_type: str
    event_schema_version: str
    producer: str
    aggregate: Aggregate
    tenant: Tenant
    correlation: Correlation
    occurred_at: datetime
    payload: dict[str, JSONValue]
    canonical: bytes = field(repr=False)

    @property
    def digest(self) -> bytes:
        """SHA-256 of the canonical bytes, 32 bytes (`eventEnvelopeSha256`)."""
        return sha256(self.canonical).digest()


def new_event_id() -> UUID:
    """A fresh UUIDv7: events made later sort later, which keeps the database's indexes compact."""
    return uuid_utils.compat.uuid7()


def build_envelope(
    event: Event,
    *,
    key: str,
    revision: int,
    tenant: Tenant,
    producer: str | None = None,
    correlation: Correlation | None = None,
    occurred_at: datetime | None = None,
    event_id: UUID | None = None,
) -> PreparedEvent:
    """Write the envelope of one event.

    Args:
        event: the payload; its class names the event type, schema version and aggregate kind.
        key: identifier of the aggregate.
        revision: revision of the aggregate that this event made, from 1.
        tenant: whose event it is; may be shared by many events.
        producer: used when the event's class names none; `app` when neither does.
        correlation: absent, the event starts a story under its own id.
        occurred_at: an aware moment; absent, now.
        event_id: a UUIDv7; absent, a fresh one. Give one to make a repeated append harmless.

    Raises:
        ContractError: an identifier breaks its rule, with the pointer inside the envelope.
        CanonicalError, LimitExceeded: the payload has no canonical form.
    """
    kind = type(event)
    return build_envelope_of(
        event.to_json(),
        event_type=kind.event_type,
        event_schema_version=kind.event_schema_version,
        producer=kind.event_producer or producer or "app",
        aggregate=Aggregate(kind.aggregate_kind, key, revision),
        tenant=tenant,
        correlation=correlation,
        occurred_at=occurred_at,
        event_id=event_id,
    )


def build_envelope_of(
    payload: dict[str, JSONValue],
    *,
    event_type: str,
    event_schema_version: str,
    producer: str,
    aggregate: Aggregate,
    tenant: Tenant,
    correlation: Correlation | None = None,
    occurred_at: datetime | None = None,
    event_id: UUID | None = None,
) -> PreparedEvent:
    """Write the envelope of a payload that is already a JSON object; see `build_envelope`."""
    identity = new_event_id() if event_id is None else event_id
    if identity.version != UUID_VERSION:
        message = "An event id is a UUID of version 7; use seapost.new_event_id()"
        raise ContractError(message, pointer="/eventId", rule="event_id")
    id_text = str(identity)
    envelope = encode(
        {
            "eventId": id_text,
            "eventType": check_event_type(event_type),
            "eventSchemaVersion": check_version(event_schema_version),
            "producer": check_name(producer, "/producer"),
            "aggregate": {"kind": aggregate.kind, "id": aggregate.id, "revision": aggregate.revision},
            "tenant": tenant.document,
            "correlation": {"correlationId": id_text} if correlation is None else correlation.document,
            "occurredAt": write_timestamp(datetime.now(UTC) if occurred_at is None else occurred_at),
            "payload": payload,
        }
    )
    return PreparedEvent(identity, event_type, event_schema_version, envelope)


def read_envelope(text: bytes) -> Envelope:
    """Read the canonical bytes of an envelope; the structure is closed, and nothing is repaired.

    Raises:
        CanonicalError: the bytes are not canonical JSON.
        ContractError: a field is missing, unknown or breaks its rule, with its pointer.
    """
    scanned = scan_envelope(text)
    return read_exactly(text) if scanned is None else whole(scanned)


def open_envelope(text: bytes) -> EnvelopeText:
    """Read the canonical bytes of an envelope as far as every consumer needs them; `whole` gives the rest.

    Raises what `read_envelope` raises.
    """
    scanned = scan_envelope(text)
    if scanned is not None:
        return scanned
    envelope = read_exactly(text)
    return EnvelopeText(
        text,
        str(envelope.event_id),
        envelope.event_type,
        envelope.event_schema_version,
        envelope.correlation.traceparent,
        envelope.payload,
        encode(envelope.payload),
        None,
        None,
    )


def whole(opened: EnvelopeText) -> Envelope:
    """Every field of an envelope that was opened."""
    if opened.head is None or opened.tail is None:
        return read_exactly(opened.text)
    fields = around(opened.head, opened.tail)
    return Envelope(
        event_id=UUID(opened.event_id),
        event_type=opened.event_type,
        event_schema_version=opened.event_schema_version,
        producer=fields.producer,
        aggregate=Aggregate(fields.aggregate_kind, fields.aggregate_id, fields.aggregate_revision),
        tenant=Tenant(fields.tenant_kind, fields.tenant_id, fields.workspace_id, fields.project_id),
        correlation=Correlation(fields.correlation_id, fields.causation_id, fields.operation_id, opened.traceparent),
        occurred_at=fields.occurred_at,
        payload=opened.payload,
        canonical=opened.text,
    )


def read_exactly(text: bytes) -> Envelope:
    """Read an envelope field by field, whatever legal form it has, and name the place of a defect."""
    document = _closed(check_canonical(text), "", _ENVELOPE_FIELDS)
    aggregate = _closed(document["aggregate"], "/aggregate", _AGGREGATE_FIELDS)
    tenant = _closed(document["tenant"], "/tenant", _TENANT_FIELDS, _TENANT_OPTIONAL)
    correlation = _closed(document["correlation"], "/correlation", _CORRELATION_FIELDS, _CORRELATION_OPTIONAL)
    payload = document["payload"]
    if not isinstance(payload, dict):
        raise _wrong_type("/payload", "an object")
    # The checks below accept any value and refuse what is not a string, so the casts cannot lie.
    return Envelope(
        event_id=check_event_id(document["eventId"]),  # pyright: ignore[reportArgumentType]
        event_type=check_event_type(document["eventType"]),  # pyright: ignore[reportArgumentType]
        event_schema_version=check_version(document["eventSchemaVersion"]),  # pyright: ignore[reportArgumentType]
        producer=check_name(document["producer"], "/producer"),  # pyright: ignore[reportArgumentType]
        aggregate=Aggregate(**aggregate),  # pyright: ignore[reportArgumentType]
        tenant=Tenant(
            _text(tenant["tenantKind"], "/tenant/tenantKind"),
            _text(tenant["tenantId"], "/tenant/tenantId"),
            _text(tenant["workspaceId"], "/tenant/workspaceId"),
            _optional(tenant, "projectId", "/tenant"),
        ),
        correlation=Correlation(
            _text(correlation["correlationId"], "/correlation/correlationId"),
            _optional(correlation, "causationId", "/correlation"),
            _optional(correlation, "operationId", "/correlation"),
            _optional(correlation, "traceparent", "/correlation"),
        ),
        occurred_at=read_timestamp(document["occurredAt"]),  # pyright: ignore[reportArgumentType]
        payload=payload,
        canonical=text,
    )


def _closed(
    value: JSONValue, pointer: str, required: frozenset[str], optional: frozenset[str] = frozenset()
) -> dict[str, JSONValue]:
    """The value as an object with exactly these fields."""
    if not isinstance(value, dict):
        raise _wrong_type(pointer, "an object")
    names = value.keys()
    if names == required:
        return value
    if missing := required - names:
        place = f"{pointer}/{min(missing)}"
        raise ContractError("The envelope lacks a field", pointer=place, rule="missing_field")
    if unknown := names - required - optional:
        place = f"{pointer}/{escape(min(unknown))}"
        raise ContractError("The envelope has an unknown field", pointer=place, rule="unknown_field")
    return value


def _text(value: JSONValue, pointer: str) -> str:
    if not isinstance(value, str):
        raise _wrong_type(pointer, "a string")
    return value


def _optional(document: Mapping[str, JSONValue], name: str, pointer: str) -> str | None:
    """An optional field: left out, or a string; null is neither."""
    return _text(document[name], f"{pointer}/{name}") if name in document else None


def _wrong_type(pointer: str, expected: str) -> ContractError:
    return ContractError(f"This must be {expected}", pointer=pointer, rule="wrong_type")
