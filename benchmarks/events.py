"""What the workloads append and receive: two events of about one kilobyte, their routes, and the usual consumer."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import psycopg

from benchmarks.server import fresh_database
from seapost.contracts.envelope import SINGLE_TENANT, PreparedEvent, build_envelope
from seapost.contracts.events import Event
from seapost.database.installer import GuardLevel, migrate
from seapost.outbox import routes
from seapost.outbox.application import Application

ENVELOPE_BYTES: Final = 1_024


class Measured(Event, type="bench.measured@1", producer="bench", aggregate="bench"):
    """An event for one destination."""

    number: int
    filler: str


class MeasuredTwice(Event, type="bench.measured-twice@1", producer="bench", aggregate="bench"):
    """An event for two destinations."""

    number: int
    filler: str


Kind = type[Measured] | type[MeasuredTwice]

APPLICATION: Final = Application("bench")
APPLICATION.route(Measured, "one")
APPLICATION.route(MeasuredTwice, "left", "right")


def prepare(kind: Kind, first: int, count: int) -> list[PreparedEvent]:
    """Prepared events numbered from `first`; each envelope has about `ENVELOPE_BYTES`."""
    empty = build_envelope(kind(number=first, filler=""), key="bench-0", revision=1, tenant=SINGLE_TENANT)
    filler = "x" * (ENVELOPE_BYTES - len(empty.envelope))
    return [
        build_envelope(kind(number=number, filler=filler), key="bench-0", revision=1, tenant=SINGLE_TENANT)
        for number in range(first, first + count)
    ]


@contextmanager
def kernel_database(dsn: str) -> Generator[str]:
    """A migrated database of its own with the benchmark's routes active."""
    with fresh_database(dsn) as target:
        install(target)
        yield target


def install(dsn: str) -> None:
    """Migrate an empty database at guard level lean and activate the routes; not inside an event loop."""
    _ = migrate(dsn, guards=GuardLevel.LEAN)
    asyncio.run(_activate(dsn))


async def _activate(dsn: str) -> None:
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        definition = APPLICATION.definition("1")
        await routes.apply(connection, definition, source_release="bench", actor="bench")
