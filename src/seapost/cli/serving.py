"""The receiver's process: its keys, its inboxes, its socket, and how it stops. Needs the extra `server`."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Generator, Sequence
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from seapost.cli.settings import ReceiverSettings, Settings
from seapost.cli.signals import StopOrders, stop_orders
from seapost.cli.workers import opened_inboxes, read_file, wait_for_database
from seapost.inbox.inbox import Inbox
from seapost.model.errors import InvalidSetting
from seapost.server import receiver
from seapost.telemetry import logging, metrics
from seapost.telemetry.catalog import LogEvent
from seapost.transport.token import TokenVerifier, load_public_key


class _Server(uvicorn.Server):
    """Leaves the signals to us."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


def _verifier(receiver: ReceiverSettings) -> TokenVerifier | None:
    """Who may call; a receiver without keys must be asked for in so many words."""
    if receiver.public_key_files:
        keys = [load_public_key(read_file("receiver.public_key_files", path)) for path in receiver.public_key_files]
        return TokenVerifier(keys, issuer=receiver.issuer, workloads=receiver.workloads or None)
    if receiver.unauthenticated:
        return None
    raise InvalidSetting(
        "receiver.public_key_files: it is missing; name the dispatcher's public key, which `seapost init` makes."
    )


async def run(settings: Settings, inboxes: Sequence[Inbox], *, wait_seconds: float) -> dict[str, object]:
    """Serve until told to stop; the report.

    Raises:
        InvalidSetting: a key is missing or malformed, or the address cannot be listened on.
    """
    verifier = _verifier(settings.receiver)
    report: dict[str, object] = {"consumers": sorted(inbox.name for inbox in inboxes), "stopped": True}
    with stop_orders() as orders:
        try:
            report["address"] = await _serve(settings, inboxes, verifier, wait_seconds, orders)
        except asyncio.CancelledError:
            if not orders.count:
                raise
    return report


async def _serve(
    settings: Settings,
    inboxes: Sequence[Inbox],
    verifier: TokenVerifier | None,
    wait_seconds: float,
    orders: StopOrders,
) -> str:
    log = logging.get_logger("seapost.server")
    dsn = await wait_for_database(settings.consumer, "consumer", wait_seconds=wait_seconds)
    async with opened_inboxes(inboxes, settings.consumer, dsn) as receivings:
        limits = receiver.ReceiverSettings(**settings.receiver.limits)  # pyright: ignore[reportArgumentType]
        app = receiver.create_app(receivings, verifier=verifier, settings=limits)
        metrics.worker("receiver", region=settings.monitor.region)
        with _listening(settings.receiver) as listening:
            address = "http://{}:{}".format(*listening.getsockname()[:2])
            server = _server(app, settings.receiver.drain_seconds)
            orders.passed_to(lambda: _stop(server))
            log.info(LogEvent.SERVER_STARTED, address=address, consumers=sorted(one.name for one in inboxes))
            await server.serve(sockets=[listening])
    log.info(LogEvent.SERVER_STOPPED, address=address)
    return address


def _server(app: FastAPI, drain_seconds: float) -> uvicorn.Server:
    return _Server(
        uvicorn.Config(
            app,
            access_log=False,
            lifespan="off",
            log_config=None,
            server_header=False,
            timeout_graceful_shutdown=max(1, round(drain_seconds)),
        )
    )


def _stop(server: uvicorn.Server) -> None:
    """The first order drains, the second ends what runs."""
    server.force_exit = server.should_exit
    server.should_exit = True


@contextmanager
def _listening(settings: ReceiverSettings) -> Generator[socket.socket]:
    try:
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        listening = socket.create_server((settings.host, settings.port), family=family, backlog=2048)
    except OSError as error:
        raise InvalidSetting(
            f"receiver.port: {settings.host}:{settings.port} cannot be listened on: {error.strerror}"
        ) from None
    # asyncio does this itself only where a socket names its protocol; else a small answer may wait 40 ms
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with listening:
        yield listening
