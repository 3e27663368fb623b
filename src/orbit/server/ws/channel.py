"""A WebSocket as the session sees it: texts in, texts out, one end; every write has a time limit.

Works on any ASGI server. Where the server offers `orbit.batch` (`protocol.py`), texts that belong together leave in
one write, and a stop of the server is heard.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from orbit.server.ws.protocol import BATCH
from orbit.wire.frames import PROTOCOL

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

BATCH_CHARACTERS: Final = 262_144
"""A write of several frames is cut near this size, so that a client that reads slowly fills one of them, not all."""
REASON_BYTES_MAX: Final = 123
"""What a close frame has room for."""


class Gone(Exception):
    """The client has left, or took nothing for `write_seconds`: nothing can be sent any more."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What is no text frame.

    Attributes:
        what: the client has left, it sent a binary frame, or the server is to stop.
    """

    what: Literal["left", "binary", "stop"]


class Channel:
    """Both directions of one connection. Several coroutines may send; one receives."""

    def __init__(self, scope: Message, receive: Receive, send: Send, *, write_seconds: float) -> None:
        self._receive = receive
        self._send = send
        self._write_seconds = write_seconds
        self._batches = BATCH in scope.get("extensions", {})
        self._gone = False

    async def accept(self) -> None:
        """Answer the handshake."""
        message = await self._receive()
        if message["type"] != "websocket.connect":
            self._gone = True
            raise Gone
        await self._deliver({"type": "websocket.accept", "subprotocol": PROTOCOL})

    async def receive(self) -> str | Heard:
        """The next text frame, or what came instead."""
        message = await self._receive()
        match message["type"]:
            case "websocket.receive":
                text = message.get("text")
                return Heard("binary") if text is None else text
            case "websocket.shutdown":
                return Heard("stop")
            case _:
                self._gone = True
                return Heard("left")

    async def send(self, texts: Iterable[str]) -> None:
        """Send text frames in this order.

        Raises:
            Gone: the client has left or does not read.
        """
        if self._batches:
            batch: list[str] = []
            size = 0
            for text in texts:
                batch.append(text)
                size += len(text)
                if size >= BATCH_CHARACTERS:
                    await self._deliver({"type": "orbit.send", "texts": batch})
                    batch, size = [], 0
            if batch:
                await self._deliver({"type": "orbit.send", "texts": batch})
        else:
            for text in texts:
                await self._deliver({"type": "websocket.send", "text": text})

    async def close(self, code: int, reason: str) -> None:
        """Close with a code; a client that has left is not missed."""
        try:
            await self._deliver({"type": "websocket.close", "code": code, "reason": _short(reason)})
        except Gone:
            return

    async def _deliver(self, message: Message) -> None:
        if self._gone:
            raise Gone
        try:
            async with asyncio.timeout(self._write_seconds):
                await self._send(message)
        except OSError as error:  # TimeoutError is one too
            self._gone = True
            raise Gone from error


def _short(reason: str) -> str:
    return reason.encode()[:REASON_BYTES_MAX].decode(errors="ignore")
