"""The reader that knows the usual envelope by its shape takes nothing that the exact reader would read otherwise."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from seapost.contracts.canonical import encode
from seapost.contracts.envelope import Envelope, open_envelope, read_envelope, read_exactly, whole
from seapost.contracts.envelope_text import scan_envelope
from seapost.model.errors import ContractError
from tests.kit.contracts import EVENT_ID, prepared
from tests.kit.damage import damaged

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

identifiers = st.sampled_from(
    ["o-17", "a b", 'say "x"', "Rö", "back\\slash", " x", "y ", "", "z" * 200, "z" * 201, "/"]
)
values = st.recursive(
    st.sampled_from(
        [None, True, 0, -1, 2**53 - 1, 2**53, 0.5, 1e21, "", "x,1.5", 'q"', "\n", "é", "\U0001f600", "\ue000"]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "é", "\U0001f600"]), inner),
    max_leaves=8,
)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Envelopes, legal and not, with every optional field there or not."""
    document: dict[str, Any] = json.loads(prepared().envelope)
    document["aggregate"] = {
        "id": draw(identifiers),
        "kind": draw(st.sampled_from(["order", "Order", "k" * 200, "k" * 201])),
        "revision": draw(st.sampled_from([1, 0, 10**15 - 1, 10**15, 2**53 - 1, True, "1"])),
    }
    correlation = {"correlationId": draw(identifiers)}
    for name in ("causationId", "operationId"):
        if draw(st.booleans()):
            correlation[name] = draw(identifiers)
    if draw(st.booleans()):
        correlation["traceparent"] = draw(
            st.sampled_from(
                [TRACE, TRACE.replace("00-4", "ff-4"), TRACE.replace("00-4", "01-4"), f"00-{'0' * 32}{TRACE[35:]}"]
            )
        )
    tenant = {"tenantKind": draw(st.sampled_from(["user", "organization", "team"])), "tenantId": draw(identifiers)}
    tenant["workspaceId"] = "main"
    if draw(st.booleans()):
        tenant["projectId"] = draw(identifiers)
    document |= {
        "correlation": correlation,
        "tenant": tenant,
        "eventType": draw(
            st.sampled_from(["order.placed@1", "a@1.2.3", "a@", "A", "x" * 200, "x" * 201, "x@1.", "a.b"])
        ),
        "eventSchemaVersion": draw(st.sampled_from(["1", "1.0", "1" * 32, "1" * 33, "", "1."])),
        "producer": draw(st.sampled_from(["shop", "p" * 100, "p" * 101, "Shop"])),
        "occurredAt": draw(
            st.sampled_from(
                ["2026-02-28T01:30:00.000000Z", "2026-02-29T01:30:00.000000Z", "2026-03-31T24:00:00.000000Z"]
            )
        ),
        "payload": draw(st.dictionaries(st.sampled_from(["a", "producer", "é", "\uffff"]), values)),
    }
    return document


def _verdict(text: bytes) -> Envelope | str:
    try:
        return read_exactly(text)
    except ContractError as error:
        return error.rule


def _assert_one_verdict(text: bytes) -> None:
    exact = _verdict(text)
    scanned = scan_envelope(text)
    if scanned is not None:
        assert whole(scanned) == exact
        assert isinstance(exact, Envelope)
        stated = (scanned.event_id, scanned.event_type, scanned.event_schema_version, scanned.traceparent)
        assert stated == (
            str(exact.event_id),
            exact.event_type,
            exact.event_schema_version,
            exact.correlation.traceparent,
        )
        assert scanned.payload_text == encode(exact.payload)
        assert json.dumps(scanned.payload) == json.dumps(exact.payload)  # 1 and 1.0 and True are equal in Python
    if isinstance(exact, Envelope):
        assert read_envelope(text) == exact
        assert whole(open_envelope(text)) == exact
    else:
        with pytest.raises(ContractError) as caught:
            _ = open_envelope(text)
        assert caught.value.rule == exact


@pytest.mark.req("REF-01", "F36", "F07")
@settings(max_examples=400)
@given(documents(), st.data())
def test_both_readers_have_one_verdict(document: dict[str, Any], data: st.DataObject) -> None:
    """Whatever the envelope holds and however its text is damaged: recognised means accepted by the exact reader."""
    try:
        text = encode(document)
    except ContractError:
        text = json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
    _assert_one_verdict(text)
    _assert_one_verdict(data.draw(damaged(text)))


@pytest.mark.req("REF-01", "F36")
@settings(max_examples=400)
@given(damaged(prepared({"order_id": "17", "count": 1, "lines": [{"n": None}]}).envelope))
@example(prepared().envelope.replace(b'"payload":{', b'"payload":{"producer":"x",'))
@example(prepared().envelope.replace(b'"count":1', b'"count":1,"count":1'))
@example(prepared().envelope.replace(b'"count":1', b'"count":-0'))
@example(prepared().envelope.replace(b'"count":1', b'"count":1.0'))
@example(prepared().envelope + b"\n")
@example(b"\xef\xbb\xbf" + prepared().envelope)
def test_a_damaged_envelope_has_one_verdict(text: bytes) -> None:
    """One byte more or less is refused by both, or read as the same event by both."""
    _assert_one_verdict(text)


ORDINARY: list[dict[str, Any]] = [{}, {"note": "Größe 12,5", "lines": [{"n": 1}, [], None, True]}]


@pytest.mark.parametrize("payload", ORDINARY)
def test_the_usual_envelope_is_recognised(payload: dict[str, Any]) -> None:
    """Text of any language, nested lists and objects, integers: all of it without the exact reader."""
    scanned = scan_envelope(prepared(payload).envelope)
    assert scanned is not None
    assert (scanned.event_id, scanned.payload) == (str(EVENT_ID), payload)
