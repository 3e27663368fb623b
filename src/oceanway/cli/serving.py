"""The process of one owner: the receiver of its consumers and its reads, on one port."""

from __future__ import annotations

import asyncio
import gc
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from threading import Event
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import uvicorn

from oceanway.cli.composition import events_of, inboxes_of, register_reads, release
from oceanway.cli.starting import wait_for_release
from oceanway.installation.keys import load_signer, load_verifier
from oceanway.installation.layout import Kind, process_of
from oceanway.reads.endpoint import ReadsEndpoint
from oceanway.reads.http import HttpReader
from oceanway.reads.server import Serving
from seapost.cli.signals import StopOrders, stop_orders
from seapost.database.pool import SyncPool, open_pool, open_sync_pool
from seapost.inbox.receive import Receiving, needs_sync_pool
from seapost.model.errors import InvalidSetting

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from oceanway.installation.layout import Process
    from oceanway.installation.settings import Settings
    from seapost.inbox.inbox import Inbox
    from seapost.transport.token import TokenSigner

BACKLOG: Final = 2_048


class OwnerApplication:
    """Sends each request to the reads or to the receiver of deliveries; health belongs to the latter."""

    def __init__(self, reads: ReadsEndpoint, receiver: ASGIApp) -> None:
        self._reads = reads
        self._receiver = receiver

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, as ASGI has it."""
        is_read = scope["type"] == "http" and self._reads.serves(scope["path"])
        await (self._reads if is_read else self._receiver)(scope, receive, send)


class _Server(uvicorn.Server):
    """Leaves the signals to us."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


async def run(settings: Settings, owner: str, *, wait_seconds: float) -> dict[str, object]:
    """Serve until told to stop; the report."""
    process = process_of(Kind.SERVE, owner)
    report: dict[str, object] = {"workload": process.workload, "address": settings.address(owner), "stopped": True}
    with stop_orders() as orders:
        try:
            await _serve(settings, process, wait_seconds, orders)
        except asyncio.CancelledError:
            if not orders.count:
                raise
    return report


async def _serve(settings: Settings, process: Process, wait_seconds: float, orders: StopOrders) -> None:
    dsn = settings.process_dsn(process)
    signer = load_signer(settings.trust.folder, process.workload, issuer=settings.trust.issuer)
    written = events_of(process.database)
    waiting = Event()
    try:
        _ = await asyncio.to_thread(wait_for_release, dsn, release(), written, wait_seconds=wait_seconds, stop=waiting)
    finally:
        waiting.set()
    async with _application(settings, process, dsn, signer) as application:
        with _listening(settings.address(process.subject)) as listening:
            server = _Server(
                uvicorn.Config(
                    application,
                    access_log=False,
                    lifespan="off",
                    log_config=None,
                    server_header=False,
                    timeout_graceful_shutdown=max(1, round(settings.serve.drain_seconds)),
                )
            )
            orders.passed_to(lambda: _stop(server))
            gc.freeze()  # what is loaded stays to the end, so that no look through it stops the process
            await server.serve(sockets=[listening])


@asynccontextmanager
async def _application(
    settings: Settings, process: Process, dsn: str, signer: TokenSigner
) -> AsyncGenerator[OwnerApplication]:
    """The owner's application, with its pools, its reader and its consumers open."""
    trust, size = settings.trust, settings.serve.pool_size
    async with AsyncExitStack() as stack:
        reader = stack.enter_context(HttpReader(settings.owners, signer=signer))
        pool: SyncPool = stack.enter_context(
            open_sync_pool(
                dsn, part=f"reads-{process.subject}", size_max=size, role=f"oceanway_{process.subject}_reader"
            )
        )
        serving = Serving(process.subject, verifier=load_verifier(trust.folder, issuer=trust.issuer))
        register_reads(serving, pool)
        endpoint = ReadsEndpoint(serving, threads=settings.serve.read_threads)
        stack.push_async_callback(asyncio.to_thread, endpoint.close)
        receivings = [
            await stack.enter_async_context(await _receiving(stack, dsn, inbox, size))
            for inbox in inboxes_of(process.subject, reader)
        ]
        yield OwnerApplication(endpoint, _receiver(settings, receivings, pool))


async def _receiving(stack: AsyncExitStack, dsn: str, inbox: Inbox, size: int) -> Receiving:
    pool = await stack.enter_async_context(
        open_pool(dsn, part=f"inbox-{inbox.destination}"[:40], size_max=size, program="oceanway")
    )
    threads = None
    if needs_sync_pool(inbox):
        threads = stack.enter_context(open_sync_pool(dsn, part="inbox-threads", size_max=size))
    return Receiving(inbox, pool, threads)


def _receiver(settings: Settings, receivings: list[Receiving], pool: SyncPool) -> ASGIApp:
    trust = settings.trust
    if receivings:
        from seapost.server.receiver import create_app  # noqa: PLC0415 - half of the program's start

        dispatchers = load_verifier(trust.folder, issuer=trust.issuer, kinds=frozenset({Kind.DISPATCH}))
        return create_app(receivings, verifier=dispatchers)
    from oceanway.cli.health import Health  # noqa: PLC0415 - for owners without consumers

    return Health(pool)


def _stop(server: uvicorn.Server) -> None:
    """The first order drains, the second ends what runs."""
    server.force_exit = server.should_exit
    server.should_exit = True


@contextmanager
def _listening(address: str) -> Generator[socket.socket]:
    parts = urlsplit(address)
    host, port = parts.hostname, parts.port
    if parts.scheme != "http" or host is None or port is None:
        raise InvalidSetting(f"addresses: {address} is no http://host:port to listen on.")
    try:
        listening = socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=BACKLOG
        )
    except OSError as error:
        raise InvalidSetting(f"addresses: {address} cannot be listened on: {error.strerror}") from None
    # asyncio does this itself only where a socket names its protocol; else a small answer may wait 40 ms
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with listening:
        yield listening
