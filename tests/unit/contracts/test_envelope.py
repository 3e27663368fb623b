"""The envelope: written once, read strictly, and the same bytes for the same facts."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import Any
from uuid import UUID, uuid4

import pytest

from seapost.contracts.canonical import encode, parse
from seapost.contracts.digest import sha256_hex
from seapost.contracts.envelope import (
    SINGLE_TENANT,
    Aggregate,
    Correlation,
    Tenant,
    build_envelope,
    build_envelope_of,
    read_envelope,
)
from seapost.contracts.envelope_contract import CanonicalEventEnvelope
from seapost.model.errors import CanonicalError, ContractError
from tests.kit.contracts import EVENT_ID, MOMENT, TENANT, OrderPlaced, prepared

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def _document() -> dict[str, Any]:
    return json.loads(prepared().envelope)


@pytest.mark.req("REF-01", "REF-12")
def test_an_envelope_holds_every_known_fact_and_nothing_else() -> None:
    """The canonical bytes are exactly these fields, sorted; the digest is the SHA-256 of the bytes."""
    event = build_envelope(
        OrderPlaced(order_id="17", count=1),
        key="order-17",
        revision=3,
        tenant=Tenant("user", "u", "w", "p"),
        correlation=Correlation("c", "b", "o", TRACE),
        occurred_at=datetime(2026, 3, 29, 3, 30, tzinfo=timezone(timedelta(hours=2))),
        event_id=EVENT_ID,
    )
    assert json.loads(event.envelope) == {
        "eventId": str(EVENT_ID),
        "eventType": "order.placed@1",
        "eventSchemaVersion": "1",
        "producer": "shop",
        "aggregate": {"kind": "order", "id": "order-17", "revision": 3},
        "tenant": {"tenantKind": "user", "tenantId": "u", "workspaceId": "w", "projectId": "p"},
        "correlation": {"correlationId": "c", "causationId": "b", "operationId": "o", "traceparent": TRACE},
        "occurredAt": "2026-03-29T01:30:00.000000Z",
        "payload": {"order_id": "17", "count": 1},
    }
    assert event.envelope == encode(parse(event.envelope))
    assert (event.event_id, event.event_type, event.schema_version) == (EVENT_ID, "order.placed@1", "1")
    assert read_envelope(event.envelope).digest.hex() == sha256_hex(event.envelope)


@pytest.mark.req("REF-01")
def test_what_was_written_is_read_back() -> None:
    """Every part comes back equal, and the payload unchanged."""
    correlation = Correlation("c", traceparent=TRACE)
    event = build_envelope_of(
        {"a": [1, {"b": None}]},
        event_type="x.y",
        event_schema_version="2.0",
        producer="core",
        aggregate=Aggregate("run", "R\u00f6", 2),
        tenant=TENANT,
        correlation=correlation,
        occurred_at=MOMENT,
    )
    envelope = read_envelope(event.envelope)
    assert envelope.event_id == event.event_id
    assert (envelope.event_type, envelope.event_schema_version, envelope.producer) == ("x.y", "2.0", "core")
    assert (envelope.aggregate, envelope.tenant, envelope.correlation) == (
        Aggregate("run", "R\u00f6", 2),
        TENANT,
        correlation,
    )
    assert envelope.occurred_at == MOMENT
    assert envelope.payload == {"a": [1, {"b": None}]}
    assert envelope.canonical == event.envelope


def test_what_is_not_said_has_a_written_default() -> None:
    """Without more the id is fresh, the story starts with the event, and the producer is the application's."""

    class Noted(OrderPlaced, type="note.taken@1"):
        """An event whose class names no producer."""

    event = build_envelope(Noted(order_id="1", count=1), key="1", revision=1, tenant=SINGLE_TENANT)
    envelope = read_envelope(event.envelope)
    assert envelope.event_id.version == 7
    assert envelope.correlation == Correlation(str(event.event_id))
    assert envelope.producer == "app"
    named = build_envelope(Noted(order_id="1", count=1), key="1", revision=1, tenant=SINGLE_TENANT, producer="desk")
    assert read_envelope(named.envelope).producer == "desk"


@pytest.mark.req("REF-01")
def test_an_event_id_of_another_version_is_refused() -> None:
    """A random UUID would scatter the index of every table keyed by event id."""
    with pytest.raises(ContractError) as caught:
        _ = prepared(event_id=uuid4())
    assert caught.value.pointer == "/eventId"
    with pytest.raises(ContractError):
        _ = prepared(event_id=UUID(int=0))


@pytest.mark.req("F04", "F06")
def test_a_payload_without_canonical_form_is_refused_at_append() -> None:
    """The pointer leads into the payload, so the producer finds the value; nothing reaches the database."""
    with pytest.raises(CanonicalError) as caught:
        _ = prepared({"lines": [{"name": "x\x00y"}]})
    assert caught.value.pointer == "/payload/lines/0/name"
    with pytest.raises(CanonicalError) as caught:
        _ = prepared({"n": 2**53})
    assert (caught.value.pointer, caught.value.rule) == ("/payload/n", "integer_range")


@pytest.mark.req("F35", "F36", "F03")
def test_one_content_has_one_digest_and_another_content_another() -> None:
    """`10`, `10.0` and other key orders are the same event; `11`, or any other fact of the envelope, is not."""
    first = read_envelope(prepared({"total": 10, "a": 1}).envelope).digest
    assert read_envelope(prepared({"a": 1, "total": 10.0}).envelope).digest == first
    assert read_envelope(prepared({"total": 11, "a": 1}).envelope).digest != first
    digests = {sha256_hex(encode({**_document(), name: value})) for name, value in _OTHER_FACTS}
    assert len(digests | {sha256_hex(prepared().envelope)}) == len(_OTHER_FACTS) + 1


_OTHER_FACTS: list[tuple[str, Any]] = [
    ("eventType", "order.placed@2"),
    ("eventSchemaVersion", "1.0"),
    ("producer", "desk"),
    ("aggregate", {"kind": "order", "id": "order-17", "revision": 2}),
    ("tenant", {"tenantKind": "organization", "tenantId": "other", "workspaceId": "main"}),
    ("correlation", {"correlationId": "other"}),
    ("occurredAt", "2026-03-29T01:30:00.000001Z"),
]


def _refused() -> list[Any]:
    return [
        pytest.param({"more": 1}, "/more", "unknown_field", id="unknown field"),
        pytest.param({"payload": ...}, "/payload", "missing_field", id="no payload"),
        pytest.param({"payload": []}, "/payload", "wrong_type", id="payload is a list"),
        pytest.param({"eventId": str(EVENT_ID).upper()}, "/eventId", "event_id", id="upper-case id"),
        pytest.param({"eventId": None}, "/eventId", "event_id", id="no id"),
        pytest.param({"eventType": "Order"}, "/eventType", "event_type", id="type"),
        pytest.param({"eventSchemaVersion": 1}, "/eventSchemaVersion", "wrong_type", id="version is a number"),
        pytest.param({"producer": ""}, "/producer", "name", id="producer"),
        pytest.param({"occurredAt": "2026-03-29T01:30:00Z"}, "/occurredAt", "timestamp", id="short time"),
        pytest.param({"aggregate": "order-17"}, "/aggregate", "wrong_type", id="aggregate is a string"),
        pytest.param(
            {"aggregate": {"kind": "order", "id": "1", "revision": 0}},
            "/aggregate/revision",
            "revision",
            id="revision 0",
        ),
        pytest.param(
            {"aggregate": {"kind": "order", "id": 1, "revision": 1}}, "/aggregate/id", "wrong_type", id="numeric key"
        ),
        pytest.param(
            {"tenant": {"tenantKind": "team", "tenantId": "t", "workspaceId": "w"}},
            "/tenant/tenantKind",
            "not_in_enumeration",
            id="tenant kind",
        ),
        pytest.param(
            {"tenant": {"tenantKind": "user", "tenantId": "t", "workspaceId": "w", "projectId": None}},
            "/tenant/projectId",
            "wrong_type",
            id="null project",
        ),
        pytest.param(
            {"tenant": {"tenantKind": "user", "tenantId": "t"}}, "/tenant/workspaceId", "missing_field", id="workspace"
        ),
        pytest.param(
            {"correlation": {"correlationId": "c", "causationId": None}},
            "/correlation/causationId",
            "wrong_type",
            id="null causation",
        ),
        pytest.param(
            {"correlation": {"correlationId": "c", "traceparent": "x"}},
            "/correlation/traceparent",
            "traceparent",
            id="traceparent",
        ),
    ]


@pytest.mark.req("REF-01", "AMB-14", "F11")
@pytest.mark.parametrize(("change", "pointer", "rule"), _refused())
def test_a_broken_envelope_is_refused_by_reader_and_contract_alike(
    change: dict[str, Any], pointer: str, rule: str
) -> None:
    """The fast reader names the place and the rule; the published contract refuses the same document there."""
    document = {name: value for name, value in {**_document(), **change}.items() if value is not ...}
    text = encode(document)
    with pytest.raises(ContractError) as caught:
        _ = read_envelope(text)
    assert (caught.value.pointer, caught.value.rule) == (pointer, rule)
    with pytest.raises(ContractError) as published:
        _ = CanonicalEventEnvelope.decode(text)
    assert published.value.pointer == pointer


@pytest.mark.req("REF-01")
def test_the_published_contract_reads_what_the_producer_writes() -> None:
    """The contract takes a built envelope and writes the same bytes."""
    text = prepared({"a": 0.5, "\U0001f600": [None]}).envelope
    assert CanonicalEventEnvelope.decode(text).canonical() == text


@pytest.mark.req("F36")
@pytest.mark.parametrize("damage", [b"\n", b" "])
def test_only_the_canonical_bytes_are_an_envelope(damage: bytes) -> None:
    """A re-encoded body is refused as bytes, though its canonical value still has the sender's digest."""
    text = prepared().envelope
    with pytest.raises(CanonicalError) as caught:
        _ = read_envelope(text + damage)
    assert caught.value.rule == "not_canonical"
    assert encode(parse(text + damage)) == text
