"""`seapost dispatch`: the worker that carries due deliveries to their consumers and settles what comes back."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from seapost.cli.exit_codes import ExitCode
from seapost.cli.loading import load
from seapost.cli.options import ConfigOption, DsnOption, JsonOption
from seapost.cli.output import Output
from seapost.cli.settings import load_settings
from seapost.telemetry import logging
from seapost.telemetry.libraries import adopt_library_logs


def dispatch(
    destination: Annotated[
        list[str] | None,
        typer.Option("--destination", metavar="D", help="Serve only this destination; may be repeated."),
    ] = None,
    application: Annotated[
        list[str] | None,
        typer.Option(
            "--app",
            metavar="APP",
            help="module:attribute of an Inbox or a list of them, delivered to inside this process with the "
            "\\[consumer] database; or of an Application, for its receipt types. May be repeated.",
        ),
    ] = None,
    monitor_port: Annotated[
        int | None,
        typer.Option("--monitor-port", min=0, max=65_535, help="Serve /livez and /metrics here; 0 takes a free port."),
    ] = None,
    wait: Annotated[
        float, typer.Option("--wait", min=0, max=3600, help="Longest wait for the database at start, in seconds.")
    ] = 30.0,
    dsn: DsnOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> ExitCode:
    """Deliver what is due until told to stop.

    The first SIGTERM or SIGINT stops in order: nothing is claimed any more, running calls may finish within
    dispatcher.drain_seconds, what is left is given back, and the exit code is 0. A second signal gives back at once.

    Connections to the database with the outbox, per process: one for each lane of each destination (2 by default), one
    to renew, one to recover, one that listens, and one more with --monitor-port. With --app, the [consumer] database
    takes up to pool_size (8) for async handlers and as many again for plain ones.
    """
    settings = load_settings(
        file=config,
        flags={("database", "dsn"): dsn, ("monitor", "port"): monitor_port},
        destinations=tuple(destination or ()),
    )
    logging.configure(settings.log.level)
    adopt_library_logs()
    loaded = [load(name) for name in application or ()]
    from seapost.cli import dispatching  # noqa: PLC0415 - a third of the program's start, for this command alone

    work = dispatching.plan_work(settings, names=destination or (), loaded=loaded, wait_seconds=wait)
    report, code = asyncio.run(dispatching.run(work))
    Output(as_json=as_json).emit(report, str(report["summary"]))
    return code
