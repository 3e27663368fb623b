"""The two consumers: each keeps counters, because a counter gives away whoever counts twice.

The handlers do nothing about repeated events. They add one to a row and return; that addition and receipt of the
event commit together is the inbox's business. Run one with `seapost serve examples.flights.consumers:punctuality`.
"""

from __future__ import annotations

from typing import Any

import psycopg

import seapost
from examples.flights.events import MILEAGE, PUNCTUALITY, FlightCancelled, FlightCompleted

ON_TIME_MINUTES_MAX = 15

punctuality = seapost.Inbox(PUNCTUALITY)
mileage = seapost.Inbox(MILEAGE)

# Every event of a batch adds to one of few rows, so two batches at a time would lock the same rows in different orders.
# They take turns instead: the first statement of a transaction waits for the other transaction to end.

Transaction = psycopg.Connection[Any]


@punctuality.consumer(FlightCompleted)
def count_completed(transaction: Transaction, event: FlightCompleted) -> None:
    """A flight left: one more flight of its carrier, on time or not, with its delay."""
    delay = event.arrival_delay_minutes
    _ = transaction.execute(
        """
        with turn as materialized (select pg_advisory_xact_lock(hashtext('punctuality')))
        insert into punctuality as p (carrier, flights, on_time, delay_minutes)
        select %s, 1, %s, %s from turn
        on conflict (carrier) do update set
            flights = p.flights + 1,
            on_time = p.on_time + excluded.on_time,
            delay_minutes = p.delay_minutes + excluded.delay_minutes""",
        (event.carrier, int(delay is not None and delay <= ON_TIME_MINUTES_MAX), delay or 0),
    )


@punctuality.consumer(FlightCancelled)
def count_cancelled(transaction: Transaction, event: FlightCancelled) -> None:
    """A flight never left: one more cancellation of its carrier."""
    _ = transaction.execute(
        """
        with turn as materialized (select pg_advisory_xact_lock(hashtext('punctuality')))
        insert into punctuality as p (carrier, cancelled)
        select %s, 1 from turn
        on conflict (carrier) do update set cancelled = p.cancelled + 1""",
        (event.carrier,),
    )


@mileage.consumer(FlightCompleted)
def count_miles(transaction: Transaction, event: FlightCompleted) -> None:
    """A flight left: its miles go to its aircraft, or to the row of those whose tail number nobody wrote down."""
    _ = transaction.execute(
        """
        with turn as materialized (select pg_advisory_xact_lock(hashtext('mileage')))
        insert into mileage as m (tailnum, flights, miles)
        select %s, 1, %s from turn
        on conflict (tailnum) do update set flights = m.flights + 1, miles = m.miles + excluded.miles""",
        (event.tailnum or "(none)", event.distance_miles),
    )
