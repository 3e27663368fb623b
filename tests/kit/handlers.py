"""The consumers of the fault tests: two events, their handlers, and a record on their side that outlives any crash.

A handler adds one row to `effect` for its event, without a unique key: an event applied twice shows as two rows. What
was asked of a consumer stands in `call`, what it answered in `answer`, each committed on its own, so that they still
say so when the process that wrote them is gone.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Final, LiteralString

from psycopg import AsyncConnection, Connection

from seapost.contracts.events import Event
from seapost.database.pool import AsyncPool, SyncPool
from seapost.inbox.inbox import Inbox
from seapost.inbox.receive import Receiving
from seapost.inbox.received import Received
from seapost.model.errors import Retry
from seapost.model.outcome import Acknowledged, Outcome
from seapost.transport.protocol import DeliveryRequest
from tests.kit import builders
from tests.kit.builders import BILLING, PLACED, SEARCH, SHIPPED
from tests.kit.crash import Point, Points

DESTINATIONS: Final = (BILLING, SEARCH)
WAITING_ROOM: Final = 4_242
"""Advisory lock of the consumers' database: who holds it keeps every handler that was told to wait."""
POISON_EXIT: Final = 9
PATIENCE: Final = 3
"""An event told to be retried is refused until this attempt."""

TABLES: Final = """
create table public.effect (consumer text not null, event_id uuid not null);
create table public.call (
    called_at timestamptz not null default clock_timestamp(), worker text not null, consumer text not null,
    event_id uuid not null, attempt_id bigint not null, attempt_number int not null);
create table public.answer (
    answered_at timestamptz not null default clock_timestamp(), consumer text not null, event_id uuid not null,
    attempt_number int not null, outcome text not null, receipt bytea, ack bytea);
grant select, insert on public.effect, public.call, public.answer to seapost_consumer"""

_EFFECT: Final = "insert into public.effect (consumer, event_id) values (%s, %s)"
_WAIT: Final = "select pg_advisory_xact_lock_shared(%s)"
_CALLED: Final = """
insert into public.call (worker, consumer, event_id, attempt_id, attempt_number)
select %s, %s, * from unnest(%s::uuid[], %s::bigint[], %s::int[])"""
_ANSWERED: Final = """
insert into public.answer (consumer, event_id, attempt_number, outcome, receipt, ack)
select %s, * from unnest(%s::uuid[], %s::int[], %s::text[], %s::bytea[], %s::bytea[])"""


class Placed(Event, type=PLACED, producer="shop", aggregate="order"):
    """Goes to billing only; its handler is a plain function and does what `do` says."""

    do: str


class Shipped(Event, type=SHIPPED, producer="shop", aggregate="order"):
    """Goes to every destination; its handlers are `async def`."""

    do: str


def routes(destinations: Sequence[str] = DESTINATIONS) -> dict[str, Sequence[str]]:
    """Which event goes where."""
    return {PLACED: (BILLING,), SHIPPED: tuple(destinations)}


def envelope(event_type: str = PLACED, do: str = "apply") -> bytes:
    """A new event that tells its handler what to do."""
    return builders.envelope(event_type, payload={"do": do})


def open_inbox(destination: str, points: Points) -> Inbox:
    """The consumer of one destination."""
    inbox = Inbox(builders.consumer_of(destination), destination=destination)

    @inbox.consumer(Placed)
    def placed(transaction: Connection[Any], event: Placed, received: Received) -> None:
        if event.do == "wait":
            transaction.execute(_WAIT, (WAITING_ROOM,))
        transaction.execute(_EFFECT, (inbox.name, received.event_id))
        _obey(event.do, received)
        points.reach(Point.EFFECT_WRITTEN)

    @inbox.consumer(Shipped)
    async def shipped(transaction: AsyncConnection[Any], event: Shipped, received: Received) -> None:
        if event.do == "wait":
            await transaction.execute(_WAIT, (WAITING_ROOM,))
        await transaction.execute(_EFFECT, (inbox.name, received.event_id))
        _obey(event.do, received)
        points.reach(Point.EFFECT_WRITTEN)

    return inbox


def _obey(word: str, received: Received) -> None:
    match word:
        case "die":
            os._exit(POISON_EXIT)
        case "retry" if received.attempt_number < PATIENCE:
            raise Retry("not yet", code="revision_gap")
        case _:
            pass


class RecordedReceiving(Receiving):
    """An inbox that writes down each call before it looks at it, and each answer before it gives it."""

    def __init__(self, inbox: Inbox, pool: AsyncPool, sync_pool: SyncPool, *, worker: str, points: Points) -> None:
        super().__init__(inbox, pool, sync_pool)
        self._worker = worker
        self._points = points

    async def receive(self, request: DeliveryRequest) -> list[Outcome]:
        """Receive between two records, each in a transaction of its own."""
        await self._write(_CALLED, (self._worker, request.consumer_name, *_columns(request)))
        self._points.reach(Point.RECEIVED)
        outcomes = await super().receive(request)
        await self._write(_ANSWERED, (request.consumer_name, *_answers(request, outcomes)))
        self._points.reach(Point.EFFECT_COMMITTED)
        return outcomes

    async def _write(self, statement: LiteralString, values: tuple[object, ...]) -> None:
        async with self.pool.connection() as connection:
            await connection.execute(statement, values)


def _columns(request: DeliveryRequest) -> tuple[list[object], ...]:
    deliveries = request.deliveries
    return (
        [delivery.event_id for delivery in deliveries],
        [delivery.attempt_id for delivery in deliveries],
        [delivery.attempt_number for delivery in deliveries],
    )


def _answers(request: DeliveryRequest, outcomes: Sequence[Outcome]) -> tuple[list[object], ...]:
    acknowledged = [outcome if isinstance(outcome, Acknowledged) else None for outcome in outcomes]
    return (
        [delivery.event_id for delivery in request.deliveries],
        [delivery.attempt_number for delivery in request.deliveries],
        ["acknowledged" if isinstance(outcome, Acknowledged) else outcome.code.value for outcome in outcomes],
        [one and one.receipt for one in acknowledged],
        [one and one.ack for one in acknowledged],
    )
