"""Which measurements make a run, and how they are carried out (P6-05)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Final

from orbit.bench import deliveries, result_stream
from orbit.bench.deliveries import DeliverySettings
from orbit.bench.hosting import bench_database, bench_server
from orbit.bench.result_stream import StreamSettings
from orbit.bench.tables import OrbitFigures, described
from orbit.tasks.fence import CommitMode

LATENCY_PER_SECOND: Final = 100.0
COMMIT_DELAY_MICROSECONDS: Final = 2000
LARGE_RESULTS: Final = (102_400, 1_048_576)


@dataclass(frozen=True, slots=True)
class OrbitSizes:
    """Sizes of one run.

    Attributes:
        seconds: of each measurement of the stream, and of latency.
        writers: numbers of writers.
        deliveries: of each subscription.
        churn: deliveries made and acknowledged behind an old snapshot.
    """

    seconds: float
    writers: tuple[int, ...]
    deliveries: int
    churn: int


FULL: Final = OrbitSizes(seconds=5.0, writers=(1, 2, 4, 8, 16, 32), deliveries=20_000, churn=100_000)
QUICK: Final = OrbitSizes(seconds=0.5, writers=(1, 8), deliveries=1_000, churn=2_000)


def streams(sizes: OrbitSizes) -> Iterator[StreamSettings]:
    """Every measurement of the result stream, in the order of the report."""
    plain = StreamSettings(seconds=sizes.seconds)
    for number in sizes.writers:
        yield replace(plain, writers=number)
        yield replace(plain, writers=number, commit=CommitMode.FENCED)
        yield replace(plain, writers=number, commit_delay=COMMIT_DELAY_MICROSECONDS)
        yield replace(plain, writers=number, commit=CommitMode.FENCED, commit_delay=COMMIT_DELAY_MICROSECONDS)
    several = replace(plain, writers=sizes.writers[-1])
    for commit in CommitMode:
        yield replace(several, commit=commit, queues=8)
        yield replace(several, commit=commit, namespaces=4)
    yield replace(several, hold_snapshot=True)
    for size in LARGE_RESULTS:
        yield replace(several, result_bytes=size)
    yield replace(several, submits=True)


def backlogs(sizes: OrbitSizes) -> Iterator[DeliverySettings]:
    """Every measurement of deliveries."""
    yield DeliverySettings(1, sizes.deliveries)
    yield DeliverySettings(1, sizes.deliveries, connections=2)
    yield DeliverySettings(4, sizes.deliveries)
    yield DeliverySettings(1, sizes.churn)
    yield DeliverySettings(1, sizes.churn, hold_snapshot=True)


def measure(sizes: OrbitSizes, dsn: str | None, say: Callable[[str], None]) -> OrbitFigures:
    """Carry a run out on a server of its own, or on the one of `dsn`; each measurement has a new database."""
    with ExitStack() as stack:
        server = stack.enter_context(bench_server(dsn))
        found_streams: list[result_stream.StreamFigures] = []
        for stream in streams(sizes):
            say(f"orbit: {stream.writers} writers, {described(stream)}")
            with bench_database(server) as database:
                found_streams.append(asyncio.run(result_stream.measure(database, stream)))
        found_deliveries: list[deliveries.DeliveryFigures] = []
        for backlog in backlogs(sizes):
            say(f"orbit: {backlog.subscriptions} subscriptions, {backlog.deliveries} deliveries each")
            with bench_database(server) as database:
                found_deliveries.append(asyncio.run(deliveries.measure(database, backlog)))
        say("orbit: latency from commit to handler")
        with bench_database(server) as database:
            latency = asyncio.run(
                deliveries.measure_latency(database, per_second=LATENCY_PER_SECOND, seconds=max(2.0, sizes.seconds))
            )
    return OrbitFigures(found_streams, found_deliveries, [latency])
