"""The producer: each flight goes into its own table, and its event into the outbox, in one transaction.

It runs as a process of its own. Now and then it changes its mind and rolls a transaction back after the append; the
flights of that transaction must be heard of by nobody until they are written again. When its session is terminated it
looks into its own table, which knows what was committed, and goes on from there: no event is ever appended twice.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Final
from uuid import UUID

import psycopg

import seapost
from examples.flights.data import Row, Selection, read_rows
from examples.flights.events import FlightCancelled, FlightCompleted

SETTINGS_VARIABLE: Final = "FLIGHTS_PRODUCER"
DSN_VARIABLE: Final = "FLIGHTS_PRODUCER_DSN"
APPLICATION_NAME: Final = "flights-producer"
BATCH_MIN: Final = 20
BATCH_MAX: Final = 250
TAKEN_BACK_SHARE: Final = 0.08
ALWAYS_TAKEN_BACK: Final = 2
"""The second transaction always is, so that even a short run shows one."""
RECONNECTS_MAX: Final = 100
RECONNECT_SECONDS: Final = 0.2
ABSENT: Final = "NA"

_INSERT: Final = """
insert into flight (flight_id, flight_key, carrier, origin, destination, cancelled, event_id)
select * from unnest(%s::int[], %s::text[], %s::text[], %s::text[], %s::text[], %s::boolean[], %s::uuid[])"""


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    """What to append and how fast.

    Attributes:
        flights: the selection, as text.
        seed: decides the size of each transaction and which are taken back.
        flights_per_second: the pace on average.
    """

    flights: str
    seed: int
    flights_per_second: float

    def to_environment(self, dsn: str) -> dict[str, str]:
        """What the producer's process finds in its environment; the connection string may hold a password."""
        return {SETTINGS_VARIABLE: json.dumps(asdict(self)), DSN_VARIABLE: dsn}


@dataclass(frozen=True, slots=True)
class Flight:
    """One line of the file, ready to be stored and told."""

    flight_id: int
    key: str
    event: FlightCompleted | FlightCancelled


class ChangedMind(Exception):
    """The producer takes back the transaction that it is in."""


def read_flight(flight_id: int, row: Row) -> Flight:
    """Turn one line of the file into the flight and its event."""
    key = f"2013-{int(row['month']):02d}-{int(row['day']):02d}/{row['carrier']}{row['flight']}/{row['origin']}"
    if row["dep_time"] == ABSENT:
        return Flight(
            flight_id, key, FlightCancelled(carrier=row["carrier"], origin=row["origin"], destination=row["dest"])
        )
    return Flight(
        flight_id,
        key,
        FlightCompleted(
            carrier=row["carrier"],
            origin=row["origin"],
            destination=row["dest"],
            distance_miles=int(row["distance"]),
            tailnum=None if row["tailnum"] == ABSENT else row["tailnum"],
            arrival_delay_minutes=None if row["arr_delay"] == ABSENT else int(row["arr_delay"]),
        ),
    )


def store(connection: psycopg.Connection, flights: list[Flight]) -> list[seapost.PreparedEvent]:
    """Write flights and append their events; the caller owns the transaction."""
    events = [seapost.prepare(flight.event, key=flight.key, revision=1) for flight in flights]
    rows = [
        (
            flight.flight_id,
            flight.key,
            flight.event.carrier,
            flight.event.origin,
            flight.event.destination,
            isinstance(flight.event, FlightCancelled),
            event.event_id,
        )
        for flight, event in zip(flights, events, strict=True)
    ]
    _ = connection.execute(_INSERT, [list(column) for column in zip(*rows, strict=True)])
    _ = seapost.append_many(connection, events)
    return events


def take_back(connection: psycopg.Connection, flights: list[Flight]) -> None:
    """Write flights and events, roll it all back, and note the events that must never be seen."""
    seen: list[UUID] = []
    try:
        with connection.transaction():
            seen = [event.event_id for event in store(connection, flights)]
            raise ChangedMind
    except ChangedMind:
        _ = connection.execute("insert into taken_back (event_id) select unnest(%s::uuid[])", (seen,))


def produce(dsn: str, settings: ProducerSettings) -> None:
    """Append every chosen flight once, at the given pace."""
    rng = random.Random(settings.seed)
    flights = (read_flight(number, row) for number, row in enumerate(read_rows(Selection.parse(settings.flights)), 1))
    pace = threading.Event()
    started = time.monotonic()
    done = 0
    connection = _connect(dsn)
    for number, batch in enumerate(_batches(flights, rng), 1):
        take_back_first = rng.random() < TAKEN_BACK_SHARE or number == ALWAYS_TAKEN_BACK
        for _ in range(RECONNECTS_MAX):
            try:
                if take_back_first:
                    take_back(connection, batch)
                    take_back_first = False
                with connection.transaction():
                    _ = store(connection, batch)
                break
            except psycopg.OperationalError:
                connection.close()
                connection = _connect(dsn)
                if _is_stored(connection, batch):
                    break
        done += len(batch)
        _ = pace.wait(max(0.0, started + done / settings.flights_per_second - time.monotonic()))
    connection.close()


def _batches(flights: Iterator[Flight], rng: random.Random) -> Iterator[list[Flight]]:
    while batch := list(islice(flights, rng.randint(BATCH_MIN, BATCH_MAX))):
        yield batch


def _connect(dsn: str) -> psycopg.Connection:
    pause = threading.Event()
    for _ in range(RECONNECTS_MAX):
        try:
            return psycopg.connect(dsn, autocommit=True, application_name=APPLICATION_NAME)
        except psycopg.OperationalError:
            _ = pause.wait(RECONNECT_SECONDS)
    return psycopg.connect(dsn, autocommit=True, application_name=APPLICATION_NAME)


def _is_stored(connection: psycopg.Connection, batch: list[Flight]) -> bool:
    """Whether the transaction whose answer was lost had been committed: all of it or none of it."""
    row = connection.execute(
        "select exists (select from flight where flight_id = %s)", (batch[0].flight_id,)
    ).fetchone()
    return bool(row and row[0])


def main() -> int:
    """Run in a process of its own, with settings from the environment."""
    produce(os.environ[DSN_VARIABLE], ProducerSettings(**json.loads(os.environ[SETTINGS_VARIABLE])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
