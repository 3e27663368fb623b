"""The process that carries the events of one database to the owners that consume them."""

from __future__ import annotations

import asyncio
import gc
import time
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from oceanway.cli.composition import receipts
from oceanway.installation.keys import load_signer
from oceanway.installation.layout import DESTINATIONS, DISPATCHED, Kind, process_of
from seapost.cli.signals import stop_orders
from seapost.database.pool import open_pool
from seapost.dispatcher.destination import Destination
from seapost.dispatcher.dispatcher import Dispatcher
from seapost.dispatcher.settings import DestinationSettings, DispatcherSettings, pool_size
from seapost.transport.address import AddressPolicy
from seapost.transport.http import HttpLimits, HttpTransport

if TYPE_CHECKING:
    from oceanway.installation.layout import Database, Process
    from oceanway.installation.settings import Settings
    from seapost.transport.token import TokenSigner


async def run(settings: Settings, database: Database) -> dict[str, object]:
    """Dispatch until told to stop; the report."""
    process = process_of(Kind.DISPATCH, database.value)
    names = DISPATCHED[database]
    report: dict[str, object] = {"workload": process.workload, "destinations": list(names), "drained": True}
    with stop_orders() as orders:
        try:
            report["drained"] = await _dispatch(settings, process, names, orders.passed_to)
        except asyncio.CancelledError:
            if not orders.count:
                raise
            report["drained"] = not orders.gave_up
    return report


async def _dispatch(settings: Settings, process: Process, names: tuple[str, ...], passed_to: Any) -> bool:  # noqa: ANN401 - a bound method
    signer = load_signer(settings.trust.folder, process.workload, issuer=settings.trust.issuer)
    known = receipts()
    chosen = [_destination_settings(settings, name) for name in names]
    own = DispatcherSettings()
    dsn = settings.process_dsn(process)
    async with AsyncExitStack() as stack:
        pool = await stack.enter_async_context(
            open_pool(
                dsn,
                part=f"dispatch-{process.subject}",
                size_max=pool_size(chosen),
                role_timeouts=own.role_timeouts,
                program="oceanway",
            )
        )
        destinations = [
            Destination(one, await stack.enter_async_context(_transport(settings, signer, one.name, one.lanes)))
            for one in chosen
        ]
        dispatcher = Dispatcher(pool, destinations, listen_dsn=dsn, settings=own, receipts=known)
        gc.freeze()  # what is loaded stays to the end, so that no look through it stops the process
        stopped_at: list[float] = []

        def stop() -> None:
            stopped_at.append(time.monotonic())
            dispatcher.stop()

        passed_to(stop)
        await dispatcher.run()
    patience = own.drain_seconds + own.give_back_seconds
    return not stopped_at or time.monotonic() - stopped_at[0] <= patience


def _destination_settings(settings: Settings, name: str) -> DestinationSettings:
    dispatch = settings.dispatch
    return DestinationSettings(
        name=name,
        batch_size=dispatch.batch_size,
        lanes=dispatch.lanes,
        lease_seconds=dispatch.lease_seconds,
        timeout_seconds=dispatch.timeout_seconds,
        backoff_base_seconds=dispatch.backoff_base_seconds,
        backoff_max_seconds=dispatch.backoff_max_seconds,
        breaker_open_seconds=dispatch.breaker_open_seconds,
    )


def _transport(settings: Settings, signer: TokenSigner, destination: str, lanes: int) -> HttpTransport:
    """The way to the owner of a destination; the operator's own addresses may be private ones."""
    url = settings.address(DESTINATIONS[destination])
    return HttpTransport(
        url,
        signer=signer,
        policy=AddressPolicy.allowing(urlsplit(url).hostname or ""),
        limits=HttpLimits(connections_max=lanes),
    )
