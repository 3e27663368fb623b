"""`seapost dispatch`: the worker that carries due deliveries to their consumers and settles what comes back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from typing import Annotated

import typer

from seapost.cli.exit_codes import ExitCode
from seapost.cli.loading import load
from seapost.cli.monitor import monitoring
from seapost.cli.options import ConfigOption, DsnOption, JsonOption
from seapost.cli.output import Output
from seapost.cli.settings import DestinationEntry, Settings, load_settings
from seapost.cli.signals import StopOrders, stop_orders
from seapost.cli.workers import (
    chosen_destinations,
    opened_destinations,
    opened_inboxes,
    show_backlog,
    wait_for_database,
)
from seapost.contracts.receipt_registry import DEFAULT_RECEIPTS, ReceiptRegistry
from seapost.database.pool import open_pool
from seapost.dispatcher.dispatcher import Dispatcher
from seapost.dispatcher.settings import pool_size
from seapost.inbox.inbox import Inbox
from seapost.telemetry import logging, metrics
from seapost.telemetry.catalog import LogEvent


@dataclass(frozen=True, slots=True)
class Work:
    """What this process is to do."""

    settings: Settings
    destinations: Mapping[str, DestinationEntry]
    inboxes: Sequence[Inbox]
    receipts: ReceiptRegistry
    wait_seconds: float


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
    loaded = [load(name) for name in application or ()]
    inboxes = [inbox for one in loaded for inbox in one.inboxes]
    registries = [one.application.receipts for one in loaded if one.application is not None]
    work = Work(
        settings=settings,
        destinations=chosen_destinations(settings, destination or (), inboxes),
        inboxes=inboxes,
        receipts=registries[0] if registries else DEFAULT_RECEIPTS,
        wait_seconds=wait,
    )
    report, code = asyncio.run(_run(work))
    Output(as_json=as_json).emit(report, str(report["summary"]))
    return code


async def _run(work: Work) -> tuple[dict[str, object], ExitCode]:
    with stop_orders() as orders:
        try:
            return await _work(work, orders)
        except asyncio.CancelledError:
            if not orders.count:
                raise
    if orders.gave_up:
        summary = "stopped at the third signal; what is still leased lapses by itself"
        return {"destinations": sorted(work.destinations), "drained": False, "summary": summary}, ExitCode.NOT_DRAINED
    summary = "stopped before anything was claimed"
    return {"destinations": sorted(work.destinations), "drained": True, "summary": summary}, ExitCode.DONE


async def _work(work: Work, orders: StopOrders) -> tuple[dict[str, object], ExitCode]:
    settings = work.settings
    database = settings.database
    dsn = await wait_for_database(database, "database", wait_seconds=work.wait_seconds)
    lanes = pool_size([entry.worker for entry in work.destinations.values()])
    is_monitored = settings.monitor.port is not None
    async with AsyncExitStack() as stack:
        receivings = []
        if work.inboxes:
            consumer_dsn = await wait_for_database(settings.consumer, "consumer", wait_seconds=work.wait_seconds)
            receivings = await stack.enter_async_context(opened_inboxes(work.inboxes, settings.consumer, consumer_dsn))
        pool = await stack.enter_async_context(
            open_pool(
                dsn,
                part="dispatcher",
                size_max=database.pool_size or lanes + is_monitored,
                role_timeouts=settings.dispatcher.role_timeouts,
                role=database.role,
                behind_pooler=database.behind_pooler,
            )
        )
        destinations = await stack.enter_async_context(opened_destinations(settings, work.destinations, receivings))
        dispatcher = Dispatcher(
            pool,
            destinations,
            listen_dsn=None if database.behind_pooler else dsn,
            listen_role=database.role,
            settings=settings.dispatcher,
            receipts=work.receipts,
        )
        metrics.worker("dispatcher", region=settings.monitor.region)
        if settings.monitor.port is not None:
            port = stack.enter_context(monitoring(settings.monitor.host, settings.monitor.port, dispatcher.progress))
            address = f"http://{settings.monitor.host}:{port}"
            logging.get_logger("seapost.monitor").info(LogEvent.SERVER_STARTED, address=address)
            backlog = asyncio.create_task(show_backlog(pool, every_seconds=settings.monitor.backlog_seconds))
            stack.push_async_callback(_ended, backlog)
        stopped_at = await _until_stopped(dispatcher, orders)
    patience = settings.dispatcher.drain_seconds + settings.dispatcher.give_back_seconds
    drained = stopped_at is None or time.monotonic() - stopped_at <= patience
    summary = "stopped; nothing is held" if drained else "stopped, but not everything could be given back in time"
    report: dict[str, object] = {
        "owner": dispatcher.owner,
        "destinations": sorted(work.destinations),
        "drained": drained,
        "summary": summary,
    }
    return report, ExitCode.DONE if drained else ExitCode.NOT_DRAINED


async def _until_stopped(dispatcher: Dispatcher, orders: StopOrders) -> float | None:
    """Run until the order to stop was carried out; returns when it came."""
    stopped_at: float | None = None

    def stop() -> None:
        nonlocal stopped_at
        stopped_at = stopped_at or time.monotonic()
        dispatcher.stop()

    orders.passed_to(stop)
    await dispatcher.run()
    return stopped_at


async def _ended(task: asyncio.Task[None]) -> None:
    _ = task.cancel()
    with suppress(asyncio.CancelledError):
        await task
