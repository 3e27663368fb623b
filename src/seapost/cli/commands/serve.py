"""`seapost serve`: the endpoint where a consumer's inboxes take deliveries."""

from __future__ import annotations

import asyncio
import importlib.util
import socket
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from seapost.cli.exit_codes import ExitCode
from seapost.cli.loading import load_inboxes
from seapost.cli.options import ConfigOption, JsonOption
from seapost.cli.output import Output
from seapost.cli.settings import ReceiverSettings, Settings, load_settings
from seapost.cli.signals import StopOrders, stop_orders
from seapost.cli.workers import opened_inboxes, read_file, wait_for_database
from seapost.inbox.inbox import Inbox
from seapost.model.errors import InvalidSetting
from seapost.telemetry import logging, metrics
from seapost.telemetry.catalog import LogEvent
from seapost.transport.token import TokenVerifier, load_public_key

if TYPE_CHECKING:
    import uvicorn
    from fastapi import FastAPI


def serve(
    application: Annotated[
        list[str], typer.Argument(metavar="APP...", help="module:attribute of an Inbox, or of a list of inboxes.")
    ],
    host: Annotated[str | None, typer.Option("--host", help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option("--port", min=0, max=65_535, help="Port; 0 takes a free one.")] = None,
    dsn: Annotated[
        str | None, typer.Option("--dsn", metavar="DSN", help="The consumer's own database, section \\[consumer].")
    ] = None,
    wait: Annotated[
        float, typer.Option("--wait", min=0, max=3600, help="Longest wait for the database at start, in seconds.")
    ] = 30.0,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Take deliveries for inboxes, apply each event once and answer with its receipt.

    The first SIGTERM or SIGINT stops in order: no new request is taken, running ones may finish within
    receiver.drain_seconds, and the exit code is 0. A second signal ends running requests at once; their transactions
    roll back.

    Connections to the [consumer] database, per process: up to pool_size (8) for the registry, reads and async
    handlers, and as many again when a handler is a plain function.
    """
    settings = load_settings(
        file=config,
        flags={("receiver", "host"): host, ("receiver", "port"): port, ("consumer", "dsn"): dsn},
    )
    logging.configure(settings.log.level)
    _require_server()
    inboxes = [inbox for name in application for inbox in load_inboxes(name)]
    verifier = _verifier(settings.receiver)
    report = asyncio.run(_run(settings, inboxes, verifier, wait))
    Output(as_json=as_json).emit(report, "stopped")
    return ExitCode.DONE


def _require_server() -> None:
    missing = [name for name in ("fastapi", "uvicorn") if importlib.util.find_spec(name) is None]
    if missing:
        raise InvalidSetting(f"`seapost serve` needs {' and '.join(missing)}: install seapost[server].")


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


async def _run(
    settings: Settings, inboxes: Sequence[Inbox], verifier: TokenVerifier | None, wait_seconds: float
) -> dict[str, object]:
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
    from seapost.server import receiver  # noqa: PLC0415 - needs the extra `server`

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
    import uvicorn  # noqa: PLC0415 - needs the extra `server`

    class Server(uvicorn.Server):
        """Leaves the signals to us."""

        @contextmanager
        def capture_signals(self) -> Generator[None]:
            yield

    return Server(
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
    with listening:
        yield listening
