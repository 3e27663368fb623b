"""HTTP peers for tests: a real server around an application, and peers that answer with scripted bytes."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Final

import uvicorn
from fastapi import FastAPI

PORTS: Final = (15_000, 30_000)
"""Linux gives outgoing connections ports from 32768, others from 49152: one of those may be gone before it is used."""

Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class _Server(uvicorn.Server):
    """A server inside the test's own event loop; signals stay with pytest."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


@asynccontextmanager
async def serving(app: FastAPI) -> AsyncGenerator[str]:
    """Serve an ASGI application on a loopback port; gives its base URL."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_config=None, ws="none", timeout_graceful_shutdown=5, timeout_keep_alive=30)
    server = _Server(config)
    task = asyncio.create_task(server.serve([listening]))
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        await task
        listening.close()


@asynccontextmanager
async def peer(script: Script) -> AsyncGenerator[str]:
    """Listen on a loopback port and let the script answer each connection; gives the base URL."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await script(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


def free_port() -> int:
    """A loopback port on which nobody listens, outside of the range that outgoing connections are given theirs from."""
    rng = random.SystemRandom()
    while True:
        port = rng.randrange(*PORTS)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


async def read_request(reader: asyncio.StreamReader) -> bytes:
    """Read one request and return its body."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return await reader.readexactly(length)


def response(
    body: bytes, *, status: str = "200 OK", headers: str = "", content_type: str = "application/json"
) -> bytes:
    """The bytes of a complete response."""
    head = f"HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {len(body)}\r\n{headers}\r\n"
    return head.encode() + body


def always(answer: bytes) -> Script:
    """Read the request, send this, close."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(answer)
        await writer.drain()

    return script
