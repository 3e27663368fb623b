"""What the HTTP transport makes of peers that misbehave: always one outcome for each delivery, within its limits."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence

import pytest

from seapost.model.outcome import Acknowledged, ErrorCode, NonRetryable, Outcome, Retryable
from seapost.transport.address import AddressPolicy
from seapost.transport.http import HttpLimits, HttpTransport
from seapost.transport.statuses import STATUSES, meaning_of
from tests.kit.consumer import claim
from tests.kit.serving import Script, always, free_port, peer, read_request, response

LOOPBACK = AddressPolicy.allowing("127.0.0.1")
SMALL = HttpLimits(response_bytes_base=4_096, response_bytes_per_delivery=1_024)


async def call(
    url: str, *, count: int = 2, timeout_seconds: float = 20, limits: HttpLimits = SMALL
) -> Sequence[Outcome]:
    """Deliver some claims to a peer."""
    async with HttpTransport(url, policy=LOOPBACK, limits=limits) as transport:
        return await transport.deliver([claim() for _ in range(count)], timeout_seconds=timeout_seconds)


async def call_peer(script: Script, *, timeout_seconds: float = 20) -> list[tuple[str, bool, float | None]]:
    """Code, answered and wait of each outcome that a scripted peer leads to; all must be retryable."""
    async with peer(script) as url:
        outcomes = await call(url, timeout_seconds=timeout_seconds)
    assert len(outcomes) == 2
    found: list[tuple[str, bool, float | None]] = []
    for outcome in outcomes:
        assert isinstance(outcome, Retryable)
        assert outcome.reference is not None
        found.append((outcome.code.value, outcome.answered, outcome.retry_after_seconds))
    return found


@pytest.mark.req("DLV-06", "F28", "NEG-08")
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"OK", id="a word"),
        pytest.param(b'"acknowledged"', id="a free string"),
        pytest.param(b"{}", id="an empty object"),
        pytest.param(b'{"protocol":"seapost.delivery.v1","results":[]}', id="no results"),
        pytest.param(b'{"protocol":"seapost.delivery.v1","protocol":"x","results":[]}', id="a duplicate name"),
        pytest.param(b"[" * 3_000, id="very deep"),
        pytest.param(b'{"protocol":"seapost.delivery.v2","results":[]}', id="another protocol"),
        pytest.param(b"\xff\xfe", id="no UTF-8"),
    ],
)
async def test_200_with_anything_else_is_no_receipt(body: bytes) -> None:
    """A 200 response that is not exactly an answer ends as ack_invalid, unanswered, for every delivery."""
    assert await call_peer(always(response(body))) == [("ack_invalid", False, None)] * 2


@pytest.mark.req("DLV-06", "NEG-08")
async def test_other_type_or_coding_is_not_read() -> None:
    """A 200 response of another content type, or compressed, is no receipt."""
    html = always(response(b"<p>fine</p>", content_type="text/html"))
    zipped = always(response(b"{}", headers="content-encoding: gzip\r\n"))
    assert await call_peer(html) == await call_peer(zipped) == [("ack_invalid", False, None)] * 2


@pytest.mark.req("F86")
async def test_oversized_response_is_cut() -> None:
    """A response that announces, or sends, more bytes than allowed is dropped without being read to its end."""

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"1000\r\n" + b" " * 4096 + b"\r\n")
            await writer.drain()

    announced = always(response(b" " * 100_000))
    assert await call_peer(announced) == await call_peer(endless) == [("ack_invalid", False, None)] * 2


@pytest.mark.req("F28", "RTY-02")
async def test_dripping_response_ends_with_the_total_time() -> None:
    """A response that always sends one more byte in time is still cut at the call's time limit."""

    async def dripping(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 4000\r\n\r\n")
        closed = asyncio.ensure_future(reader.read())
        while not closed.done():
            writer.write(b" ")
            await writer.drain()
            await asyncio.wait({closed}, timeout=0.02)

    started = asyncio.get_running_loop().time()
    assert await call_peer(dripping, timeout_seconds=0.3) == [("timeout", False, None)] * 2
    assert asyncio.get_running_loop().time() - started < 5


@pytest.mark.req("F28", "RTY-02")
async def test_silent_peer_ends_with_the_total_time() -> None:
    """A peer that takes the request and never answers is a timeout that makes suspects."""

    async def silent(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await reader.read()

    assert await call_peer(silent, timeout_seconds=0.2) == [("timeout", False, None)] * 2


@pytest.mark.req("F28", "DLV-14")
async def test_connection_closed_early_is_unanswered() -> None:
    """A peer that hangs up before, or in the middle of, its response leaves every delivery unanswered."""

    async def hang_up(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await read_request(reader)

    half = always(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 400\r\n\r\n{")
    assert await call_peer(hang_up) == await call_peer(half) == [("dependency_unavailable", False, None)] * 2


@pytest.mark.req("F28", "RTY-02")
async def test_nobody_listening_accuses_no_delivery() -> None:
    """A refused connection and a name that does not resolve are retryable, and make no suspects: nobody was reached."""
    refused = await call(f"http://127.0.0.1:{free_port()}")
    unresolved = await call("http://receiver.invalid")
    for outcome in (*refused, *unresolved):
        assert isinstance(outcome, Retryable)
        assert (outcome.code, outcome.answered) == (ErrorCode.DEPENDENCY_UNAVAILABLE, True)


@pytest.mark.req("F28", "RTY-01", "RTY-02")
@pytest.mark.parametrize("status", [201, 204, 301, 307, *sorted(STATUSES), 401, 403, 404, 405, 410, 418, 500, 502, 599])
async def test_every_status_means_what_the_table_says(status: int) -> None:
    """No status but 200 acknowledges or quarantines; each is retryable with the published code."""
    meaning = meaning_of(status)
    answer = f"HTTP/1.1 {status} X\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n".encode()
    assert await call_peer(always(answer)) == [(meaning.code.value, meaning.answered, None)] * 2


@pytest.mark.req("F86")
async def test_redirects_are_never_followed() -> None:
    """A redirect reaches its target neither with the deliveries nor without them."""
    visited: list[bytes] = []

    async def target(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        visited.append(await reader.read(10))

    async with peer(target) as elsewhere:
        answer = f"HTTP/1.1 307 Moved\r\nlocation: {elsewhere}/\r\ncontent-length: 0\r\n\r\n".encode()
        assert await call_peer(always(answer)) == [("dependency_unavailable", True, None)] * 2
    assert visited == []


@pytest.mark.req("F26", "DLV-04")
@pytest.mark.parametrize(
    ("field", "seconds"),
    [("120", 120.0), ("0", 0.0), ("-5", None), ("soon", None), ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0)],
)
async def test_retry_after_reaches_the_policy(field: str, seconds: float | None) -> None:
    """A valid Retry-After of a 503 comes back as the consumer's wish, an invalid one as none."""
    answer = response(b"", status="503 Busy", headers=f"retry-after: {field}\r\n")
    assert await call_peer(always(answer)) == [("capacity_protected", True, seconds)] * 2


Results = list[dict[str, object]]
Change = Callable[[Results], Results]


def answering(change: Change) -> Script:
    """Answer like a consumer that acknowledges everything, after `change` has spoiled the results."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = json.loads(await read_request(reader))
        results: Results = [
            {"eventId": item["eventId"], "outcome": "acknowledged", "receipt": "{}", "ack": "{}"}
            for item in request["deliveries"]
        ]
        body = {"protocol": "seapost.delivery.v1", "results": change(results)}
        writer.write(response(json.dumps(body).encode()))
        await writer.drain()

    return script


MISFITS: dict[str, Change] = {
    "one missing": lambda results: results[:1],
    "one too many": lambda results: [*results, results[0]],
    "another order": lambda results: results[::-1],
    "another event": lambda results: [results[0], results[0]],
    "an unknown field": lambda results: [results[0], {**results[1], "more": 1}],
    "an unknown outcome": lambda results: [results[0], {**results[1], "outcome": "done"}],
    "a receipt that is no text": lambda results: [results[0], {**results[1], "receipt": {}}],
    "null for a receipt": lambda results: [results[0], {**results[1], "receipt": None}],
}


@pytest.mark.req("DLV-06", "NEG-08")
@pytest.mark.parametrize("misfit", MISFITS)
async def test_results_must_fit_the_request(misfit: str) -> None:
    """Results that are not one for each delivery, in order and closed, are no answer for any of them."""
    assert await call_peer(answering(MISFITS[misfit])) == [("ack_invalid", False, None)] * 2


@pytest.mark.req("DLV-03", "REF-07")
async def test_code_of_the_wrong_kind_accuses_only_its_own_delivery() -> None:
    """A result whose code is unknown or of the other kind is ack_invalid; its neighbour's result stands."""

    def change(results: Results) -> Results:
        refused = {"eventId": results[1]["eventId"], "outcome": "non_retryable", "code": "timeout"}
        return [results[0], refused]

    async with peer(answering(change)) as url:
        first, second = await call(url)
    assert first == Acknowledged(b"{}", b"{}")
    assert second == Retryable(ErrorCode.ACK_INVALID)


@pytest.mark.req("REF-07", "SEC-17")
async def test_reference_and_wait_of_a_peer_are_cleaned() -> None:
    """A reference that has not the form of one is dropped, and an impossible wait is ignored."""

    def change(results: Results) -> Results:
        return [
            {
                "eventId": results[0]["eventId"],
                "outcome": "retryable",
                "code": "timeout",
                "reference": "<script>",
                "retryAfterSeconds": -3,
            },
            {
                "eventId": results[1]["eventId"],
                "outcome": "non_retryable",
                "code": "schema_invalid",
                "reference": "abc-1",
            },
        ]

    async with peer(answering(change)) as url:
        first, second = await call(url)
    assert first == Retryable(ErrorCode.TIMEOUT, None, None)
    assert second == NonRetryable(ErrorCode.SCHEMA_INVALID, "abc-1")


@pytest.mark.req("DLV-03")
async def test_large_batches_go_out_in_parts() -> None:
    """A batch above the byte limit is sent in several requests, and every result finds its claim."""
    sizes: list[int] = []

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            request = json.loads(await read_request(reader))
            sizes.append(len(request["deliveries"]))
            results = [
                {"eventId": item["eventId"], "outcome": "acknowledged", "receipt": item["eventId"], "ack": "{}"}
                for item in request["deliveries"]
            ]
            body = {"protocol": "seapost.delivery.v1", "results": results}
            writer.write(response(json.dumps(body).encode()))
            await writer.drain()

    claims = [claim() for _ in range(5)]
    limits = HttpLimits(envelope_bytes_max=2 * len(claims[0].envelope) + 10)
    async with peer(script) as url, HttpTransport(url, policy=LOOPBACK, limits=limits) as transport:
        outcomes = await transport.deliver(claims, timeout_seconds=20)
    assert sizes == [2, 2, 1]
    assert [item.receipt.decode() for item in outcomes if isinstance(item, Acknowledged)] == [
        str(held.fence.event_id) for held in claims
    ]


@pytest.mark.req("SET-40", "DLV-07")
async def test_claims_of_two_consumers_are_never_mixed() -> None:
    """Claims whose frozen members name different consumers travel in requests of their own."""
    names: list[str] = []

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            request = json.loads(await read_request(reader))
            names.append(request["consumerName"])
            writer.write(response(b"{}"))
            await writer.drain()

    claims = [claim(consumer_name="old"), claim(consumer_name="new"), claim(consumer_name="old")]
    async with peer(script) as url, HttpTransport(url, policy=LOOPBACK) as transport:
        outcomes = await transport.deliver(claims, timeout_seconds=20)
    assert names == ["old", "new"]
    assert len(outcomes) == 3
