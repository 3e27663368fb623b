"""A real HTTP server around an ASGI application, which listens before anybody can ask."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

import uvicorn

if TYPE_CHECKING:
    from starlette.types import ASGIApp


class _Server(uvicorn.Server):
    """A server inside the test's own event loop; signals stay with pytest."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


@asynccontextmanager
async def listening_at(app: ASGIApp) -> AsyncGenerator[str]:
    """Serve an application on a loopback port; gives its base URL."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        config = uvicorn.Config(app, lifespan="off", log_config=None, ws="none", timeout_graceful_shutdown=5)
        server = _Server(config)
        task = asyncio.create_task(server.serve([listening]))
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        await task
