"""The consumer's transaction: receipts first, then the effects of the new events, then one commit (F32).

Authority: the commit. A receipt means nothing before it, and an effect without a receipt cannot outlive
it. Receipts are written in event order before any handler runs, so two deliveries of one event meet at the
receipt: the second waits for the first one's commit and then finds it.

Failures: any exception leaves nothing. Three ways in which a handler could still break the unit are closed:
psycopg refuses `commit` and `rollback` inside the block; after the handlers the transaction must still be
the one that wrote the receipts; and the block must say that it committed, because leaving it over a broken
connection raises nothing. `commit` sent as SQL text is found by the second check and reported, too late for
that one event.

There are two colours of the same thing, because psycopg has two kinds of connection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from time import perf_counter
from typing import Any, Final
from uuid import UUID

import psycopg
from psycopg import AsyncConnection, Connection
from psycopg.pq import TransactionStatus

from seapost.database.pool import AsyncPool, SyncPool
from seapost.inbox.examine import Accepted
from seapost.inbox.failures import HandlerFailed, TransactionLost
from seapost.inbox.inbox import Inbox
from seapost.model.outcome import Acknowledged
from seapost.store import inbox as store
from seapost.store.inbox import KnownReceipt, NewReceipt
from seapost.telemetry import metrics, tracing

_NOTHING: Final = nullcontext()


@dataclass(frozen=True, slots=True)
class Committed:
    """What a committed batch leaves: the receipts that were there before, and the time of the new ones.

    Attributes:
        decided: the answers that handlers of a deciding inbox made, by event.
        turned_away: why a new event has no receipt although its transaction committed, by event (AMB-17).
    """

    known: Mapping[UUID, KnownReceipt]
    committed_at: datetime | None
    decided: Mapping[UUID, Acknowledged] = field(default_factory=dict[UUID, Acknowledged])
    turned_away: Mapping[UUID, Exception] = field(default_factory=dict[UUID, Exception])


def apply(pool: SyncPool, inbox: Inbox, items: Sequence[Accepted]) -> Committed:
    """Run one batch of synchronous handlers; the events of `items` are distinct.

    Raises:
        HandlerFailed: a handler raised; nothing of the batch was committed.
        TransactionLost: a handler ended the transaction.
        psycopg.Error: the database refused or was lost.
    """
    committed_at = None
    with pool.connection() as connection:
        with connection.transaction() as block:
            known, moment = store.receive_at(connection, consumer=inbox.name, receipts=new_receipts(inbox, items))
            if len(known) < len(items):
                committed_at = moment
                traced = tracing.is_recording()
                for position, item in enumerate(items):
                    if not known or item.event_id not in known:
                        _handle(inbox, connection, position, item, traced=traced)
                require_same(connection, committed_at, store.committed_at(connection))
        require_committed(block)
    return Committed(known, committed_at)


async def apply_async(pool: AsyncPool, inbox: Inbox, items: Sequence[Accepted]) -> Committed:
    """The same as `apply`, for asynchronous handlers."""
    committed_at = None
    async with pool.connection() as connection:
        async with connection.transaction() as block:
            known, moment = await store.receive_at_async(
                connection, consumer=inbox.name, receipts=new_receipts(inbox, items)
            )
            if len(known) < len(items):
                committed_at = moment
                traced = tracing.is_recording()
                for position, item in enumerate(items):
                    if not known or item.event_id not in known:
                        await _handle_async(inbox, connection, position, item, traced=traced)
                require_same(connection, committed_at, await store.committed_at_async(connection))
        require_committed(block)
    return Committed(known, committed_at)


def _handle(inbox: Inbox, connection: Connection[Any], position: int, item: Accepted, *, traced: bool) -> None:
    started = perf_counter()
    try:
        with span(inbox, item) if traced or item.traceparent else _NOTHING:
            item.handler.call(connection, item.event, item)
        require_open(connection)
    except Exception as error:
        raise HandlerFailed(position) from error
    finally:
        metrics.apply_seconds(inbox.name, perf_counter() - started)


async def _handle_async(
    inbox: Inbox, connection: AsyncConnection[Any], position: int, item: Accepted, *, traced: bool
) -> None:
    started = perf_counter()
    try:
        with span(inbox, item) if traced or item.traceparent else _NOTHING:
            await item.handler.call_async(connection, item.event, item)
        require_open(connection)
    except Exception as error:
        raise HandlerFailed(position) from error
    finally:
        metrics.apply_seconds(inbox.name, perf_counter() - started)


def span(inbox: Inbox, item: Accepted) -> AbstractContextManager[None]:
    """What a handler runs in."""
    return tracing.handling(inbox.name, item.traceparent, span_attributes(item))


def new_receipts(inbox: Inbox, items: Sequence[Accepted]) -> list[NewReceipt]:
    """The receipts to write, in the order of `items`."""
    reference = inbox.receipts.reference
    return [
        NewReceipt(item.delivery.event_id, item.delivery.digest, reference(item.subject), item.candidate)
        for item in items
    ]


def span_attributes(item: Accepted) -> dict[str, str | int]:
    """What the span of a handler says about its event."""
    return {"seapost.event_type": item.subject.event_type, "seapost.attempt_number": item.delivery.attempt_number}


def require_open(connection: Connection[Any] | AsyncConnection[Any]) -> None:
    """The handler left a healthy open transaction; an aborted one would commit as nothing, without an error."""
    if connection.pgconn.transaction_status != TransactionStatus.INTRANS:
        raise TransactionLost


def require_same(connection: Connection[Any] | AsyncConnection[Any], before: datetime, after: datetime) -> None:
    """The transaction is still the one that wrote the receipts: its start is."""
    require_open(connection)
    if before != after:
        raise TransactionLost


def require_committed(block: psycopg.Transaction | psycopg.AsyncTransaction) -> None:
    """The block says that it committed: leaving it over a broken connection raises nothing."""
    if block.status is not block.Status.COMMITTED:
        raise TransactionLost
