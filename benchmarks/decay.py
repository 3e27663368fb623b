"""What time does to a queue: an old snapshot that keeps dead rows, many finished events, a long backlog.

Each case has a database of its own beside one without it, and the two take turns.
"""

from __future__ import annotations

import asyncio
import statistics
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final

import psycopg

from benchmarks import fill
from benchmarks.events import Measured, kernel_database, prepare
from benchmarks.settling import Settling, Took
from seapost.outbox.append import append_many_async

BATCH: Final = 100
SLICES: Final = 5
SLICE: Final = 3_000
FILL_BATCH: Final = 1_000
EMPTY_BACKLOG: Final = SLICES * SLICE + SLICE


@dataclass(frozen=True, slots=True)
class Decay:
    """One case beside its plain twin, as ratios of medians: 1 is no change.

    Attributes:
        rate: deliveries per second, with an inbox, batch 100.
        claim, settle: milliseconds of one call.
    """

    rate: float
    claim: float
    settle: float


def old_snapshot(dsn: str, churn: int) -> Decay:
    """A snapshot held since before `churn` deliveries were made and finished."""
    with kernel_database(dsn) as plain, kernel_database(dsn) as pinned:
        return asyncio.run(_old_snapshot(plain, pinned, churn))


def big_tables(dsn: str, rows: int) -> tuple[Decay, Decay]:
    """Against a nearly empty database: one with `rows` finished events, and one with `rows` that wait."""
    with ExitStack() as stack:
        empty, finished, waiting = (stack.enter_context(kernel_database(dsn)) for _ in range(3))
        with psycopg.connect(finished, autocommit=True) as connection:
            fill.finished(connection, "one", rows)
            _ = connection.execute("vacuum analyze")
        with psycopg.connect(waiting, autocommit=True) as connection:
            fill.waiting(connection, "one", rows)
            _ = connection.execute("vacuum analyze")
        return asyncio.run(_big_tables(empty, finished, waiting, rows))


class _Case:
    """One database under measurement, worked on in slices."""

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self._connection = connection
        self._settling = Settling(connection, "one")
        self._rates: list[float] = []

    @property
    def took(self) -> Took:
        """What the calls took in all slices."""
        return self._settling.took

    async def append(self, count: int) -> None:
        """Make work."""
        events = prepare(Measured, 0, count)
        for start in range(0, count, FILL_BATCH):
            async with self._connection.transaction():
                _ = await append_many_async(self._connection, events[start : start + FILL_BATCH])

    async def slice(self, deliveries: int) -> None:
        """Claim, receive and settle so many."""
        started, done = perf_counter(), 0
        while done < deliveries and (claims := await self._settling.claim(BATCH)):
            await self._settling.receive(claims)
            await self._settling.acknowledge(claims)
            done += len(claims)
        self._rates.append(done / (perf_counter() - started))

    def forget(self) -> None:
        """What came so far was not the measurement."""
        self._rates.clear()
        self.took.claim.clear()
        self.took.settle.clear()

    def against(self, plain: _Case) -> Decay:
        """This case as ratios to its plain twin."""
        return Decay(
            rate=statistics.median(self._rates) / statistics.median(plain._rates),
            claim=statistics.median(self.took.claim) / statistics.median(plain.took.claim),
            settle=statistics.median(self.took.settle) / statistics.median(plain.took.settle),
        )


async def _old_snapshot(plain_dsn: str, pinned_dsn: str, churn: int) -> Decay:
    async with AsyncExitStack() as stack:
        plain = _Case(await stack.enter_async_context(await _connect(plain_dsn)))
        pinned = _Case(await stack.enter_async_context(await _connect(pinned_dsn)))
        holder = await stack.enter_async_context(await psycopg.AsyncConnection.connect(pinned_dsn))
        await holder.set_isolation_level(psycopg.IsolationLevel.REPEATABLE_READ)
        _ = await holder.execute("select count(*) from seapost.delivery_ready")
        for case in (plain, pinned):
            for _ in range(0, churn, SLICE):
                await case.append(SLICE)
                await case.slice(SLICE)
            case.forget()
        for _ in range(SLICES):
            for case in (plain, pinned):
                await case.append(SLICE)
                await case.slice(SLICE)
        return pinned.against(plain)


async def _big_tables(empty_dsn: str, finished_dsn: str, waiting_dsn: str, rows: int) -> tuple[Decay, Decay]:
    async with AsyncExitStack() as stack:
        empty, finished, waiting = [
            _Case(await stack.enter_async_context(await _connect(dsn)))
            for dsn in (empty_dsn, finished_dsn, waiting_dsn)
        ]
        size = min(SLICE, rows // (2 * SLICES + 2))
        await empty.append(EMPTY_BACKLOG)
        await finished.append(EMPTY_BACKLOG)
        for case in (empty, finished, waiting):
            await case.slice(size)
            case.forget()
        for _ in range(SLICES):
            for case in (empty, finished, waiting):
                await case.slice(size)
        return finished.against(empty), waiting.against(empty)


async def _connect(dsn: str) -> psycopg.AsyncConnection[Any]:
    return await psycopg.AsyncConnection.connect(dsn, autocommit=True)
