"""A client that does what it is told, right or wrong, and holds every frame of the server against the schema."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from orbit.model.limits import SERVER_FRAME_BYTES_MAX
from orbit.wire.frames import PROTOCOL
from tests.kit.orbit.frames import is_valid, parsed

SECONDS_MAX: Final = 20.0
SERVER_KINDS: Final = ("hello_ok", "delivery", "pull_done", "ack_result", "error", "pong")

Frame = dict[str, Any]


class EventClient:
    """One connection.

    Attributes:
        sent: every frame sent, as text.
        received: every frame received, as text.
        hello: the server's answer to `hello`.
    """

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.sent: list[str] = []
        self.received: list[str] = []
        self.hello: Frame = {}
        self._number = 0

    def request_id(self) -> str:
        """A new request id."""
        self._number += 1
        return f"r{self._number}"

    async def send_text(self, *texts: str) -> None:
        """Send texts as they are."""
        for text in texts:
            self.sent.append(text)
            await self.connection.send(text)

    async def send(self, kind: str, **members: object) -> str:
        """Send a frame with a new request id; gives that id."""
        frame = {"type": kind, "request_id": self.request_id()} | members
        await self.send_text(json.dumps(frame))
        return str(frame["request_id"])

    async def receive(self) -> Frame:
        """The next frame, which must be valid."""
        async with asyncio.timeout(SECONDS_MAX):
            text = await self.connection.recv()
        assert isinstance(text, str), "a binary frame of the server"
        self.received.append(text)
        frame: Frame = parsed(text)
        assert is_valid(frame, *SERVER_KINDS), f"a frame breaks the schema: {frame.get('type')}"
        return frame

    async def expect(self, kind: str, **members: object) -> Frame:
        """The next frame: of this kind, with these members."""
        frame = await self.receive()
        assert frame["type"] == kind, f"expected {kind}, got {frame}"
        assert frame | members == frame, f"expected {members} in {frame}"
        return frame

    async def greet(self, subscription_id: str, capacity: int = 32, **members: object) -> Frame:
        """Say `hello` and take the answer."""
        request_id = await self.send("hello", subscription_id=subscription_id, capacity=capacity, **members)
        self.hello = await self.expect("hello_ok", request_id=request_id)
        return self.hello

    async def pull(self, most: int = 32, wait_ms: int | None = None) -> tuple[list[Frame], Frame]:
        """One whole pull: its deliveries and its end."""
        waiting = {} if wait_ms is None else {"wait_ms": wait_ms}
        return await self.pulled(await self.send("pull", max=most, **waiting))

    async def pulled(self, request_id: str) -> tuple[list[Frame], Frame]:
        """What a pull that was sent brings."""
        deliveries: list[Frame] = []
        while (frame := await self.receive())["type"] == "delivery":
            assert frame["pull_request_id"] == request_id
            deliveries.append(frame)
        assert frame["type"] == "pull_done", f"expected the end of a pull, got {frame}"
        assert (frame["request_id"], frame["delivered"]) == (request_id, len(deliveries))
        return deliveries, frame

    async def gather(self, count: int) -> list[Frame]:
        """Pull until there are so many deliveries."""
        found: list[Frame] = []
        while len(found) < count:
            deliveries, _ = await self.pull(min(32, count - len(found)), 5000)
            found += deliveries
        return found

    async def ack(self, delivery: Frame, **members: object) -> Frame:
        """Give a proof back and take the answer."""
        request_id = await self.send_ack(delivery, **members)
        return await self.expect("ack_result", request_id=request_id)

    async def send_ack(self, delivery: Frame, **members: object) -> str:
        """Give a proof back; gives the request id."""
        proof = {name: delivery[name] for name in ("delivery_id", "lease_epoch", "lease_secret")}
        return await self.send("ack", **(proof | members))

    async def closed(self, code: int, *, error: str | None = None, request_id: str | None = None) -> None:
        """The server says why, if it must, and closes with a code; nothing else comes."""
        if error is not None:
            await self.expect("error", code=error, fatal=True, request_id=request_id)
        try:
            frame = await self.receive()
        except ConnectionClosed:
            pass
        else:
            raise AssertionError(f"expected the end, got {frame}")
        assert self.connection.close_code == code, f"closed with {self.connection.close_code}, not {code}"

    async def close(self) -> None:
        """Leave."""
        await self.connection.close()


@asynccontextmanager
async def event_client(
    url: str, token: str | None, *, subprotocols: Sequence[str] | None = (PROTOCOL,), **headers: str
) -> AsyncGenerator[EventClient]:
    """Connect to an endpoint; underscores in header names stand for hyphens."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    if token is not None:
        given["Authorization"] = f"Bearer {token}"
    async with connect(
        url,
        subprotocols=subprotocols,  # pyright: ignore[reportArgumentType] - a NewType of str
        additional_headers=given,
        compression="deflate",
        max_size=SERVER_FRAME_BYTES_MAX,
        open_timeout=SECONDS_MAX,
        close_timeout=SECONDS_MAX,
        ping_interval=None,
        proxy=None,
    ) as connection:
        yield EventClient(connection)


async def refused(url: str, token: str | None, **options: Any) -> tuple[int, Frame, dict[str, str]]:
    """A handshake that must be refused: status, problem and headers."""
    try:
        async with event_client(url, token, **options):
            raise AssertionError("the handshake was accepted")
    except InvalidStatus as refusal:
        response = refusal.response
        return (
            response.status_code,
            json.loads(response.body or b"{}"),
            {k.lower(): v for k, v in response.headers.items()},
        )
