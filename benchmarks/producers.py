"""Many producers at once: what it costs them that a sleeping dispatcher can be woken.

Each client appends one event per transaction. Three databases take turns: one whose append never notifies (its function
is replaced, for this measurement only), one as it ships with nobody asleep, and one where a dispatcher has declared
sleep for the whole time, so that every commit notifies: the worst case, which lasts only until the dispatcher wakes.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from typing import Any, Final

import psycopg

from benchmarks.events import Measured, kernel_database, prepare
from seapost.contracts.envelope import PreparedEvent
from seapost.outbox.append import append_many_async
from seapost.store import dispatcher as sleep_store

CLIENTS: Final = 32
TRIAL_SECONDS: Final = 0.5
TRIAL_EVENTS: Final = 20_000
RATE_MARGIN: Final = 2

NEVER: Final = (
    "create or replace function seapost.outbox_notify_sleepers(p_destinations text[]) returns void"
    " language plpgsql as 'begin end'"
)
KNOWN: Final = "select to_regprocedure('seapost.outbox_notify_sleepers(text[])') is not null"


@dataclass(frozen=True, slots=True)
class Producers:
    """Events per second of all clients together, medians."""

    never: float
    shipped: float
    asleep: float


def measure(dsn: str, seconds: float, repetitions: int) -> Producers | None:
    """Interleaved; None when this release wakes dispatchers by another function than the one replaced here."""
    with ExitStack() as stack:
        never, shipped, asleep = (stack.enter_context(kernel_database(dsn)) for _ in range(3))
        with psycopg.connect(never, autocommit=True) as connection:
            known = connection.execute(KNOWN).fetchone()
            if known is None or not known[0]:
                return None
            _ = connection.execute(NEVER)
        return asyncio.run(_measure((never, shipped, asleep), seconds, repetitions))


async def _measure(databases: tuple[str, str, str], seconds: float, repetitions: int) -> Producers:
    rates: list[list[float]] = [[], [], []]
    async with AsyncExitStack() as stack:
        clients = [
            [
                await stack.enter_async_context(await psycopg.AsyncConnection.connect(dsn, autocommit=True))
                for _ in range(CLIENTS)
            ]
            for dsn in databases
        ]
        sleeper = await stack.enter_async_context(await psycopg.AsyncConnection.connect(databases[2], autocommit=True))
        _ = await sleeper.execute("listen seapost")
        if not await sleep_store.sleep(sleeper, "one"):
            message = "sleep could not be declared"
            raise RuntimeError(message)
        trial = await _rate(clients[0], TRIAL_SECONDS, TRIAL_EVENTS)
        events = int(trial * seconds * RATE_MARGIN) + CLIENTS
        for _ in range(repetitions):
            for place, group in enumerate(clients):
                rates[place].append(await _rate(group, seconds, events))
    return Producers(*(statistics.median(found) for found in rates))


async def _rate(clients: list[psycopg.AsyncConnection[Any]], seconds: float, count: int) -> float:
    """Events per second of these clients; they stop when the time is up or nothing prepared is left."""
    waiting = prepare(Measured, 0, count)
    started = time.monotonic()
    done = await asyncio.gather(*(_produce(client, waiting, started + seconds) for client in clients))
    return sum(done) / (time.monotonic() - started)


async def _produce(client: psycopg.AsyncConnection[Any], waiting: list[PreparedEvent], until: float) -> int:
    done = 0
    while waiting and time.monotonic() < until:
        event = waiting.pop()
        async with client.transaction():
            _ = await append_many_async(client, [event])
        done += 1
    return done
