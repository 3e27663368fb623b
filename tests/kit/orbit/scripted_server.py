"""A WebSocket server that plays a script: what clients of `orbit.events.v1` are held against.

A script is a coroutine that gets a `Peer`: it expects frames, sends good or bad ones, closes with a code or cuts
the connection. One script serves each connection in turn; the last one serves all that follow. Every frame that a
client sends is held against the published schema.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, Final

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from orbit.model.limits import SERVER_FRAME_BYTES_MAX
from orbit.wire.frames import PROTOCOL
from tests.kit.orbit.frames import is_valid

SECONDS_MAX: Final = 10.0
"""A script that waits longer for a frame fails."""

PROOF: Final = "Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmE"
AT: Final = "2026-01-05T08:30:30.123456Z"

Script = Callable[["Peer"], Awaitable[None]]
Frame = dict[str, Any]


class Peer:
    """The server's side of one connection.

    Attributes:
        token: what the client sent as bearer token.
        received: every frame of the client, in order.
    """

    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection
        request = connection.request
        self.token = (request.headers.get("Authorization", "") if request else "").removeprefix("Bearer ")
        self.received: list[Frame] = []

    async def receive(self) -> Frame:
        """The next frame; it must be valid."""
        async with asyncio.timeout(SECONDS_MAX):
            text = await self._connection.recv()
        assert isinstance(text, str), "a binary frame"
        frame: Frame = json.loads(text)
        assert is_valid(frame, "hello", "pull", "ack", "ping"), f"breaks the schema: {text}"
        self.received.append(frame)
        return frame

    async def expect(self, kind: str, **members: object) -> Frame:
        """The next frame, which must be of this kind and have these members; a ping is answered in between."""
        while (frame := await self.receive())["type"] == "ping" and kind != "ping":
            await self.send(pong(frame["request_id"]))
        assert frame["type"] == kind, f"expected {kind}, got {frame['type']}"
        assert frame | members == frame, f"expected {members} in {frame}"
        return frame

    async def greet(self, **members: object) -> Frame:
        """Expect `hello` and answer it."""
        hello = await self.expect("hello")
        await self.send(hello_ok(hello, **members))
        return hello

    async def send(self, *frames: Frame | str) -> None:
        """Send frames; a text goes out as it is, so that it may be bad."""
        for frame in frames:
            await self._connection.send(frame if isinstance(frame, str) else json.dumps(frame))

    async def send_binary(self, data: bytes) -> None:
        """Send what no client should get."""
        await self._connection.send(data)

    async def close(self, code: int, reason: str = "") -> None:
        """Close with a code."""
        await self._connection.close(code, reason)

    def cut(self) -> None:
        """Break the connection without a word."""
        self._connection.transport.abort()

    async def gone(self) -> int | None:
        """Wait until the client has closed; gives its close code."""
        async with asyncio.timeout(SECONDS_MAX):
            await self._connection.wait_closed()
        return self._connection.close_code


class ScriptedServer:
    """Plays scripts and keeps what happened.

    Attributes:
        url: of the endpoint.
        peers: one for each connection, in order.
        refusals: problems to answer the next handshakes with: status and code.
    """

    def __init__(self, scripts: Sequence[Script]) -> None:
        self._scripts = list(scripts)
        self._failures: list[BaseException] = []
        self.url = ""
        self.peers: list[Peer] = []
        self.refusals: list[tuple[int, str]] = []

    def raise_failures(self) -> None:
        """Raise the first failure of a script."""
        if self._failures:
            raise self._failures[0]

    async def play(self, connection: ServerConnection) -> None:
        """Serve one connection by its script."""
        peer = Peer(connection)
        self.peers.append(peer)
        script = self._scripts[min(len(self.peers), len(self._scripts)) - 1]
        try:
            await script(peer)
        except ConnectionClosed:
            pass  # the client left; whether it should have is for the test to say
        except (AssertionError, TimeoutError) as failure:
            self._failures.append(failure)
            await connection.close(4400, "script failed")

    def refuse(self, _connection: ServerConnection, _request: Request) -> Response | None:
        """Refuse the handshake while there are refusals to give."""
        if not self.refusals:
            return None
        status, code = self.refusals.pop(0)
        body = json.dumps({"type": f"urn:orbit:problem:{code}", "title": code, "status": status, "detail": code,
                           "instance": "/v1/events/connect", "code": code, "request_id": "req_1"}).encode()  # fmt: skip
        headers = Headers({"Content-Type": "application/problem+json", "Content-Length": str(len(body))})
        return Response(status, HTTPStatus(status).phrase, headers, body)


@asynccontextmanager
async def scripted_server(*scripts: Script, refusals: Sequence[tuple[int, str]] = ()) -> AsyncGenerator[ScriptedServer]:
    """Run a server that plays these scripts; a script that failed fails the test at the end."""
    scripted = ScriptedServer(scripts)
    scripted.refusals = list(refusals)
    server: Server = await serve(
        scripted.play,
        "127.0.0.1",
        0,
        subprotocols=[PROTOCOL],  # pyright: ignore[reportArgumentType] - a NewType of str
        process_request=scripted.refuse,
        compression=None,
        max_size=SERVER_FRAME_BYTES_MAX,
        ping_interval=None,
    )
    async with server:
        port = next(iter(server.sockets)).getsockname()[1]
        scripted.url = f"ws://127.0.0.1:{port}/v1/events/connect"
        yield scripted
    scripted.raise_failures()


def hello_ok(hello: Frame, **members: object) -> Frame:
    """The good answer to a `hello`."""
    return {
        "type": "hello_ok",
        "request_id": hello["request_id"],
        "protocol": PROTOCOL,
        "connection_id": "conn_1",
        "subscription_id": hello["subscription_id"],
        "subscription_status": "ACTIVE",
        "subscription_revision": 1,
        "queue_id": "q_1",
        "types": ["task.succeeded", "task.failed", "task.cancelled", "task.needs_review"],
        "capacity": hello["capacity"],
        "lease_seconds": 30,
        "server_time": AT,
    } | members


def delivery(pull: Frame, sequence: int, *, epoch: int = 1, result: str = "null", **members: object) -> str:
    """A delivery frame as text; `result` goes in as it is."""
    event_type = str(members.get("event_type", "task.succeeded"))
    snapshot = (
        f'{{"schema_version":1,"task_id":"task_{sequence}","queue_id":"q_1","state":"{event_type[5:]}","revision":3,'
        f'"effect_uncertain":false,"current_attempt_id":"att_{sequence}","result":{result}}}'
    )
    head = {
        "type": "delivery",
        "pull_request_id": pull["request_id"],
        "subscription_id": "sub_1",
        "delivery_id": f"dlv_{sequence}",
        "event_id": f"evt_{sequence}",
        "event_type": event_type,
        "sequence": sequence,
        "lease_epoch": epoch,
        "lease_secret": PROOF,
        "lease_expires_at": AT,
        "attempts": epoch,
        "attempt_budget": 20,
    } | members
    return json.dumps(head)[:-1] + f',"snapshot":{snapshot}}}'


def pull_done(pull: Frame, delivered: int, reason: str | None = None, **members: object) -> Frame:
    """The end of a pull."""
    return {
        "type": "pull_done",
        "request_id": pull["request_id"],
        "delivered": delivered,
        "reason": reason or ("DELIVERED" if delivered else "EMPTY"),
        "pending_count": delivered,
        "max_pending": 100,
    } | members


def acked(ack: Frame, *, duplicate: bool = False) -> Frame:
    """The ACK counts."""
    return {
        "type": "ack_result",
        "request_id": ack["request_id"],
        "delivery_id": ack["delivery_id"],
        "outcome": "ACKED",
        "acked_at": AT,
        "duplicate": duplicate,
        "code": None,
    }


def rejected(ack: Frame, code: str = "DELIVERY_LEASE_LOST") -> Frame:
    """The ACK does not count."""
    return acked(ack) | {"outcome": "REJECTED", "acked_at": None, "code": code}


def error(code: str, *, fatal: bool, request_id: str | None = None, **members: object) -> Frame:
    """An `error` frame."""
    return {"type": "error", "request_id": request_id, "code": code, "message": code, "fatal": fatal} | members


def pong(request_id: str) -> Frame:
    """The answer to a `ping`."""
    return {"type": "pong", "request_id": request_id, "server_time": AT}
