"""The dispatcher's process: what it opens, how it runs, and what is left when it stops."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass

from seapost.cli.databases import direct_dsn_of
from seapost.cli.exit_codes import ExitCode
from seapost.cli.loading import Loaded
from seapost.cli.monitor import monitoring
from seapost.cli.settings import DatabaseSettings, DestinationEntry, Settings
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


def plan_work(settings: Settings, *, names: Sequence[str], loaded: Sequence[Loaded], wait_seconds: float) -> Work:
    """Decide what to serve, before anything is opened.

    Raises:
        InvalidSetting: there is nothing to serve, or something that nothing says how to reach.
    """
    inboxes = [inbox for one in loaded for inbox in one.inboxes]
    registries = [one.application.receipts for one in loaded if one.application is not None]
    return Work(
        settings=settings,
        destinations=chosen_destinations(settings, names, inboxes),
        inboxes=inboxes,
        receipts=registries[0] if registries else DEFAULT_RECEIPTS,
        wait_seconds=wait_seconds,
    )


async def run(work: Work) -> tuple[dict[str, object], ExitCode]:
    """Work until told to stop; the report and the exit code."""
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
            listen_dsn=listen_dsn(database, dsn),
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
        gc.freeze()  # what is loaded stays to the end; each look through it would stop the process for about 50 ms
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


def listen_dsn(database: DatabaseSettings, dsn: str) -> str | None:
    """Where to listen: at the server itself; nowhere when only a pooler is named."""
    if database.behind_pooler and database.direct_dsn is None:
        return None
    return dsn if database.direct_dsn is None else direct_dsn_of(database)


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
