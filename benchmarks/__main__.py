"""`make bench`: every workload beside its raw limit, interleaved, medians, one table.

Counters may gate a change, seconds never do.
The report says where we lose. Absolute rates of one machine move by two from hour to hour: believe the ratios.
"""

from __future__ import annotations

import asyncio
import json
import platform
import statistics
import tempfile
from contextlib import ExitStack, asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import psycopg
from psycopg import conninfo, sql
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks import workloads
from benchmarks.settings import Settings
from seapost.database.embedded import EmbeddedServer
from seapost.database.installer import migrate
from seapost.outbox import routes

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

Workload = tuple[str, str | None, "Callable[[psycopg.AsyncConnection[Any]], Awaitable[workloads.Timing]]"]

REPORT = Path("build/bench.json")


def main() -> None:
    """Measure and print."""
    settings = Settings.from_environment()
    with ExitStack() as stack:
        dsn = settings.dsn or _embedded(stack)
        with Progress(transient=True) as progress:
            rates, version = asyncio.run(_measure(settings, dsn, progress))
    _report(settings, rates, version)


def _embedded(stack: ExitStack) -> str:
    directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="seapost-bench-"))
    Path(directory).chmod(0o755)  # as root, the server runs as a user of its own and must get in
    memory = {"shared_buffers": "1GB", "max_wal_size": "8GB"}
    server = stack.enter_context(EmbeddedServer(Path(directory) / "data", settings=memory))
    return server.dsn()


async def _measure(settings: Settings, dsn: str, progress: Progress) -> tuple[dict[str, list[float]], str]:
    one = workloads.envelopes(workloads.Measured, 1, settings.payload_bytes)  # warms the imports up
    plan = _workloads(settings)
    rates: dict[str, list[float]] = {name: [] for name, _, _ in plan}
    task = progress.add_task("measuring", total=settings.repetitions * len(plan))
    async with _database(dsn) as connection:
        _ = await workloads.append(connection, one, 1)
        _ = await workloads.drain(connection, "one", 1)
        for _ in range(settings.repetitions):
            for name, _, run in plan:
                rates[name].append((await run(connection)).rate)
                progress.advance(task)
        return rates, str(connection.info.server_version)


def _workloads(settings: Settings) -> list[Workload]:
    """The workloads in their order: each drain empties what the appends before it left."""
    count, size = settings.events, settings.payload_bytes
    single = max(200, count // 10)

    def one(number: int) -> list[bytes]:
        return workloads.envelopes(workloads.Measured, number, size)

    def two(number: int) -> list[bytes]:
        return workloads.envelopes(workloads.MeasuredTwice, number, size)

    return [
        ("raw insert, 1 per transaction", None, lambda c: workloads.raw_append(c, one(single), 1)),
        ("append, 1 per transaction", "raw insert, 1 per transaction", lambda c: workloads.append(c, one(single), 1)),
        ("raw insert, 100 per transaction", None, lambda c: workloads.raw_append(c, one(count), 100)),
        (
            "append, 100 per transaction",
            "raw insert, 100 per transaction",
            lambda c: workloads.append(c, one(count), 100),
        ),
        (
            "append, 100 per transaction, 2 destinations",
            "raw insert, 100 per transaction",
            lambda c: workloads.append(c, two(count // 2), 100),
        ),
        ("raw loop, batch 100", None, lambda c: workloads.raw_drain(c, one(count), 100)),
        ("drain with inbox, batch 100", "raw loop, batch 100", lambda c: workloads.drain(c, "one", 100)),
        ("drain with inbox, 2 destinations, first", "raw loop, batch 100", lambda c: workloads.drain(c, "left", 100)),
        ("drain with inbox, 2 destinations, last", "raw loop, batch 100", lambda c: workloads.drain(c, "right", 100)),
    ]


@asynccontextmanager
async def _database(dsn: str) -> AsyncGenerator[psycopg.AsyncConnection[Any]]:
    """A migrated database of its own with the benchmark's routes active, dropped at the end."""
    name = f"seapost_bench_{uuid4().hex[:12]}"
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as admin:
        _ = await admin.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        try:
            target = conninfo.make_conninfo(dsn, dbname=name)
            _ = await asyncio.to_thread(migrate, target)
            async with await psycopg.AsyncConnection.connect(target, autocommit=True) as connection:
                definition = workloads.APPLICATION.definition("1")
                await routes.apply(connection, definition, source_release="bench", actor="bench")
                yield connection
        finally:
            _ = await admin.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


def _report(settings: Settings, rates: dict[str, list[float]], version: str) -> None:
    medians = {name: statistics.median(values) for name, values in rates.items()}
    limits = {name: limit for name, limit, _ in _workloads(settings)}
    table = Table(title=f"medians of {settings.repetitions}, PostgreSQL {version}, {settings.events} events")
    for column in ("workload", "per second", "of the raw limit"):
        table.add_column(column, justify="left" if column == "workload" else "right")
    for name, rate in medians.items():
        limit = limits[name]
        table.add_row(name, f"{rate:,.0f}", "" if limit is None else f"{rate / medians[limit]:.2f}")
    Console().print(table)
    REPORT.parent.mkdir(exist_ok=True)
    facts = asdict(settings) | {"dsn": None, "postgresql": version, "python": platform.python_version()}
    _ = REPORT.write_text(json.dumps({"settings": facts, "per_second": rates}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
