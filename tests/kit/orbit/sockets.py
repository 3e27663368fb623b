"""WebSocket servers inside the test's own event loop, and clients that misbehave below the level of frames."""

from __future__ import annotations

import asyncio
import base64
import os
import socket
import struct
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp

from orbit.server.ws.options import ws_options
from orbit.wire.frames import PROTOCOL

SECONDS_MAX: Final = 20.0


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


@dataclass(frozen=True, slots=True)
class Listening:
    """A server that runs in this loop.

    Attributes:
        url: base address for WebSocket clients.
    """

    url: str
    server: uvicorn.Server

    @property
    def connections(self) -> int:
        """How many sockets are open."""
        return len(self.server.server_state.connections)

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.url.rpartition(":")[2])


@asynccontextmanager
async def listening(
    app: ASGIApp, *, ping_interval: float = 20.0, pong_timeout: float = 20.0, send_buffer: int | None = None
) -> AsyncGenerator[Listening]:
    """Serve an application as `orbit serve` does, until the block ends.

    Args:
        app: the application.
        ping_interval: seconds.
        pong_timeout: seconds.
        send_buffer: bytes of the kernel's buffer for each connection, for clients that do not read.
    """
    with socket.create_server(("127.0.0.1", 0)) as bound:
        if send_buffer is not None:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
        config = uvicorn.Config(
            app,
            lifespan="off",
            log_config=None,
            timeout_graceful_shutdown=10,
            **ws_options(ping_interval=ping_interval, pong_timeout=pong_timeout),
        )
        server = _Server(config)
        running = asyncio.create_task(server.serve([bound]))
        try:
            yield Listening(f"ws://127.0.0.1:{bound.getsockname()[1]}", server)
        finally:
            server.should_exit = True
            await running


@dataclass(slots=True)
class RawSocket:
    """A WebSocket by hand: sends what it is told and answers nothing by itself.

    Attributes:
        status: of the handshake.
    """

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    status: int

    async def send_frame(self, opcode: int, payload: bytes, *, length: int | None = None) -> None:
        """Send one masked frame; `length` is announced instead of the true one."""
        size = len(payload) if length is None else length
        if size < 126:
            head = struct.pack("!BB", 0x80 | opcode, 0x80 | size)
        elif size < 1 << 16:
            head = struct.pack("!BBH", 0x80 | opcode, 0x80 | 126, size)
        else:
            head = struct.pack("!BBQ", 0x80 | opcode, 0x80 | 127, size)
        self.writer.write(head + b"\0\0\0\0" + payload)
        await self.writer.drain()

    async def read_frame(self) -> tuple[int, bytes]:
        """The next frame of the server: opcode and payload."""
        async with asyncio.timeout(SECONDS_MAX):
            first, second = await self.reader.readexactly(2)
            size = second & 127
            if size == 126:
                (size,) = struct.unpack("!H", await self.reader.readexactly(2))
            elif size == 127:
                (size,) = struct.unpack("!Q", await self.reader.readexactly(8))
            return first & 15, await self.reader.readexactly(size)

    async def close_code(self) -> int:
        """Read on to the close frame; gives its code."""
        while True:
            opcode, payload = await self.read_frame()
            if opcode == 8:
                return int.from_bytes(payload[:2])

    async def ended(self) -> None:
        """Wait for the end of what the server sends, or for its reset."""
        async with asyncio.timeout(SECONDS_MAX):
            try:
                while await self.reader.read(65_536):
                    pass
            except ConnectionError:
                return

    def abort(self) -> None:
        """Break the connection."""
        self.writer.transport.abort()


@asynccontextmanager
async def raw_socket(url: str, token: str = "", *, receive_buffer: int | None = None) -> AsyncGenerator[RawSocket]:
    """A handshake at `url` (`ws://host:port/path`); `receive_buffer` bytes of the kernel's buffer, for slow readers."""
    address, _, path = url.removeprefix("ws://").partition("/")
    host, _, port = address.partition(":")
    plain = socket.socket()
    if receive_buffer is not None:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    plain.settimeout(0)
    await asyncio.get_running_loop().sock_connect(plain, (host, int(port)))
    limits: dict[str, Any] = {} if receive_buffer is None else {"limit": receive_buffer}
    reader, writer = await asyncio.open_connection(sock=plain, **limits)
    key = base64.b64encode(os.urandom(16)).decode()
    writer.write(
        f"GET /{path} HTTP/1.1\r\nHost: {address}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: {PROTOCOL}\r\n"
        f"Authorization: Bearer {token}\r\n\r\n".encode()
    )
    head = await reader.readuntil(b"\r\n\r\n")
    raw = RawSocket(reader, writer, int(head.split()[1]))
    try:
        yield raw
    finally:
        raw.abort()
