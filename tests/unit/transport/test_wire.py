"""The wire format: what goes in comes out, and nothing else is read."""

from __future__ import annotations

from hashlib import sha256
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seapost.model.delivery_set import DefinitionQuad
from seapost.model.errors import ContractError, LimitExceeded
from seapost.model.outcome import (
    NON_RETRYABLE_CODES,
    RETRYABLE_CODES,
    Acknowledged,
    NonRetryable,
    Outcome,
    Retryable,
)
from seapost.transport import wire
from seapost.transport.protocol import DeliveryRequest, IncomingDelivery
from tests.kit.consumer import claim, request_of

QUADS = st.builds(
    DefinitionQuad,
    st.sampled_from(["1", "2", "bootstrap-1"]),
    st.just("1"),
    st.just("jcs-sha256-v1"),
    st.sampled_from(["0" * 64, "f" * 64]),
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=40).map(str.encode)


@st.composite
def deliveries(draw: st.DrawFn) -> IncomingDelivery:
    """Any delivery that the format can carry."""
    envelope = draw(TEXTS)
    return IncomingDelivery(
        event_id=UUID(int=draw(st.integers(0, 2**128 - 1)) & ~(0xF << 76) & ~(0x3 << 62) | (0x7 << 76) | (0x2 << 62)),
        attempt_id=draw(st.integers(1, 2**63 - 1)),
        attempt_number=draw(st.integers(1, 2**31 - 1)),
        definition=draw(QUADS),
        event_type=draw(st.sampled_from(["order.placed@1", "order.paid@2.0"])),
        schema_version=draw(st.sampled_from(["1", "2.0"])),
        digest_algorithm="jcs-sha256-v1",
        digest=sha256(envelope).digest(),
        envelope=envelope,
    )


REQUESTS = st.builds(
    DeliveryRequest,
    st.just("billing"),
    st.just("billing_consumer"),
    st.lists(deliveries(), min_size=1, max_size=5).map(tuple),
)
REFERENCES = st.none() | st.from_regex(r"\A[A-Za-z0-9_-]{1,64}\Z")
OUTCOMES: st.SearchStrategy[Outcome] = st.one_of(
    st.builds(Acknowledged, TEXTS, TEXTS),
    st.builds(Retryable, st.sampled_from(sorted(RETRYABLE_CODES)), REFERENCES, st.none() | st.floats(0, 1e9)),
    st.builds(NonRetryable, st.sampled_from(sorted(NON_RETRYABLE_CODES)), REFERENCES),
)


@pytest.mark.req("REF-11", "F36")
@given(REQUESTS)
def test_request_survives_the_way(request: DeliveryRequest) -> None:
    """Every request is read back as it was, down to the bytes of the envelopes."""
    body = wire.encode_request(request)
    assert wire.decode_request(body, body_bytes_max=len(body)) == request


@pytest.mark.req("REF-11", "DLV-03")
@given(REQUESTS, st.data())
def test_response_survives_the_way(request: DeliveryRequest, data: st.DataObject) -> None:
    """Every list of outcomes is read back as it was, in order."""
    outcomes = [data.draw(OUTCOMES) for _ in request.deliveries]
    body = wire.encode_response(request, outcomes)
    assert wire.decode_response(body, request, body_bytes_max=len(body)) == outcomes


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode(errors="surrogatepass")))
def test_reading_only_raises_contract_errors(body: bytes) -> None:
    """Whatever bytes arrive, on either side, reading them ends in ContractError and nothing else."""
    request = request_of([claim()])
    with pytest.raises(ContractError):
        wire.decode_request(body, body_bytes_max=10_000)
    with pytest.raises(ContractError):
        wire.decode_response(body, request, body_bytes_max=10_000)


def test_size_is_limited_before_reading() -> None:
    """A body above its limit is refused by size."""
    body = wire.encode_request(request_of([claim()]))
    with pytest.raises(LimitExceeded):
        wire.decode_request(body, body_bytes_max=len(body) - 1)


def test_equal_members_travel_once() -> None:
    """A batch of one event type carries its member's coordinates once, whatever its size."""
    one = wire.encode_request(request_of([claim()]))
    many = wire.encode_request(request_of([claim() for _ in range(50)]))
    assert many.count(b"deliverySetDefinitionDigest") == one.count(b"deliverySetDefinitionDigest")
