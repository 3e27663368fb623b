"""The receiver's own errors: each is a problem document with a stable type, and none reaches an inbox."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, MutableMapping
from hashlib import sha256
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from seapost.database.pool import open_pool, open_sync_pool
from seapost.inbox.receive import Receiving
from seapost.model.errors import InvalidSetting
from seapost.server.receiver import ReceiverSettings, create_app
from seapost.transport import token, wire
from seapost.transport.token import TokenSigner, TokenVerifier
from tests.kit.consumer import NAME, Script, claim, request_of, scripted_inbox

SETTINGS = ReceiverSettings(body_bytes_max=20_000, deliveries_max=3)


def unconnected() -> Receiving:
    """An inbox whose database does not exist: nothing in these tests may reach it."""
    dsn = "host=127.0.0.1 port=1 dbname=none"
    pool = open_pool(dsn, part="inbox", wait_seconds=0.1)
    return Receiving(scripted_inbox(Script()), pool, open_sync_pool(dsn, part="inbox", wait_seconds=0.1))


KEY = Ed25519PrivateKey.generate()
SIGNER = TokenSigner(KEY, issuer="test", workload="dispatcher")
VERIFIER = TokenVerifier([KEY.public_key()], issuer="test")


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    """Give a client of a receiver that checks tokens."""
    app = create_app([unconnected()], verifier=VERIFIER, settings=SETTINGS)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://receiver") as opened:
        yield opened


def body_of(count: int = 1) -> bytes:
    """A valid delivery request."""
    return wire.encode_request(request_of([claim() for _ in range(count)]))


def bearer(body: bytes, *, signer: TokenSigner = SIGNER, later: float = 0.0, **changes: Any) -> dict[str, str]:
    """Headers of a delivery call minted `later` seconds from now, with the named claims or bindings changed."""
    bindings = {
        "destination": NAME,
        "consumerName": NAME,
        "deliveryCount": 1,
        "requestSha256": sha256(body).hexdigest(),
        **changes.pop("bindings", {}),
    }
    claims: dict[str, Any] = {
        "audience": NAME,
        "scope": token.DELIVER_SCOPE,
        "purpose": token.DELIVER_PURPOSE,
        **changes,
    }
    minted = signer.mint(bindings=bindings, now=time.time() + later, **claims)
    return {"authorization": f"Bearer {minted}", "content-type": "application/json"}


def assert_problem(response: httpx.Response, status: int, name: str) -> None:
    """The response is this problem, and says nothing of the inside."""
    assert response.headers["content-type"] == "application/problem+json"
    assert (response.status_code, response.json()["status"]) == (status, status)
    assert response.json()["type"] == f"urn:seapost:problem:{name}"
    assert "Traceback" not in response.text
    assert ".py" not in response.text


@pytest.mark.req("REF-11", "NEG-11")
@pytest.mark.parametrize(
    ("changes", "status", "reason"),
    [
        ({"later": -200.0}, 401, "expired"),
        ({"later": 200.0}, 401, "not valid yet"),
        ({"signer": TokenSigner(Ed25519PrivateKey.generate(), issuer="test", workload="x")}, 401, "key unknown"),
        ({"signer": TokenSigner(KEY, issuer="other", workload="x")}, 401, "issuer"),
        ({"bindings": {"requestSha256": "0" * 64}}, 401, "requestSha256"),
        ({"audience": "shipping"}, 403, "audience"),
        ({"scope": token.RECEIPT_SCOPE}, 403, "scope"),
        ({"purpose": "read"}, 403, "purpose"),
        ({"bindings": {"destination": "shipping"}}, 403, "destination"),
        ({"bindings": {"consumerName": "shipping"}}, 403, "consumerName"),
        ({"bindings": {"deliveryCount": 2}}, 403, "deliveryCount"),
        ({"bindings": {"deliveryCount": "1"}}, 403, "deliveryCount"),
        ({"bindings": {"more": "1"}}, 403, "exactly"),
    ],
)
async def test_token_must_be_for_exactly_this_call(
    client: httpx.AsyncClient, changes: dict[str, Any], status: int, reason: str
) -> None:
    """A token that is expired, early, foreign or bound to another call is refused with its reason, not its text."""
    body = body_of()
    headers = bearer(body, **changes)
    response = await client.post(wire.PATH, content=body, headers=headers)
    assert_problem(response, status, "unauthenticated" if status == 401 else "forbidden")
    assert reason in response.json()["detail"]
    assert headers["authorization"][7:40] not in response.text


@pytest.mark.req("REF-11")
@pytest.mark.parametrize("value", [None, "", "Bearer", "Basic eDp5", "Bearer x.y.z", "Bearer " + "a" * 5_000])
async def test_missing_or_malformed_token(client: httpx.AsyncClient, value: str | None) -> None:
    """A call without a readable bearer token is 401."""
    headers = {"content-type": "application/json"} | ({} if value is None else {"authorization": value})
    response = await client.post(wire.PATH, content=body_of(), headers=headers)
    assert_problem(response, 401, "unauthenticated")
    assert response.headers["www-authenticate"] == "Bearer"


@pytest.mark.req("F86")
async def test_body_is_limited_while_it_streams(client: httpx.AsyncClient) -> None:
    """A body above the limit is refused at its announced length, and without one as soon as it passes the limit."""
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 1_000
            assert sent < 100_000, "the receiver reads on beyond its limit"
            yield b" " * 1_000

    announced = await client.post(wire.PATH, content=b" " * 30_000, headers={"content-type": "application/json"})
    assert_problem(announced, 413, "content-too-large")
    # The client's in-process transport collects a generator's parts one by one, as the receiver asks for them.
    streamed = await client.post(wire.PATH, content=endless(), headers={"content-type": "application/json"})
    assert_problem(streamed, 413, "content-too-large")


@pytest.mark.req("REF-11")
@pytest.mark.parametrize("content_type", ["text/plain", "", "application/xml", "multipart/form-data"])
async def test_content_type_is_checked_first(client: httpx.AsyncClient, content_type: str) -> None:
    """Anything but application/json is 415."""
    response = await client.post(wire.PATH, content=b"{}", headers={"content-type": content_type})
    assert_problem(response, 415, "unsupported-media-type")


async def test_compressed_body_is_refused(client: httpx.AsyncClient) -> None:
    """A compressed body is 415: its real size is not known before it is unpacked."""
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    assert_problem(await client.post(wire.PATH, content=b"x", headers=headers), 415, "unsupported-media-type")


@pytest.mark.req("NEG-37", "RTY-06", "F78")
async def test_unknown_paths_and_methods_are_problems(client: httpx.AsyncClient) -> None:
    """Paths and methods that do not exist are problems; among them everything that would skip or force an event."""
    assert_problem(await client.get("/seapost/v1/deliveries/17/skip"), 404, "not-found")
    assert_problem(await client.get("/seapost/v1/receipts"), 404, "not-found")
    assert_problem(await client.request("FOO1", wire.PATH), 405, "method-not-allowed")
    assert_problem(await client.get(wire.RECEIPT_PATH), 405, "method-not-allowed")


SPOILED: dict[str, Callable[[dict[str, Any]], object]] = {
    "an unknown field": lambda document: document | {"more": 1},
    "another protocol": lambda document: document | {"protocol": "seapost.delivery.v2"},
    "no delivery": lambda document: document | {"deliveries": list[object]()},
    "no member": lambda document: document | {"members": list[object]()},
    "a name outside its alphabet": lambda document: document | {"destination": "Billing"},
    "too many": lambda document: document | {"deliveries": document["deliveries"] * 4},
    "no such member": lambda document: document | {"deliveries": [document["deliveries"][0] | {"member": 1}]},
    "an id that is a number": lambda document: (
        document | {"deliveries": [document["deliveries"][0] | {"attemptId": 41}]}
    ),
    "an array": lambda document: [document],
    "a string": lambda document: str(document["protocol"]),
}


@pytest.mark.req("REF-11")
@pytest.mark.parametrize("spoiled", SPOILED)
async def test_broken_request_is_named(client: httpx.AsyncClient, spoiled: str) -> None:
    """A body that breaks the protocol is 400 with the place, without repeating what was sent."""
    body = json.dumps(SPOILED[spoiled](json.loads(body_of()))).encode()
    response = await client.post(wire.PATH, content=body, headers=bearer(body))
    assert_problem(response, 400, "invalid-request")
    assert response.json()["detail"]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"{", id="half"),
        pytest.param(b'{"a":1,"a":2}', id="a duplicate name"),
        pytest.param(b"\xef\xbb\xbf{}", id="a byte order mark"),
        pytest.param(b'{"a":"\\ud800"}', id="half a surrogate pair"),
        pytest.param(b'{"a":NaN}', id="no number"),
        pytest.param(b"[" * 10_000, id="very deep"),
    ],
)
async def test_text_that_is_no_json_is_named(client: httpx.AsyncClient, body: bytes) -> None:
    """Text that is no strict JSON is 400 and never an internal error."""
    assert_problem(await client.post(wire.PATH, content=body, headers=bearer(body)), 400, "invalid-request")


async def test_unknown_consumer_is_not_an_events_fault(client: httpx.AsyncClient) -> None:
    """A request for a consumer that does not live here is 404, so nothing is quarantined."""
    body = body_of().replace(b'"consumerName":"billing"', b'"consumerName":"search"')
    response = await client.post(wire.PATH, content=body, headers=bearer(body))
    assert_problem(response, 404, "unknown-consumer")


@pytest.mark.req("RTY-02")
async def test_database_out_of_reach_is_a_result_for_each_delivery(client: httpx.AsyncClient) -> None:
    """Without its database the consumer still answers 200: retryable, with nothing said about the events."""
    body = body_of()
    response = await client.post(wire.PATH, content=body, headers=bearer(body))
    assert response.status_code == 200
    (result,) = response.json()["results"]
    assert (result["outcome"], result["code"]) == ("retryable", "dependency_unavailable")


async def test_full_receiver_refuses_at_once() -> None:
    """Above its concurrency limit the receiver answers 503 with Retry-After before it reads the body."""
    app = create_app([unconnected()], verifier=None, settings=ReceiverSettings(concurrency_max=1))
    transport = httpx.ASGITransport(app=app)
    answers: list[httpx.Response] = []

    async with httpx.AsyncClient(transport=transport, base_url="http://receiver") as client:

        async def body() -> AsyncIterator[bytes]:
            answers.append(await client.post(wire.PATH, content=b"{}", headers={"content-type": "application/json"}))
            yield b"{}"

        first = await client.post(wire.PATH, content=body(), headers={"content-type": "application/json"})
    (second,) = answers
    assert_problem(second, 503, "overloaded")
    assert second.headers["retry-after"] == "1"
    assert_problem(first, 400, "invalid-request")


async def test_slow_body_is_given_up() -> None:
    """A body that does not arrive within its time is 408."""
    app = create_app([unconnected()], verifier=None, settings=ReceiverSettings(body_seconds=0.05))
    status: list[int] = []

    async def receive() -> dict[str, Any]:
        return await asyncio.get_running_loop().create_future()

    async def send(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            status.append(message["status"])

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "path": wire.PATH,
        "raw_path": wire.PATH.encode(),
        "query_string": b"",
        "root_path": "",
        "scheme": "http",
        "headers": [(b"content-type", b"application/json")],
    }
    await app(scope, receive, send)
    assert status == [408]


async def test_health_and_metrics(client: httpx.AsyncClient) -> None:
    """Liveness needs no database, readiness does, and metrics come in the Prometheus text format."""
    assert (await client.get("/livez")).json() == {"status": "ok"}
    assert_problem(await client.get("/readyz"), 503, "not-ready")
    scraped = await client.get("/metrics")
    assert scraped.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert "seapost_consumer_apply_seconds" in scraped.text


async def test_openapi_describes_what_is_served(client: httpx.AsyncClient) -> None:
    """The OpenAPI document holds every path, every schema it refers to, and the problem of every error."""
    document = (await client.get("/openapi.json")).json()
    assert set(document["paths"]) == {wire.PATH, wire.RECEIPT_PATH, "/livez", "/readyz", "/metrics"}
    text = json.dumps(document)
    for name in ("WireRequest", "WireDelivery", "WireResponse", "ReceiptReadRequest", "ReceiptReadResult", "Problem"):
        assert name in document["components"]["schemas"]
        assert f"#/components/schemas/{name}" in text
    assert {"400", "401", "403", "404", "408", "413", "415", "503"} <= set(
        document["paths"][wire.PATH]["post"]["responses"]
    )
    assert "$defs" not in text


def test_receiver_needs_an_inbox_and_each_only_once() -> None:
    """A receiver without an inbox, or with two for one destination and consumer, is refused when it is made."""
    with pytest.raises(InvalidSetting):
        create_app([], verifier=None)
    with pytest.raises(InvalidSetting):
        create_app([unconnected(), unconnected()], verifier=None)
    with pytest.raises(InvalidSetting):
        ReceiverSettings(concurrency_max=0)
