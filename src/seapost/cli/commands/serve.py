"""`seapost serve`: the endpoint where a consumer's inboxes take deliveries."""

from __future__ import annotations

import asyncio
import importlib.util
from typing import Annotated

import typer

from seapost.cli.exit_codes import ExitCode
from seapost.cli.loading import load_inboxes
from seapost.cli.options import ConfigOption, JsonOption
from seapost.cli.output import Output
from seapost.cli.settings import load_settings
from seapost.model.errors import InvalidSetting
from seapost.telemetry import logging
from seapost.telemetry.libraries import adopt_library_logs


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
    adopt_library_logs()
    _require_server()
    inboxes = [inbox for name in application for inbox in load_inboxes(name)]
    from seapost.cli import serving  # noqa: PLC0415 - needs the extra `server`

    report = asyncio.run(serving.run(settings, inboxes, wait_seconds=wait))
    Output(as_json=as_json).emit(report, "stopped")
    return ExitCode.DONE


def _require_server() -> None:
    missing = [name for name in ("fastapi", "uvicorn") if importlib.util.find_spec(name) is None]
    if missing:
        raise InvalidSetting(f"`seapost serve` needs {' and '.join(missing)}: install seapost[server].")
