"""Who waits for which row: sampled from the lock table, so that nothing on the measured path is slower for it.

A session that waits for a row holds, or waits for, the tuple lock of that row's table; that tells the rows of queue,
stream and quota apart. The mean follows from Little's law: sessions waiting on average, divided by confirmations per
second. The percentiles are of what those who waited had waited so far when they were looked at.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from psycopg import AsyncConnection

from orbit.bench.figures import MILLISECONDS, Spread

EVERY_SECONDS: Final = 0.005
ROWS: Final = {"orbit.queues": "queue", "orbit.event_stream_locks": "stream", "orbit.application_quotas": "quota"}
OTHER: Final = "other"

_WAITING: Final = """
select coalesce((select t.relation::regclass::text from pg_catalog.pg_locks as t
                 where t.pid = w.pid and t.locktype = 'tuple' limit 1), w.locktype),
    coalesce(extract(epoch from clock_timestamp() - w.waitstart), 0)::float8
from pg_catalog.pg_locks as w join pg_catalog.pg_stat_activity as a on a.pid = w.pid
where not w.granted and a.datname = current_database()"""


@dataclass(frozen=True, slots=True)
class RowWaits:
    """Waits for one kind of row: the mean per confirmation in milliseconds, and how long waiters had waited so far."""

    mean_ms: float
    so_far: Spread


@dataclass(slots=True)
class Samples:
    """What was seen; `looks` is how often."""

    looks: int = 0
    waiting: Counter[str] = field(default_factory=Counter[str])
    ages: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def figures(self, per_second: float) -> dict[str, RowWaits]:
        """The waits for each kind of row, when so many transactions per second ended."""
        return {
            row: RowWaits(
                self.waiting[row] / self.looks / per_second * MILLISECONDS if self.looks and per_second else 0.0,
                Spread.of(self.ages[row]),
            )
            for row in (*ROWS.values(), OTHER)
        }


@asynccontextmanager
async def sampled_waits(dsn: str) -> AsyncGenerator[Samples]:
    """Look at the lock table every 5 ms while the block runs."""
    samples = Samples()
    async with await AsyncConnection.connect(dsn, autocommit=True, application_name="orbit-sampler") as connection:
        looking = asyncio.create_task(_look(connection, samples))
        try:
            yield samples
        finally:
            _ = looking.cancel()
            with suppress(asyncio.CancelledError):
                await looking


async def _look(connection: AsyncConnection[Any], samples: Samples) -> None:
    while True:
        for relation, age in await (await connection.execute(_WAITING)).fetchall():
            row = ROWS.get(relation, OTHER)
            samples.waiting[row] += 1
            samples.ages[row].append(age)
        samples.looks += 1
        await asyncio.sleep(EVERY_SECONDS)
