"""Documents for tests: definitions, envelopes and receipts, each a valid one with the named parts changed.

The bytes come from `rfc8785` itself and not from the contracts of Seapost, so that a test of the database never
agrees with a mistake of the library beside it. `tests/contract/test_builders.py` holds the two to one verdict.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any
from uuid import UUID

import rfc8785
import uuid_utils.compat

from seapost.model.delivery import Claim

PLACED = "order.placed@1"
SHIPPED = "order.shipped@1"
BILLING = "billing"
SEARCH = "search"

ROUTES: Mapping[str, Sequence[str]] = {PLACED: (BILLING,), SHIPPED: (BILLING, SEARCH)}
"""The usual definition: one event that goes to one destination, one that goes to two."""

Document = dict[str, Any]


def canonical(document: object) -> bytes:
    """The RFC 8785 bytes of a value."""
    return rfc8785.dumps(document)  # pyright: ignore[reportArgumentType]


def digest(text: bytes) -> bytes:
    """The SHA-256 of exact bytes."""
    return sha256(text).digest()


def consumer_of(destination: str) -> str:
    """The consumer that the usual members bind to a destination."""
    return f"{destination}_consumer"


def member(event_type: str, destination: str, **changes: object) -> Document:
    """One line of a definition, expecting the generic receipt; `changes` replaces wire fields."""
    return {
        "eventType": event_type,
        "eventSchemaVersion": "1",
        "destination": destination,
        "consumerName": consumer_of(destination),
        "expectedReceiptType": "ConsumerReceipt",
        "expectedReceiptSchemaVersion": "1",
        "projectionTarget": {"state": "not_applicable"},
        "mandatory": True,
        **changes,
    }


def definition_document(version: str, members: Sequence[Document], *, events: Sequence[str] = ()) -> Document:
    """A definition of these members, sorted and counted; `events` are further pairs of schema version 1."""
    pairs = {(line["eventType"], line["eventSchemaVersion"]) for line in members} | {(name, "1") for name in events}
    lines = sorted(
        members, key=lambda m: (m["eventType"], m["eventSchemaVersion"], m["destination"], m["consumerName"])
    )
    return {
        "deliverySetVersion": version,
        "deliverySetDefinitionSchemaVersion": "1",
        "deliverySetDefinitionDigestAlgorithmVersion": "jcs-sha256-v1",
        "applicableEventCount": len(pairs),
        "applicableEvents": [{"eventType": name, "eventSchemaVersion": schema} for name, schema in sorted(pairs)],
        "memberCount": len(lines),
        "members": lines,
    }


def definition(version: str = "1", routes: Mapping[str, Sequence[str]] = ROUTES) -> bytes:
    """The candidate bytes of a definition that sends each event type to its destinations."""
    members = [member(event_type, destination) for event_type, names in routes.items() for destination in names]
    return canonical(definition_document(version, members, events=list(routes)))


def new_event_id() -> UUID:
    """A fresh UUIDv7."""
    return uuid_utils.compat.uuid7()


def envelope_document(event_type: str = PLACED, **changes: object) -> Document:
    """A valid event envelope of an aggregate of its own; `changes` replaces wire fields."""
    identity = str(changes.get("eventId") or new_event_id())
    return {
        "eventId": identity,
        "eventType": event_type,
        "eventSchemaVersion": "1",
        "producer": "shop",
        "aggregate": {"kind": "order", "id": f"order-{identity}", "revision": 1},
        "tenant": {"tenantKind": "organization", "tenantId": "acme", "workspaceId": "main"},
        "correlation": {"correlationId": identity},
        "occurredAt": "2026-01-31T23:59:59.000000Z",
        "payload": {"total": "19.90"},
        **changes,
    }


def envelope(event_type: str = PLACED, **changes: object) -> bytes:
    """The canonical bytes of `envelope_document`."""
    return canonical(envelope_document(event_type, **changes))


def event_id_of(text: bytes) -> UUID:
    """The event id inside an envelope."""
    return UUID(json.loads(text)["eventId"])


def receipt_document(claim: Claim, **changes: object) -> Document:
    """The candidate of the generic receipt that satisfies a claim; `changes` replaces wire fields."""
    projection = claim.member.projection
    target = {} if projection is None else {"projectionName": projection.name, "projectionVersion": projection.version}
    return {
        "consumerReceiptSchemaVersion": "1",
        "consumerReceiptDigestAlgorithmVersion": "jcs-sha256-v1",
        "destination": claim.destination,
        "consumerName": claim.member.consumer_name,
        "eventId": str(claim.fence.event_id),
        "eventType": claim.member.event_type,
        "eventSchemaVersion": claim.member.schema_version,
        "eventEnvelopeDigestAlgorithmVersion": "jcs-sha256-v1",
        "eventEnvelopeSha256": claim.event_digest.hex(),
        "outcome": "applied",
        **target,
        **changes,
    }


def receipt_for(claim: Claim, **changes: object) -> bytes:
    """The canonical bytes of `receipt_document`."""
    return canonical(receipt_document(claim, **changes))
