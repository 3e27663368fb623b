"""One suite for every transport: the same deliveries end in the same outcomes, in process and over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from hashlib import sha256

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from seapost.contracts.receipt_registry import DEFAULT_RECEIPTS
from seapost.contracts.verification import verify_acknowledgement
from seapost.model.outcome import Acknowledged, ErrorCode, NonRetryable, Outcome, Retryable
from seapost.server.receiver import create_app
from seapost.transport.address import AddressPolicy
from seapost.transport.http import HttpTransport
from seapost.transport.inprocess import InProcessTransport
from seapost.transport.protocol import Transport
from seapost.transport.token import TokenSigner, TokenVerifier
from tests.kit import builders
from tests.kit.consumer import ORDERED, PAID, UNHANDLED, Consumer, claim, consumer
from tests.kit.database import TestDatabase
from tests.kit.serving import serving

Carried = tuple[Transport, Consumer]


@pytest.fixture(params=["in process", "asgi", "loopback"])
async def carried(database: TestDatabase, request: pytest.FixtureRequest) -> AsyncIterator[Carried]:
    """Give each transport with the scripted consumer behind it."""
    key = Ed25519PrivateKey.generate()
    signer = TokenSigner(key, issuer="test", workload="dispatcher")
    verifier = TokenVerifier([key.public_key()], issuer="test")
    async with AsyncExitStack() as stack:
        behind = await stack.enter_async_context(consumer(database))
        transport: Transport
        if request.param == "in process":
            transport = InProcessTransport(behind.receiving.receive)
        else:
            app = create_app([behind.receiving], verifier=verifier)
            if request.param == "asgi":
                transport = HttpTransport(
                    "http://receiver.example", signer=signer, transport=httpx.ASGITransport(app=app)
                )
            else:
                url = await stack.enter_async_context(serving(app))
                transport = HttpTransport(url, signer=signer, policy=AddressPolicy.allowing("127.0.0.1"))
        yield transport, behind
        await transport.aclose()


def shape(outcomes: Sequence[Outcome]) -> list[tuple[str, str]]:
    """The outcomes without references and texts."""
    return [(type(item).__name__, "" if isinstance(item, Acknowledged) else item.code.value) for item in outcomes]


@pytest.mark.req("DLV-03", "DLV-18", "DLV-19", "GEN-07")
async def test_good_batch_is_acknowledged_with_receipts_that_verify(carried: Carried) -> None:
    """Every delivery of a batch of both colours comes back, in order, with a receipt that matches its frozen member."""
    transport, behind = carried
    claims = [claim(ORDERED), claim(PAID), claim(ORDERED), claim(PAID)]
    outcomes = await transport.deliver(claims, timeout_seconds=20)
    for held, outcome in zip(claims, outcomes, strict=True):
        assert isinstance(outcome, Acknowledged)
        verified = verify_acknowledgement(DEFAULT_RECEIPTS, held, outcome)
        assert verified.candidate == builders.receipt_for(held)
    assert behind.effects() == behind.receipts() == sorted(held.fence.event_id for held in claims)


@pytest.mark.req("GEN-16", "DLV-14", "DLV-20", "TST-31")
async def test_redelivery_gets_the_same_bytes(carried: Carried) -> None:
    """A second delivery of an applied event is answered with byte-identical receipt and ack, and has no effect."""
    transport, behind = carried
    claims = [claim(ORDERED), claim(PAID)]
    first = await transport.deliver(claims, timeout_seconds=20)
    again = await transport.deliver(list(reversed(claims)), timeout_seconds=20)
    assert list(first) == list(reversed(again))
    assert len(behind.effects()) == 2


@pytest.mark.req("DLV-20", "F32")
async def test_both_copies_in_one_batch_are_handled_once(carried: Carried) -> None:
    """Two copies of one event in one batch run the handler once and get one receipt."""
    transport, behind = carried
    held = claim(ORDERED)
    one, two, other = await transport.deliver([held, held, claim(ORDERED)], timeout_seconds=20)
    assert isinstance(one, Acknowledged)
    assert one == two
    assert isinstance(other, Acknowledged)
    assert behind.effects().count(held.fence.event_id) == 1


@pytest.mark.req("DLV-04", "DLV-05", "RTY-01", "RTY-02", "RTY-03", "NEG-46")
@pytest.mark.parametrize("kind", [ORDERED, PAID])
async def test_bad_events_do_not_harm_their_neighbours(carried: Carried, kind: str) -> None:
    """Retry, Reject and an exception each end in their own outcome and leave nothing; their neighbours are applied."""
    transport, behind = carried
    words = ["apply", "retry", "apply", "reject", "fail", "apply", "reject strangely", "retry strangely"]
    claims = [claim(kind, word) for word in words]
    outcomes = await transport.deliver(claims, timeout_seconds=20)
    assert shape(outcomes) == [
        ("Acknowledged", ""),
        ("Retryable", "revision_gap"),
        ("Acknowledged", ""),
        ("NonRetryable", "schema_invalid"),
        ("Retryable", "dependency_unavailable"),
        ("Acknowledged", ""),
        ("NonRetryable", "version_unsupported"),
        ("Retryable", "dependency_unavailable"),
    ]
    waits = [item.retry_after_seconds for item in outcomes if isinstance(item, Retryable)]
    assert waits == [7.5, None, None]
    assert all(item.answered for item in outcomes if isinstance(item, Retryable))
    applied = sorted(claims[position].fence.event_id for position in (0, 2, 5))
    assert behind.effects() == behind.receipts() == applied


@pytest.mark.req("F35", "NEG-47", "DLV-05")
async def test_known_event_with_other_content_is_a_conflict(carried: Carried) -> None:
    """A known event id with another digest is non_retryable, digest_conflict, and changes nothing."""
    transport, behind = carried
    held = claim(ORDERED)
    changed = claim(ORDERED, "apply", eventId=str(held.fence.event_id), producer="other")
    first = await transport.deliver([held], timeout_seconds=20)
    second = await transport.deliver([changed], timeout_seconds=20)
    assert shape([*first, *second]) == [("Acknowledged", ""), ("NonRetryable", "digest_conflict")]
    assert behind.effects() == [held.fence.event_id]


@pytest.mark.req("F35", "NEG-47")
async def test_two_contents_of_one_event_in_one_batch(carried: Carried) -> None:
    """Of two different contents under one new event id in one batch, one is applied and the other is a conflict."""
    transport, behind = carried
    held = claim(ORDERED)
    changed = claim(ORDERED, "apply", eventId=str(held.fence.event_id), producer="other")
    outcomes = await transport.deliver([held, changed], timeout_seconds=20)
    assert shape(outcomes) == [("Acknowledged", ""), ("NonRetryable", "digest_conflict")]
    assert behind.effects() == [held.fence.event_id]


@pytest.mark.req("SET-39", "NEG-40", "DLV-05")
async def test_unknown_event_is_never_mapped_to_a_similar_one(carried: Carried) -> None:
    """An event without a handler for its exact pair is non_retryable, schema_unknown."""
    transport, behind = carried
    outcomes = await transport.deliver([claim(UNHANDLED), claim(ORDERED)], timeout_seconds=20)
    assert shape(outcomes) == [("NonRetryable", "schema_unknown"), ("Acknowledged", "")]
    assert len(behind.receipts()) == 1


@pytest.mark.req("DLV-05", "RTY-03")
async def test_payload_and_digest_are_checked_by_the_consumer(carried: Carried) -> None:
    """A payload outside its class is schema_invalid; bytes without the stated digest are digest_conflict."""
    transport, behind = carried
    invalid = claim(ORDERED, payload={"do": "apply", "surprise": 1})
    wrong = replace(claim(ORDERED), event_digest=sha256(b"other").digest())
    outcomes = await transport.deliver([invalid, wrong], timeout_seconds=20)
    assert shape(outcomes) == [("NonRetryable", "schema_invalid"), ("NonRetryable", "digest_conflict")]
    assert behind.receipts() == []


SPELLINGS: dict[str, Callable[[bytes], bytes]] = {
    "a space": lambda text: text.replace(b'{"aggregate"', b'{ "aggregate"'),
    "a line feed at the end": lambda text: text + b"\n",
    "a byte order mark": lambda text: b"\xef\xbb\xbf" + text,
}


@pytest.mark.req("F36")
@pytest.mark.parametrize("spelling", SPELLINGS)
async def test_reencoded_envelope_is_refused(carried: Carried, spelling: str) -> None:
    """An envelope that is the same value in other bytes is no canonical envelope, even with a fitting digest."""
    transport, behind = carried
    original = claim(ORDERED)
    text = SPELLINGS[spelling](original.envelope)
    changed = replace(original, envelope=text, event_digest=sha256(text).digest())
    (outcome,) = await transport.deliver([changed], timeout_seconds=20)
    assert isinstance(outcome, NonRetryable)
    assert outcome.code is ErrorCode.ENVELOPE_INVARIANT_BROKEN
    assert behind.receipts() == []


@pytest.mark.req("F36", "DLV-19")
async def test_hard_text_survives_the_way(carried: Carried) -> None:
    """Zeros, line separators, escapes and characters outside the basic plane arrive as the same bytes."""
    transport, behind = carried
    held = claim(ORDERED, payload={"do": "apply", "note": 'é \u2028 "\\ \x1f \U0001f6a2 <&>'})
    (outcome,) = await transport.deliver([held], timeout_seconds=20)
    assert isinstance(outcome, Acknowledged)
    assert behind.script.received[0].event_id == held.fence.event_id


@pytest.mark.req("DLV-03")
async def test_nothing_to_deliver_is_no_call(carried: Carried) -> None:
    """An empty batch has an empty answer."""
    transport, behind = carried
    assert list(await transport.deliver([], timeout_seconds=5)) == []
    assert behind.script.calls == []
