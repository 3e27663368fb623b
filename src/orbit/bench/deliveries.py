"""Deliveries leased and acknowledged per second, and the time from commit to handler, over real WebSockets.

The server is a process of its own; the consumers are the SDK's, one per subscription, in this process, with a handler
that only counts. The backlog was produced before.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import uuid4

import httpx
from psycopg import AsyncConnection

from orbit.bench.figures import Spread
from orbit.bench.hosting import old_snapshot
from orbit.bench.serving import serving
from orbit.bench.stock import SECRET, Tenant, claim_attempts, new_tenant, produce_results, result_text
from orbit.sdk.consumer import AsyncEventConsumer
from orbit.sdk.management import AsyncManagementClient
from orbit.sdk.values import ReceivedEvent
from orbit.tasks.fence import CommitMode

CAPACITY: Final = 32
PARTS: Final = 10
PULL_SECONDS: Final = 5.0
LOOK_SECONDS: Final = 0.01

_COMMITTED: Final = "select event_id, pg_xact_commit_timestamp(xmin) from orbit.result_events where namespace_id = %s"
_WRITTEN: Final = "select event_id, created_at from orbit.result_events where namespace_id = %s"

_Handler = Callable[[ReceivedEvent], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class DeliverySettings:
    """One measurement.

    Attributes:
        deliveries: of each subscription.
        connections: consumers of each subscription, each with a capacity of 32.
        hold_snapshot: keep a REPEATABLE READ snapshot open meanwhile.
    """

    subscriptions: int = 1
    deliveries: int = 20_000
    connections: int = 1
    result_bytes: int = 1024
    commit: CommitMode = CommitMode.FENCED
    hold_snapshot: bool = False


@dataclass(frozen=True, slots=True)
class DeliveryFigures:
    """What one measurement came to; the rates of its first and last tenth show whether it slows down."""

    settings: DeliverySettings
    per_second: float
    first_per_second: float
    last_per_second: float


@dataclass(frozen=True, slots=True)
class LatencyFigures:
    """Times from the commit of a result to its handler, at `asked` results per second; `made` is what was reached."""

    asked: float
    made: float
    took: Spread


class _Counter:
    """Counts deliveries, and knows when all of them were there."""

    def __init__(self, wanted: int) -> None:
        self.moments: list[float] = []
        self._wanted = wanted
        self.complete = asyncio.Event()

    async def handle(self, event: ReceivedEvent) -> None:
        """Take one delivery."""
        del event
        self.moments.append(time.monotonic())
        if len(self.moments) >= self._wanted:
            self.complete.set()


async def measure(dsn: str, settings: DeliverySettings) -> DeliveryFigures:
    """Let the consumers work off a backlog on an Orbit database."""
    tenant = await new_tenant(dsn, f"bench-{uuid4().hex[:8]}", 1)
    produce_results(dsn, tenant, settings.deliveries, result_text(settings.result_bytes))
    counter = _Counter(settings.deliveries * settings.subscriptions)
    with serving(dsn, settings.commit) as base_url:
        async with AsyncExitStack() as stack:
            if settings.hold_snapshot:
                await stack.enter_async_context(old_snapshot(dsn))
            started = time.monotonic()
            for number in range(settings.subscriptions):
                consumers = _consumers(
                    base_url,
                    tenant,
                    f"results-{number}",
                    counter.handle,
                    from_sequence=0,
                    connections=settings.connections,
                )
                await stack.enter_async_context(consumers)
            _ = await counter.complete.wait()
    moments = [started, *counter.moments]
    part = len(counter.moments) // PARTS
    return DeliveryFigures(
        settings,
        _rate(moments),
        _rate(moments[: part + 1]),
        _rate(moments[-part - 1 :]),
    )


async def measure_latency(
    dsn: str, *, per_second: float, seconds: float, commit: CommitMode = CommitMode.FENCED
) -> LatencyFigures:
    """Confirm results at a steady rate over HTTP, and see when their handlers start."""
    tenant = await new_tenant(dsn, f"bench-{uuid4().hex[:8]}", 1)
    (attempts,) = claim_attempts(dsn, tenant, round(per_second * seconds)).values()
    handled: dict[str, float] = {}
    complete = asyncio.Event()

    async def handle(event: ReceivedEvent) -> None:
        handled[event.event_id] = time.time()
        if len(handled) == len(attempts):
            complete.set()

    with serving(dsn, commit) as base_url:
        async with _consumers(base_url, tenant, "results", handle, from_sequence=None):
            started = time.monotonic()
            await _confirm_steadily(base_url, tenant, attempts, per_second)
            made = len(attempts) / (time.monotonic() - started)
            _ = await complete.wait()
    committed = await _commit_times(dsn, tenant)
    took = [handled[event_id] - committed[event_id] for event_id in handled]
    return LatencyFigures(per_second, made, Spread.of(took))


@asynccontextmanager
async def _consumers(
    base_url: str, tenant: Tenant, name: str, handle: _Handler, *, from_sequence: int | None, connections: int = 1
) -> AsyncGenerator[None]:
    """A subscription and its consumers, connected when the block begins.

    Its window is what they can hold: a delivery made before somebody can take it is written once more.
    """
    async with AsyncManagementClient(base_url, tenant.token) as management:
        made = await management.create_subscription(
            name=name, queue=tenant.queue_names[0], from_sequence=from_sequence, max_pending=connections * CAPACITY
        )
    consumers = [
        AsyncEventConsumer(base_url, tenant.token, made.subscription_id, handle, capacity=CAPACITY, wait=PULL_SECONDS)
        for _ in range(connections)
    ]
    running = [asyncio.create_task(consumer.run()) for consumer in consumers]
    while not all(one.stats.connected for one in consumers) and not any(task.done() for task in running):  # noqa: ASYNC110 - the SDK has no event for it
        await asyncio.sleep(LOOK_SECONDS)
    try:
        yield
    finally:
        _ = await asyncio.gather(*(consumer.stop() for consumer in consumers))
        _ = await asyncio.gather(*running)


async def _confirm_steadily(base_url: str, tenant: Tenant, attempts: list[str], per_second: float) -> None:
    body = {"lease_secret": SECRET, "outcome": "succeeded", "result": {"order": 1}}
    async with httpx.AsyncClient(
        base_url=base_url, headers={"Authorization": f"Bearer {tenant.token}"}, timeout=30.0
    ) as client:

        async def confirm(attempt_id: str) -> None:
            answer = await client.post(f"/v1/worker/attempts/{attempt_id}/result", json=body)
            _ = answer.raise_for_status()

        started = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for number, attempt_id in enumerate(attempts):
                await asyncio.sleep(max(0.0, started + number / per_second - time.monotonic()))
                _ = group.create_task(confirm(attempt_id))


async def _commit_times(dsn: str, tenant: Tenant) -> dict[str, float]:
    """When each result was committed, in Unix seconds; without `track_commit_timestamp`, when it was written."""
    async with await AsyncConnection.connect(dsn, autocommit=True) as connection:
        setting = await (await connection.execute("select current_setting('track_commit_timestamp')")).fetchone()
        query = _COMMITTED if setting == ("on",) else _WRITTEN
        rows: list[tuple[str, datetime]] = await (await connection.execute(query, (tenant.namespace_id,))).fetchall()
    return {event_id: at.timestamp() for event_id, at in rows}


def _rate(moments: list[float]) -> float:
    return (len(moments) - 1) / max(moments[-1] - moments[0], 0.001)
