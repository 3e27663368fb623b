"""uvicorn's WebSocket protocol with the close codes and the manners of `orbit.events.v1`.

| What | Here | Without it |
|---|---|---|
| no pong | 4408 (WSS-12) | 1011 |
| stop of the server | the session says why and closes with 1001; after 10 s it is cut (WSS-14) | 1012 at once |
| frame too large, broken frame | the close frame arrives, then the connection ends | a reset may overtake it |
| a client that never reads | the connection is cut; nothing waits for its buffer | it is kept for ever |
| address, frames | no query string and no frame reaches a log | both can |

The application is told of a stop by one more message, `websocket.shutdown`, and may send several frames in one
message, `orbit.send`; the scope names both under `extensions`, so that the endpoint also runs elsewhere.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, cast

from typing_extensions import override
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Close
from websockets.http11 import Request
from websockets.protocol import OPEN

from orbit.model.limits import SHUTDOWN_SECONDS

BATCH: Final = "orbit.batch"
"""Extension: the scope names it when `orbit.send` and `websocket.shutdown` are known."""
NO_PONG: Final = 4408
LINGER_SECONDS: Final = 2.0
"""How long a connection may stay after its last frame, for the client to read it."""


class EventSocketProtocol(WebSocketsSansIOProtocol):
    """One WebSocket connection."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conn.debug = False  # it would write frames, and secrets with them, to the log
        self._cutting: asyncio.TimerHandle | None = None

    @override
    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if not self.handshake_complete:  # the application starts with the next turn of the loop
            self.scope["query_string"] = b""
            self.scope.setdefault("extensions", {})[BATCH] = {}

    @override
    def data_received(self, data: bytes) -> None:
        if self.conn.parser_exc is None:
            super().data_received(data)

    @override
    def handle_parser_exception(self) -> None:
        self._tell_disconnect(cast("Close", self.conn.close_sent))
        self._end_writing()

    @override
    def keepalive_timeout(self) -> None:
        self.pong_timer = None
        self.pending_ping_payload = None
        if self.close_sent or self.transport.is_closing():
            return
        self.conn.fail(NO_PONG, "no pong")
        self._tell_disconnect(Close(NO_PONG, "no pong"))
        self._end_writing()

    @override
    def shutdown(self) -> None:
        if not self.handshake_complete or self.close_sent or self.conn.state is not OPEN:
            super().shutdown()
            return
        self.queue.put_nowait(cast("Any", {"type": "websocket.shutdown"}))
        self._cut_after(SHUTDOWN_SECONDS)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if self._cutting is not None:
            self._cutting.cancel()
        super().connection_lost(exc)

    @override
    async def run_asgi(self) -> None:
        try:
            await super().run_asgi()
        finally:
            self._cut_after(LINGER_SECONDS)

    @override
    async def send(self, message: Any) -> None:
        if message["type"] == "orbit.send":
            await self._send_texts(message["texts"])
        else:
            await super().send(message)

    async def _send_texts(self, texts: list[str]) -> None:
        await self.writable.wait()
        if self.disconnected or self.close_sent or self.conn.state is not OPEN:
            raise ClientDisconnected
        for text in texts:
            self.conn.send_text(text.encode())
        self.transport.write(b"".join(self.conn.data_to_send()))

    def _tell_disconnect(self, close: Close) -> None:
        self.queue.put_nowait(cast("Any", {"type": "websocket.disconnect", "code": close.code, "reason": close.reason}))

    def _end_writing(self) -> None:
        """Send what is left and no more, and read on until the client ends: unread bytes would become a reset."""
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        if self.transport.can_write_eof():
            self.transport.write_eof()
        if self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()
        self._cut_after(LINGER_SECONDS)
        self.close_timer = self.loop.call_later(LINGER_SECONDS, self.transport.abort)

    def _cut_after(self, seconds: float) -> None:
        if self._cutting is not None:
            self._cutting.cancel()
        if not self.disconnected:
            self._cutting = self.loop.call_later(seconds, self.transport.abort)
