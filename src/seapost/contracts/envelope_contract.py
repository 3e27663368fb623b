"""The canonical event envelope as a published contract, for schemas and other languages (REF-01)."""

from __future__ import annotations

from typing import Literal

from pydantic import JsonValue

from seapost.contracts.contract import Contract
from seapost.contracts.fields import (
    AggregateKind,
    EventId,
    EventType,
    Identifier,
    Name,
    Revision,
    Timestamp,
    Traceparent,
    Version,
)


class EnvelopeAggregate(Contract):
    """The thing an event is about."""

    kind: AggregateKind
    id: Identifier
    revision: Revision


class EnvelopeTenant(Contract):
    """Whose event it is (REF-12)."""

    tenant_kind: Literal["organization", "user"]
    tenant_id: Identifier
    workspace_id: Identifier
    project_id: Identifier | None = None


class EnvelopeCorrelation(Contract):
    """Which story an event belongs to, and what caused it."""

    correlation_id: Identifier
    causation_id: Identifier | None = None
    operation_id: Identifier | None = None
    traceparent: Traceparent | None = None


class CanonicalEventEnvelope(Contract):
    """What is stored, delivered and digested: `eventEnvelopeSha256` is the SHA-256 of its canonical bytes."""

    event_id: EventId
    event_type: EventType
    event_schema_version: Version
    producer: Name
    aggregate: EnvelopeAggregate
    tenant: EnvelopeTenant
    correlation: EnvelopeCorrelation
    occurred_at: Timestamp
    payload: dict[str, JsonValue]
