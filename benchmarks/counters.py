"""The counters that gate a change: what one delivery costs, in numbers that are the same on every machine.

Each phase does a fixed amount of work in fixed batches, on a server where nothing else happens (see
`server.COUNTED`). Two runs of one tree agree within about a percent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Final

import psycopg

from benchmarks import meters
from benchmarks.drain import CountingTransport, consumer, dispatching, inbox_transport, until_applied
from benchmarks.events import Kind, Measured, MeasuredTwice, kernel_database, prepare
from benchmarks.relay import Relay
from benchmarks.server import COUNTED, measured_server
from benchmarks.settling import Settling
from seapost.contracts.envelope import PreparedEvent
from seapost.dispatcher.settings import DispatcherSettings
from seapost.outbox.append import append_many_async

DELIVERIES: Final = 10_000
BATCH: Final = 100
WARM_UP: Final = 1_000
IDLE_SECONDS: Final = 20.0
QUIET: Final = DispatcherSettings(recover_every_seconds=3_600.0, poll_seconds=(60.0,))
"""No look for expired leases and no polling in between: only what deliveries cost is counted."""


@dataclass(frozen=True, slots=True)
class Counter:
    """One gated figure. Attributes: unit: what it counts, and per what."""

    name: str
    unit: str


COUNTERS: Final = (
    Counter("append_wal", "bytes of WAL per event of 1 kB with one destination, 100 per transaction"),
    Counter("append_wal_further", "bytes of WAL per further destination of an event"),
    Counter("claim_settle_wal", "bytes of WAL per delivery claimed and acknowledged, batch 100"),
    Counter("inbox_wal", "bytes of WAL per inbox receipt, batch 100"),
    Counter("round_trips", "round trips per delivery, claim to acknowledgement with an inbox, batch 100"),
    Counter("rows_scanned", "index entries and rows read per delivery claimed, batch 100"),
    Counter("dead_rows", "dead rows per 10,000 deliveries, without vacuum"),
    Counter("fsyncs", "flushes of WAL per 10,000 deliveries with an inbox, batch 100"),
)


def measure(dsn: str | None = None) -> dict[str, float]:
    """Every counter by name. Takes about half a minute. Args: dsn: None makes an embedded server, as the gate does."""
    with (
        measured_server(dsn, COUNTED) as server,
        kernel_database(server) as database,
        psycopg.connect(database, autocommit=True) as watcher,
    ):
        counted = asyncio.run(_write_ahead_log(database, watcher))
        counted |= asyncio.run(_dispatched(database, watcher))
    return {counter.name: counted[counter.name] for counter in COUNTERS}


async def _write_ahead_log(dsn: str, watcher: meters.Connection) -> dict[str, float]:
    """The phases one after the other, so that the log between two positions belongs to one of them."""
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        settling = Settling(connection, "one")
        await _append(connection, _batches(Measured, 0, WARM_UP))
        await settling.drain(BATCH)  # the tables have their first pages, the driver has prepared its statements
        _ = watcher.execute("checkpoint")
        images = meters.page_images(watcher)
        batches = _batches(Measured, 0, DELIVERIES)
        start = meters.wal_position(watcher)
        await _append(connection, batches)
        appended = meters.wal_position(watcher)
        claimed = [await settling.claim(BATCH) for _ in range(DELIVERIES // BATCH)]
        leased = meters.wal_position(watcher)
        for claims in claimed:
            await settling.receive(claims)
        received = meters.wal_position(watcher)
        for claims in claimed:
            await settling.acknowledge(claims)
        settled = meters.wal_position(watcher)
        if meters.page_images(watcher) - images > DELIVERIES // 100:
            message = "full-page images were written in between: this server is not set up for counting"
            raise RuntimeError(message)
        twice = _batches(MeasuredTwice, 0, DELIVERIES // 2)
        before = meters.wal_position(watcher)
        await _append(connection, twice)
        twice_wal = (meters.wal_position(watcher) - before) / (DELIVERIES // 2)
    append_wal = (appended - start) / DELIVERIES
    return {
        "append_wal": append_wal,
        "append_wal_further": twice_wal - append_wal,
        "claim_settle_wal": (leased - appended + settled - received) / DELIVERIES,
        "inbox_wal": (received - leased) / DELIVERIES,
    }


async def _dispatched(dsn: str, watcher: meters.Connection) -> dict[str, float]:
    """The dispatcher itself with an inbox in its process; sessions report their statistics when they end."""
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        await _append(connection, _batches(Measured, 0, DELIVERIES))
    await _ended(watcher)
    before = meters.wal_fsyncs(watcher), meters.rows_scanned(watcher, "delivery_ready"), meters.dead_rows(watcher)
    async with AsyncExitStack() as stack:
        relay = await stack.enter_async_context(Relay(dsn))
        counted = CountingTransport(await stack.enter_async_context(inbox_transport(relay.dsn, consumer())))
        running = dispatching(relay.dsn, counted, batch=BATCH, lanes=1, listening=False, settings=QUIET)
        async with running:
            await until_applied(counted, DELIVERIES, idle_seconds=IDLE_SECONDS)
        trips = relay.trips
    await _ended(watcher)
    if counted.applied != DELIVERIES:
        message = f"{counted.applied} deliveries were confirmed, not {DELIVERIES}"
        raise RuntimeError(message)
    flushes, scanned, dead = (
        meters.wal_fsyncs(watcher),
        meters.rows_scanned(watcher, "delivery_ready"),
        meters.dead_rows(watcher),
    )
    return {
        "round_trips": trips / DELIVERIES,
        "rows_scanned": (scanned - before[1]) / DELIVERIES,
        "dead_rows": (dead - before[2]) * 10_000 / DELIVERIES,
        "fsyncs": (flushes - before[0]) * 10_000 / DELIVERIES,
    }


async def _ended(watcher: meters.Connection) -> None:
    """Wait until no session but the watcher's is left; an ended one has reported everything."""
    async with asyncio.timeout(IDLE_SECONDS):
        while _others(watcher):  # noqa: ASYNC110 - the server has no event to wait for
            await asyncio.sleep(0.02)


def _others(watcher: meters.Connection) -> int:
    row = watcher.execute(
        "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
    ).fetchone()
    assert row is not None  # noqa: S101 - a count has a row
    return int(row[0])


def _batches(kind: Kind, first: int, count: int) -> list[list[PreparedEvent]]:
    prepared = prepare(kind, first, count)
    return [prepared[start : start + BATCH] for start in range(0, count, BATCH)]


async def _append(connection: psycopg.AsyncConnection[Any], batches: Sequence[list[PreparedEvent]]) -> None:
    for batch in batches:
        async with connection.transaction():
            _ = await append_many_async(connection, batch)
