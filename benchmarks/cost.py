"""CPU time of the server's process per delivery: claim and settle without an inbox, beside the raw loop.

The process accounting of Linux says what a session used, whatever else the machine did meanwhile.
"""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

import psycopg

from benchmarks import meters
from benchmarks.events import Measured, kernel_database, prepare
from benchmarks.server import fresh_database
from benchmarks.settling import Settling
from benchmarks.systems.raw import Raw
from seapost.outbox.append import append_many_async

BATCH: Final = 100
FILL_BATCH: Final = 1_000


@dataclass(frozen=True, slots=True)
class Cost:
    """Microseconds of the server's CPU per delivery, medians."""

    claim_settle: float
    raw: float


def measure(dsn: str, deliveries: int, repetitions: int) -> Cost | None:
    """Interleaved; None where the processes of the server cannot be seen from here."""
    with kernel_database(dsn) as kernel, fresh_database(dsn) as plain:
        return asyncio.run(_measure(kernel, plain, deliveries, repetitions))


async def _measure(kernel: str, plain: str, deliveries: int, repetitions: int) -> Cost | None:
    raw = Raw(str(BATCH))
    await raw.setup(plain, install=True)
    ours: list[float] = []
    theirs: list[float] = []
    async with await psycopg.AsyncConnection.connect(kernel, autocommit=True) as connection:
        settling = Settling(connection, "one")
        for repetition in range(repetitions + 1):  # the first one warms up
            await _fill(connection, deliveries)
            _ = await raw.append(deliveries, FILL_BATCH)
            used = await _used(connection.info.backend_pid, lambda: settling.drain(BATCH, receive=False))
            raw_used = await _used(raw.process_id, lambda: raw.drain(deliveries, shared=False))
            if used is None or raw_used is None:
                return None
            if repetition:
                ours.append(used * 1_000_000 / deliveries)
                theirs.append(raw_used * 1_000_000 / deliveries)
    await raw.close()
    return Cost(statistics.median(ours), statistics.median(theirs))


async def _used(process_id: int, work: Callable[[], Awaitable[object]]) -> float | None:
    before = meters.cpu_seconds(process_id)
    _ = await work()
    after = meters.cpu_seconds(process_id)
    return None if before is None or after is None else after - before


async def _fill(connection: psycopg.AsyncConnection[Any], count: int) -> None:
    events = prepare(Measured, 0, count)
    for start in range(0, count, FILL_BATCH):
        async with connection.transaction():
            _ = await append_many_async(connection, events[start : start + FILL_BATCH])
