"""The server's process: its socket, its loops, and how it stops (OPS-03, WSS-14).

States: starting → serving → stopping (no new connection or request; running requests and acknowledgements end) →
stopped. After 10 s what is still open is cut; a second order cuts at once. What is cut leaves nothing half done: every
change is one transaction, and a client repeats with its key or its proof.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

import uvicorn
from fastapi import FastAPI

from orbit.model.limits import SHUTDOWN_SECONDS
from orbit.server.catalog import LogEvent
from orbit.server.http.app import create_app
from orbit.server.http.protocol import ProblemProtocol
from orbit.server.recovery import Recovery
from orbit.server.services import POOL_SIZE_DEFAULT, Services, open_services
from orbit.server.ws.endpoint import add_event_endpoint
from orbit.server.ws.options import ws_options
from orbit.tasks.fence import CommitMode
from seapost.model.errors import InvalidSetting
from seapost.telemetry.logging import get_logger

BACKLOG: Final = 2048
KEEP_ALIVE_SECONDS: Final = 75

_log: Final = get_logger("orbit.server")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """How a server runs.

    Attributes:
        port: 0 takes a free one.
        pool_size: connections to the database at most.
        role: role that every session of the database takes on.
        commit_mode: whether results wait for the disk one by one or together.
        access_log: whether each request is one log record.
        recovers: whether this process recovers lost attempts every 10 s.
        allowed_origins: browser origins that may open the event connection besides the host itself.
    """

    dsn: str
    host: str = "127.0.0.1"
    port: int = 8080
    pool_size: int = POOL_SIZE_DEFAULT
    role: str | None = None
    commit_mode: CommitMode = CommitMode.PLAIN
    access_log: bool = True
    recovers: bool = True
    allowed_origins: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """The connection string stays out of sight."""
        return f"ServerSettings(host={self.host!r}, port={self.port!r})"


class OrbitServer:
    """One server; `run` once. `started` is set when it listens, at `address`."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._server: _Server | None = None
        self._orders = 0
        self.started = asyncio.Event()
        self.address = ""

    def stop(self) -> None:
        """The first order ends in order, the second cuts what runs; from the loop's thread."""
        self._orders += 1
        if self._server is not None:
            self._server.order(self._orders)

    async def run(self) -> None:
        """Serve until told to stop.

        Raises:
            InvalidSetting: the address cannot be listened on.
        """
        settings = self._settings
        with open_listener(settings) as listening:
            async with open_services(
                settings.dsn, pool_size=settings.pool_size, role=settings.role, commit_mode=settings.commit_mode
            ) as services:
                app = create_app(services, access_log=settings.access_log)
                add_event_endpoint(app, services, allowed_origins=settings.allowed_origins)
                self.address = "http://{}:{}".format(*listening.getsockname()[:2])
                self._server = _Server(app, services, self.started)
                if self._orders:
                    self._server.order(self._orders)
                _log.info(LogEvent.SERVER_STARTED, address=self.address)
                await self._serve(listening, services)
        _log.info(LogEvent.SERVER_STOPPED, address=self.address)

    async def _serve(self, listening: socket.socket, services: Services) -> None:
        assert self._server is not None  # noqa: S101 - `run` has just made it
        recovery = asyncio.create_task(Recovery(services.tasks.recover).run()) if self._settings.recovers else None
        try:
            await self._server.serve(sockets=[listening])
        finally:
            if recovery is not None:
                _ = recovery.cancel()
                with suppress(asyncio.CancelledError):
                    await recovery


class _Server(uvicorn.Server):
    """Leaves the signals to the caller, and tells when it listens."""

    def __init__(self, app: FastAPI, services: Services, started: asyncio.Event) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=ProblemProtocol,
                access_log=False,
                lifespan="off",
                log_config=None,
                server_header=False,
                date_header=True,
                backlog=BACKLOG,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=round(SHUTDOWN_SECONDS),
                **ws_options(),
            )
        )
        self._services = services
        self._listening = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen."""
        await super().startup(sockets)
        self._listening.set()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Do not."""
        yield

    def order(self, number: int) -> None:
        """The order to stop has come for the `number`-th time."""
        if number == 1:
            _log.info(LogEvent.SERVER_STOPPING)
        self._services.stopping = True
        self.force_exit = number > 1
        self.should_exit = True


@contextmanager
def open_listener(settings: ServerSettings) -> Generator[socket.socket]:
    """The socket that the server listens on, while the block runs; connections that it accepts are like it."""
    try:
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        listening = socket.create_server((settings.host, settings.port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise InvalidSetting(f"port: {settings.host}:{settings.port} cannot be listened on: {error.strerror}") from None
    # asyncio does this itself only where a socket names its protocol; else small frames wait 40 ms for a delayed ACK
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with listening:
        yield listening
