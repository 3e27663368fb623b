"""Results confirmed per second through the allocation of sequences, and what waits for which row (P6-05, JRN-12).

Each writer is one task with a connection of its own in this process; one confirmation is one call of the database
function, its commit, and with the fence the shared flush. Attempts were claimed before.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import count
from time import monotonic
from typing import Final
from uuid import uuid4

from psycopg import AsyncConnection

from orbit.bench.figures import Spread
from orbit.bench.hosting import old_snapshot, with_options
from orbit.bench.stock import SECRET_SHA256, Tenant, claim_attempts, new_tenant, result_text
from orbit.bench.waits import RowWaits, sampled_waits
from orbit.journal.wake import WakeHub
from orbit.model.codes import ErrorCode
from orbit.model.errors import OrbitError
from orbit.model.limits import OPEN_TASKS_MAX
from orbit.store.database import Database
from orbit.tasks.fence import CommitMode, session_dsn
from orbit.tasks.service import Tasks

STOCK_PER_SECOND: Final = 5000
STOCK_MAX: Final = 300_000
PAGE_BYTES: Final = 8192


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """One measurement.

    Attributes:
        queues: queues of each namespace; with one, confirmations of a namespace are serial at its row already.
        commit_delay: microseconds that a flush waits for others, with `commit_siblings` 0; None leaves the server's.
        submits: measure submissions under a quota in place of confirmations.
        hold_snapshot: keep a REPEATABLE READ snapshot open meanwhile.
    """

    namespaces: int = 1
    queues: int = 1
    writers: int = 8
    seconds: float = 10.0
    result_bytes: int = 1024
    commit: CommitMode = CommitMode.PLAIN
    commit_delay: int | None = None
    submits: bool = False
    hold_snapshot: bool = False


@dataclass(frozen=True, slots=True)
class StreamFigures:
    """What one measurement came to; `per_second` counts what was committed, times are milliseconds."""

    settings: StreamSettings
    done: int
    per_second: float
    took: Spread
    waits: dict[str, RowWaits]
    lock_timeouts: int
    stream_pages_before: int
    stream_pages_after: int


@dataclass(slots=True)
class _Tally:
    times: list[float] = field(default_factory=list[float])
    lock_timeouts: int = 0
    ended: float = 0.0


async def measure(dsn: str, settings: StreamSettings) -> StreamFigures:
    """Run one measurement on an Orbit database."""
    run = uuid4().hex[:8]
    limit = OPEN_TASKS_MAX if settings.submits else None
    tenants = [
        await new_tenant(dsn, f"bench-{run}-{number}", settings.queues, max_open_tasks=limit)
        for number in range(settings.namespaces)
    ]
    options = (
        {} if settings.commit_delay is None else {"commit_delay": str(settings.commit_delay), "commit_siblings": "0"}
    )
    address = session_dsn(with_options(dsn, options) if options else dsn, settings.commit)
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(Database(address, part="bench", size_max=settings.writers + 1))
        tasks = Tasks(database, WakeHub(), settings.commit)
        works = (
            _submissions(tasks, tenants, settings)
            if settings.submits
            else _confirmations(dsn, tasks, tenants, settings)
        )
        before = await _stream_pages(dsn)
        if settings.hold_snapshot:
            _ = await stack.enter_async_context(old_snapshot(dsn))
        samples = await stack.enter_async_context(sampled_waits(dsn))
        tally = _Tally()
        started = monotonic()
        end = started + settings.seconds
        _ = await asyncio.gather(*(_write(work, end, tally) for work in works))
        per_second = len(tally.times) / max(tally.ended - started, 0.001)
    return StreamFigures(
        settings,
        len(tally.times),
        per_second,
        Spread.of(tally.times),
        samples.figures(per_second),
        tally.lock_timeouts,
        before,
        await _stream_pages(dsn),
    )


_Work = Callable[[], Awaitable[bool]]
"""Does one thing; False when there is nothing left to do."""


async def _write(work: _Work, end: float, tally: _Tally) -> None:
    while monotonic() < end:
        started = monotonic()
        try:
            if not await work():
                break
        except OrbitError as error:
            if error.code is not ErrorCode.SERVICE_BUSY:
                raise
            tally.lock_timeouts += 1
        else:
            tally.times.append(monotonic() - started)
        tally.ended = max(tally.ended, monotonic())


def _confirmations(dsn: str, tasks: Tasks, tenants: list[Tenant], settings: StreamSettings) -> list[_Work]:
    """One work per writer; the writers of a queue share its attempts."""
    per_tenant = min(STOCK_MAX, round(STOCK_PER_SECOND * settings.seconds)) // len(tenants)
    stocks = {
        queue_id: (tenant, deque(attempts))
        for tenant in tenants
        for queue_id, attempts in claim_attempts(dsn, tenant, per_tenant).items()
    }
    result = result_text(settings.result_bytes)
    places = list(stocks.values())

    def work_of(tenant: Tenant, attempts: deque[str]) -> _Work:
        async def confirm() -> bool:
            if not attempts:
                return False
            _ = await tasks.confirm(
                tenant.digest,
                attempt_id=attempts.popleft(),
                secret_sha256=SECRET_SHA256,
                outcome="succeeded",
                result_json=result,
            )
            return True

        return confirm

    return [work_of(*places[number % len(places)]) for number in range(settings.writers)]


def _submissions(tasks: Tasks, tenants: list[Tenant], settings: StreamSettings) -> list[_Work]:
    numbers = count()

    def work_of(tenant: Tenant, queue: str) -> _Work:
        async def submit() -> bool:
            key = f"bench-{next(numbers)}"
            _ = await tasks.submit(
                tenant.digest,
                queue=queue,
                input_json="{}",
                idempotency_key=key,
                request_sha256=hashlib.sha256(key.encode()).hexdigest(),
            )
            return True

        return submit

    places = [(tenant, queue) for tenant in tenants for queue in tenant.queue_names]
    return [work_of(*places[number % len(places)]) for number in range(settings.writers)]


async def _stream_pages(dsn: str) -> int:
    async with await AsyncConnection.connect(dsn, autocommit=True) as connection:
        row = await (
            await connection.execute("select pg_catalog.pg_relation_size('orbit.event_stream_locks')")
        ).fetchone()
    return 0 if row is None else int(row[0]) // PAGE_BYTES
