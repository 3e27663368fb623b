"""Who waits for whom: a healthy destination beside dead ones, quiet tenants beside a loud one (F23).

`python -m benchmarks.isolation` prints latencies from the commit of an append to the end of the consumer's call, in
milliseconds, and the claims that one event needs behind a long backlog. The consumers answer after a fixed time and are
in the process of the dispatcher, so that only the kernel is measured.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

import psycopg
from rich.console import Console
from rich.table import Table

from benchmarks.server import fresh_database, measured_server
from seapost.contracts.envelope import PreparedEvent, Tenant, build_envelope
from seapost.contracts.events import Event
from seapost.database.installer import GuardLevel, migrate
from seapost.database.pool import open_pool
from seapost.dispatcher.destination import Destination
from seapost.dispatcher.dispatcher import Dispatcher
from seapost.dispatcher.settings import DestinationSettings, DispatcherSettings, pool_size
from seapost.inbox.receipts import ConsumerReceiptWriter, ReceiptSubject
from seapost.model.delivery import Claim
from seapost.model.outcome import Outcome
from seapost.outbox import routes
from seapost.outbox.application import Application
from seapost.store import delivery, destination, outbox
from seapost.telemetry import logging
from seapost.telemetry.metrics import Metrics
from seapost.transport.protocol import Transport

SECONDS: Final = float(os.environ.get("BENCH_SECONDS", "8"))
WARM_UP_SECONDS: Final = 1.0
TIMEOUT_SECONDS: Final = 1.0
OUTAGE_SECONDS: Final = 8.0
TICK_SECONDS: Final = 0.01
BACKLOG: Final = 100_000
LANES: Final = 64
DEAD_DESTINATIONS: Final = 50
RATE: Final = 100.0
QUIET_TENANTS: Final = 9
TENANT_RATE: Final = 12.0
LOUD: Final = 100.0

Connection = psycopg.AsyncConnection[Any]


class Healthy(Event, type="bench.healthy@1", producer="bench", aggregate="bench"):
    """An event for the destination that answers."""

    number: int


class Dead(Event, type="bench.dead@1", producer="bench", aggregate="bench"):
    """An event for the one destination that hangs."""

    number: int


class AllDead(Event, type="bench.all-dead@1", producer="bench", aggregate="bench"):
    """An event for fifty destinations that hang."""

    number: int


DEAD_NAMES: Final = [f"dead-{number}" for number in range(DEAD_DESTINATIONS)]
APPLICATION: Final = Application("isolation")
APPLICATION.route(Healthy, "healthy")
APPLICATION.route(Dead, DEAD_NAMES[0])
APPLICATION.route(AllDead, *DEAD_NAMES)


@dataclass(slots=True)
class Consumer:
    """Acknowledges after `seconds` and notes when it was done with which event."""

    seconds: float
    done: dict[UUID, float] = field(default_factory=dict[UUID, float])
    _writer: ConsumerReceiptWriter = field(default_factory=lambda: ConsumerReceiptWriter("healthy", "healthy"))

    async def deliver(self, claims: Sequence[Claim], *, timeout_seconds: float) -> Sequence[Outcome]:
        """Take as long for many as for one, like a consumer whose cost is the round trip."""
        del timeout_seconds
        await asyncio.sleep(self.seconds)
        now = time.monotonic()
        self.done.update((claim.fence.event_id, now) for claim in claims)
        return [self._answer(claim) for claim in claims]

    async def aclose(self) -> None:
        """Nothing is held."""

    def _answer(self, claim: Claim) -> Outcome:
        member, digest = claim.member, claim.event_digest.hex()
        subject = ReceiptSubject(str(claim.fence.event_id), member.event_type, member.schema_version, digest)
        return self._writer.answer(
            subject,
            candidate=self._writer.candidate(subject),
            reference=self._writer.reference(subject),
            committed_at=claim.available_at,
        )


class Hanging:
    """Never answers."""

    async def deliver(self, claims: Sequence[Claim], *, timeout_seconds: float) -> Sequence[Outcome]:
        """Hang until cancelled."""
        del claims, timeout_seconds
        await asyncio.Event().wait()
        raise AssertionError

    async def aclose(self) -> None:
        """Nothing is held."""


@dataclass(frozen=True, slots=True)
class Source:
    """Events of one tenant and kind at a rate per second; `watched`: their latency is what is asked for."""

    kind: type[Healthy | Dead | AllDead]
    tenant: str
    rate: float
    watched: bool = True


@asynccontextmanager
async def _dispatching(dsn: str, lines: Sequence[tuple[DestinationSettings, Transport]]) -> AsyncGenerator[None]:
    settings = DispatcherSettings(drain_seconds=0.1)
    size = pool_size([line for line, _ in lines])
    async with open_pool(dsn, part="dispatcher", size_max=size, role="seapost_dispatcher") as pool:
        dispatcher = Dispatcher(
            pool,
            [Destination(line, transport) for line, transport in lines],
            listen_dsn=dsn,
            listen_role="seapost_dispatcher",
            settings=settings,
            metrics=Metrics(),
        )
        task = asyncio.create_task(dispatcher.run())
        try:
            yield
        finally:
            dispatcher.stop()
            await task


async def _produce(dsn: str, sources: Sequence[Source], seconds: float, warm_up_seconds: float) -> dict[UUID, float]:
    """Append at the rates of all sources, a commit per tick; when each watched event was committed."""
    committed: dict[UUID, float] = {}
    owed = [0.0] * len(sources)
    number = 0
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        started = last = time.monotonic()
        while last - started < warm_up_seconds + seconds:
            await asyncio.sleep(TICK_SECONDS)
            now = time.monotonic()
            prepared: list[tuple[PreparedEvent, bool]] = []
            for position, source in enumerate(sources):
                owed[position] += (now - last) * source.rate
                whole, owed[position] = int(owed[position]), owed[position] % 1.0
                for _ in range(whole):
                    number += 1
                    prepared.append((_event(source.kind, source.tenant, number), source.watched))
            last = now
            if prepared:
                _ = await outbox.append_async(connection, [one.envelope for one, _ in prepared])
                if now - started > warm_up_seconds:
                    moment = time.monotonic()
                    committed.update((UUID(str(one.event_id)), moment) for one, watched in prepared if watched)
    return committed


def _event(kind: type[Healthy | Dead | AllDead], tenant: str, number: int) -> PreparedEvent:
    owner = Tenant(id=tenant, workspace_id="main", kind="organization")
    return build_envelope(kind(number=number), key=f"bench-{number}", revision=1, tenant=owner)


async def _latencies(
    dsn: str,
    settings: DestinationSettings,
    consumer_seconds: float,
    sources: Sequence[Source],
    *,
    dead: Sequence[str] = (),
    warm_up_seconds: float = WARM_UP_SECONDS,
) -> list[float]:
    """Milliseconds from commit to the end of the call, of the watched events; what still waits counts as of now."""
    consumer = Consumer(consumer_seconds)
    hanging = [(DestinationSettings(name=name, timeout_seconds=TIMEOUT_SECONDS), Hanging()) for name in dead]
    async with _dispatching(dsn, [(settings, consumer), *hanging]):
        committed = await _produce(dsn, sources, SECONDS, warm_up_seconds)
        await asyncio.sleep(0.2)
        now = time.monotonic()
        return [(consumer.done.get(event_id, now) - moment) * 1_000 for event_id, moment in committed.items()]


async def _claims_needed(dsn: str, *, batch: int, claims_max: int) -> int | None:
    """Claims until the one event of tenant B comes, behind `BACKLOG` events of tenant A; None: not within the limit."""
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        for start in range(0, BACKLOG, 1_000):
            events = [_event(Healthy, "a", number).envelope for number in range(start, start + 1_000)]
            _ = await outbox.append_async(connection, events)
        lone = _event(Healthy, "b", BACKLOG)
        _ = await outbox.append_async(connection, [lone.envelope])
        for number in range(1, claims_max + 1):
            claims = await delivery.claim(
                connection,
                destination="healthy",
                limit=batch,
                owner="bench",
                lease_seconds=3_600,
                low=None,
                suspects=False,
                members={},
            )
            if any(str(claim.fence.event_id) == str(lone.event_id) for claim in claims):
                return number
    return None


async def _fair(dsn: str, lanes: int) -> None:
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        await destination.set_fair_lanes(connection, destination="healthy", fair_lanes=lanes, actor="bench")


async def _activate(dsn: str) -> None:
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        definition = APPLICATION.definition("1")
        await routes.apply(connection, definition, source_release="bench", actor="bench")


def _run(server: str, work: Callable[[str], Awaitable[Any]]) -> Any:  # noqa: ANN401 - what the work returns
    """One measurement in a database of its own."""
    with fresh_database(server) as dsn:
        _ = migrate(dsn, guards=GuardLevel.LEAN)

        async def run() -> Any:  # noqa: ANN401 - what the work returns
            await _activate(dsn)
            return await work(dsn)

        return asyncio.run(run())


def _row(table: Table, name: str, found: Sequence[float], baseline: Sequence[float] | None = None) -> None:
    cells: list[str] = []
    for percent in (50, 95, 99):
        value = _percentile(found, percent)
        cells.append(f"{value:,.1f}" + (f" ({value / _percentile(baseline, percent):.2f} ×)" if baseline else ""))
    table.add_row(name, str(len(found)), *cells)


def _percentile(values: Sequence[float], percent: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


def _destinations(server: str, table: Table) -> None:
    """The healthy destination alone, beside a dead one, beside fifty: when the outage begins, and while it lasts."""
    healthy = DestinationSettings(name="healthy")
    steady = Source(Healthy, "a", RATE)

    def measure(*others: Source, dead: Sequence[str] = (), warm_up_seconds: float = WARM_UP_SECONDS) -> list[float]:
        return _run(
            server,
            lambda dsn: _latencies(dsn, healthy, 0.005, [steady, *others], dead=dead, warm_up_seconds=warm_up_seconds),
        )

    alone = measure()
    _row(table, "healthy destination, alone", alone)
    one, fifty = Source(Dead, "a", RATE, watched=False), Source(AllDead, "a", 2.0, watched=False)
    for name, other, dead in (
        ("one that hangs, the same load on it", one, DEAD_NAMES[:1]),
        (f"{DEAD_DESTINATIONS} that hang, the same load on all together", fifty, DEAD_NAMES),
    ):
        _row(table, f"beside {name}, at first", measure(other, dead=dead), alone)
        later = measure(other, dead=dead, warm_up_seconds=OUTAGE_SECONDS)
        _row(table, f"beside {name}, from second {OUTAGE_SECONDS:g} on", later, alone)


def _tenants(server: str, table: Table) -> None:
    """Nine quiet tenants beside one that is as loud as they are, or a hundred times as loud."""
    settings = DestinationSettings(name="healthy", batch_size=5, lanes=4)
    quiet = [Source(Healthy, f"quiet-{number}", TENANT_RATE) for number in range(QUIET_TENANTS)]
    for lanes in (1, LANES):

        def measure(loudness: float, lanes: int = lanes) -> list[float]:
            async def work(dsn: str) -> list[float]:
                await _fair(dsn, lanes)
                loud = Source(Healthy, "loud", TENANT_RATE * loudness, watched=False)
                return await _latencies(dsn, settings, 0.02, [*quiet, loud])

            return _run(server, work)

        equal = measure(1.0)
        _row(table, f"{lanes} fair lanes: quiet tenants, all alike", equal)
        _row(table, f"{lanes} fair lanes: quiet tenants, one has {LOUD:g} × the load", measure(LOUD), equal)


def _backlogs(server: str, console: Console) -> None:
    for lanes in (1, LANES):

        async def work(dsn: str, lanes: int = lanes) -> int | None:
            await _fair(dsn, lanes)
            return await _claims_needed(dsn, batch=500, claims_max=BACKLOG // 500 + 1)

        console.print(
            f"{lanes} fair lanes: one event behind {BACKLOG:,} of another tenant comes with claim {_run(server, work)}"
        )


def main() -> None:
    """Measure and print."""
    logging.configure("error")
    console = Console(width=120)
    with measured_server(os.environ.get("BENCH_DSN")) as server:
        table = Table(title=f"commit to end of call, ms, {SECONDS:g} s each")
        for column in ("", "events", "p50", "p95", "p99"):
            table.add_column(column, justify="left" if not column else "right")
        _destinations(server, table)
        _tenants(server, table)
        console.print(table)
        _backlogs(server, console)


if __name__ == "__main__":
    main()
