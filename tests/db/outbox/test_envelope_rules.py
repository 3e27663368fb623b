"""The rules of the canonical event envelope, as the database enforces them against any producer (REF-01)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.kit import builders
from tests.kit.builders import Document, envelope_document
from tests.kit.kernel import Kernel, refused

ABSENT: Any = object()

IDENTIFIER = "1 to 200 characters in NFC"

# Path in the envelope, the value put there, the words of the refusal.
HEADER_CASES: list[tuple[str, Any, str]] = [
    ("eventId", ABSENT, "field eventId is missing"),
    ("eventId", 7, "field eventId has the wrong type"),
    ("eventId", "0195c6b0-8000-4000-8000-000000000000", "UUID of version 7"),
    ("eventId", "0195C6B0-8000-7000-8000-000000000000", "UUID of version 7"),
    ("eventId", "{0195c6b0-8000-7000-8000-000000000000}", "UUID of version 7"),
    ("eventType", ABSENT, "field eventType is missing"),
    ("eventSchemaVersion", ABSENT, "field eventSchemaVersion is missing"),
    ("aggregate", ABSENT, "field aggregate is missing"),
    ("aggregate", "order", "field aggregate has the wrong type"),
    ("aggregate", [], "field aggregate has the wrong type"),
    ("aggregate.kind", ABSENT, "field aggregate.kind is missing"),
    ("aggregate.id", ABSENT, "field aggregate.id is missing"),
    ("aggregate.id", "", f"field aggregate.id must be {IDENTIFIER}"),
    ("aggregate.id", "x" * 201, f"field aggregate.id must be {IDENTIFIER}"),
    ("aggregate.revision", ABSENT, "field aggregate.revision is missing"),
    ("aggregate.revision", 0, "field aggregate.revision must be an integer from 1"),
    ("aggregate.revision", -1, "field aggregate.revision must be an integer from 1"),
    ("aggregate.revision", 1.5, "field aggregate.revision must be an integer from 1"),
    ("aggregate.revision", "x", "field aggregate.revision must be an integer from 1"),
    ("aggregate.revision", None, "field aggregate.revision must be an integer from 1"),
    ("aggregate.revision", 1e21, "field aggregate.revision must be an integer from 1"),
    ("occurredAt", ABSENT, "field occurredAt is missing"),
    ("occurredAt", "2026-01-31T23:59:59Z", "field occurredAt must be a UTC time"),
    ("occurredAt", "2026-01-31T23:59:59.000000+01:00", "field occurredAt must be a UTC time"),
    ("occurredAt", "2026-02-30T00:00:00.000000Z", "field occurredAt must be a UTC time"),
    ("occurredAt", "2026-13-01T00:00:00.000000Z", "field occurredAt must be a UTC time"),
]

FULL_CASES: list[tuple[str, Any, str]] = [
    ("eventSchemaVersion", 1, "field eventSchemaVersion has the wrong type"),
    ("producer", ABSENT, "field producer is missing"),
    ("producer", "Shop", "field producer must match"),
    ("producer", "s" * 101, "at most 100 characters"),
    ("aggregate.kind", "Order", "field aggregate.kind must match"),
    ("aggregate.extra", 1, "field aggregate.extra is unknown"),
    ("aggregate.revision", "1", "field aggregate.revision must be an integer from 1"),
    ("aggregate.id", 5, "field aggregate.id must be a string"),
    ("aggregate.id", " order-1", IDENTIFIER),
    ("aggregate.id", "order-1\n", IDENTIFIER),
    ("aggregate.id", "order\u00a01\u00a0", IDENTIFIER),
    ("aggregate.id", "order\u0007one", IDENTIFIER),
    ("aggregate.id", "order\u200bone", IDENTIFIER),
    ("aggregate.id", "order\u202eone", IDENTIFIER),
    ("aggregate.id", "order\U000e0041", IDENTIFIER),
    ("aggregate.id", "cafe\u0301", IDENTIFIER),
    ("tenant", ABSENT, "field tenant is missing"),
    ("tenant.tenantKind", "team", "field tenant.tenantKind must be organization or user"),
    ("tenant.tenantId", ABSENT, "field tenant.tenantId is missing"),
    ("tenant.workspaceId", ABSENT, "field tenant.workspaceId is missing"),
    ("tenant.projectId", None, "field tenant.projectId must be a string"),
    ("tenant.region", "eu", "field tenant.region is unknown"),
    ("correlation", ABSENT, "field correlation is missing"),
    ("correlation.correlationId", ABSENT, "field correlation.correlationId is missing"),
    ("correlation.causationId", "", IDENTIFIER),
    ("correlation.operationId", None, "field correlation.operationId must be a string"),
    ("correlation.traceparent", "00-abc", "field correlation.traceparent must have the form of W3C Trace Context"),
    ("correlation.traceparent", f"00-{'0' * 32}-{'1' * 16}-01", "field correlation.traceparent"),
    ("correlation.baggage", "x", "field correlation.baggage is unknown"),
    ("occurredAt", "2026-06-30T23:59:60.000000Z", "field occurredAt must be a UTC time"),
    ("occurredAt", "2026-01-31T24:00:00.000000Z", "field occurredAt must be a UTC time"),
    ("payload", ABSENT, "field payload is missing"),
    ("payload", [], "field payload has the wrong type"),
    ("extra", 1, "field extra is unknown"),
]

PAIR_CASES: list[tuple[str, str, str]] = [
    ("eventType", "Order Placed", "field eventType must match"),
    ("eventType", "order.*", "field eventType must match"),
    ("eventType", "o" * 201, "at most 200 characters"),
    ("eventSchemaVersion", "1.x", "field eventSchemaVersion must be digits and dots"),
    ("eventSchemaVersion", "1" * 33, "at most 32 characters"),
]

# Other spellings of one canonical envelope whose payload is {"n":1}.
SPELLINGS: dict[str, Callable[[bytes], bytes]] = {
    "spaces": lambda text: json.dumps(json.loads(text)).encode(),
    "newline": lambda text: text + b"\n",
    "number": lambda text: text.replace(b'"n":1', b'"n":1.0'),
    "duplicate name": lambda text: text.replace(b'"n":1', b'"n":2,"n":1'),
    "escape": lambda text: text.replace(b"acme", b"\\u0061cme"),
    "order": lambda text: b'{"payload":{"n":1},' + text[1:].replace(b',"payload":{"n":1}', b""),
}

TEXT_CASES: list[tuple[bytes, str]] = [
    (b"", "not JSON in UTF-8"),
    (b"{", "not JSON in UTF-8"),
    (b"\xff{}", "not JSON in UTF-8"),
    (b'{"a":"\\u0000"}', "not JSON in UTF-8"),
    (b'{"a":"\\ud800"}', "not JSON in UTF-8"),
    (b"\xef\xbb\xbf{}", "not JSON in UTF-8"),
    (b"[]", "the document must be an object"),
    (b"null", "the document must be an object"),
    (b"{}", "field eventId is missing"),
]


def _changed(path: str, value: object) -> Document:
    document = envelope_document()
    *parents, name = path.split(".")
    place = document
    for parent in parents:
        inner = dict(place[parent])
        place[parent] = inner
        place = inner
    if value is ABSENT:
        del place[name]
    else:
        place[name] = value
    return document


def _name(value: object) -> str:
    return "absent" if value is ABSENT else ascii(value)[:30]


@pytest.mark.req("REF-01", "F11")
@pytest.mark.parametrize(("path", "value", "words"), [*HEADER_CASES, *FULL_CASES], ids=_name)
def test_strict_refuses_each_broken_rule_by_field_and_rule(
    shared_strict: Kernel, path: str, value: object, words: str
) -> None:
    """At guard level strict the database names the field and the rule that any producer broke, and stores nothing."""
    with refused("SP006", words):
        shared_strict.append(builders.canonical(_changed(path, value)))
    assert shared_strict.count("outbox_events") == 0


@pytest.mark.req("REF-01", "NEG-06")
@pytest.mark.parametrize(("path", "value", "words"), PAIR_CASES, ids=_name)
def test_a_pair_that_no_definition_may_hold_is_refused(
    shared_strict: Kernel, path: str, value: str, words: str
) -> None:
    """A malformed type or version is in no definition, so append refuses it as such; the envelope rule names it too."""
    text = builders.canonical(_changed(path, value))
    with refused("SP003"):
        shared_strict.append(text)
    with refused("SP006", words):
        shared_strict.run("select seapost.outbox_explain_envelopes(%s)", [text])


@pytest.mark.req("REF-01")
@pytest.mark.parametrize(("path", "value", "words"), HEADER_CASES, ids=_name)
def test_lean_refuses_each_broken_header_by_field_and_rule(
    shared_lean: Kernel, path: str, value: object, words: str
) -> None:
    """At guard level lean what becomes a column is checked in the same words; a good neighbour falls with it."""
    with refused("SP006", words):
        shared_lean.append(builders.envelope(), builders.canonical(_changed(path, value)))
    assert shared_lean.count("outbox_events") == 0


@pytest.mark.req("REF-01", "F04")
@pytest.mark.parametrize(("text", "words"), TEXT_CASES, ids=_name)
def test_what_is_no_json_object_is_refused(shared_kernel: Kernel, text: bytes, words: str) -> None:
    """Broken JSON, broken UTF-8, a byte order mark, U+0000 and half a surrogate pair never enter, at either level."""
    with refused("SP006", words):
        shared_kernel.append(text)


@pytest.mark.req("REF-02", "F07", "F09")
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_strict_refuses_bytes_that_are_not_canonical(shared_strict: Kernel, spelling: str) -> None:
    """One document has one byte string: another spelling of a good envelope is refused at guard level strict."""
    document = envelope_document(payload={"n": 1})
    with refused("SP006", "not in canonical form"):
        shared_strict.append(SPELLINGS[spelling](builders.canonical(document)))
    with shared_strict.connection.transaction(force_rollback=True):
        assert shared_strict.append(builders.canonical(document)) == 1


@pytest.mark.req("REF-01")
@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("aggregate.id", "注文-1 № 7"),
        ("aggregate.id", "x" * 200),
        ("aggregate.id", "\U0001f600"),
        ("aggregate.revision", 9007199254740991),
        ("tenant.tenantKind", "user"),
        ("tenant.projectId", "p"),
        ("correlation.traceparent", f"00-{'a' * 32}-{'1' * 16}-01"),
        ("correlation.operationId", "op"),
        ("occurredAt", "1970-01-01T00:00:00.000001Z"),
        ("payload", {}),
        ("payload", {"deep": [[[{"é": [1e-7, 1e21, -0.5, "\u2028\u007f"]}]]]}),
    ],
    ids=_name,
)
def test_the_borders_of_the_rules_are_inside(shared_kernel: Kernel, path: str, value: object) -> None:
    """The largest revision, the longest identifier, any script and every optional field are accepted at both levels."""
    text = builders.canonical(_changed(path, value))
    with shared_kernel.connection.transaction(force_rollback=True):
        assert shared_kernel.append(text) == 1
        assert bytes(shared_kernel.value("select event_envelope from seapost.outbox_events")) == text


@pytest.mark.req("REF-01")
def test_an_envelope_has_at_most_a_mebibyte(shared_kernel: Kernel) -> None:
    """The limit is a check of the table itself: one byte more is refused."""
    room = 1_048_576 - len(builders.envelope(payload={"x": ""}))
    with shared_kernel.connection.transaction(force_rollback=True):
        assert shared_kernel.append(builders.envelope(payload={"x": "y" * room})) == 1
    with refused("23514"):
        shared_kernel.append(builders.envelope(payload={"x": "y" * (room + 1)}))
