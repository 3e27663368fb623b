"""The transaction of a deciding inbox: prepare outside, then meet, handlers, record, and one commit.

Authority and failures are those of `transaction`. The order differs: receipts are written after the handlers, because
they say what those decided; what stands in their place before is the lock that `inbox_meet_v1` takes on every event.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from datetime import datetime
from time import perf_counter
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from psycopg import Connection

from seapost.contracts.identifiers import write_timestamp
from seapost.database.pool import SyncPool
from seapost.inbox.decided import Decided
from seapost.inbox.deciding import Arrived, Deciding, DecidingInbox, Prepare, Round
from seapost.inbox.examine import Accepted
from seapost.inbox.failures import HandlerFailed
from seapost.inbox.transaction import Committed, require_committed, require_open, require_same, span
from seapost.model.errors import InvalidSetting, Reject, Retry
from seapost.model.outcome import Acknowledged
from seapost.store import inbox as store
from seapost.store.inbox import NewReceipt
from seapost.telemetry import metrics, tracing

_NOTHING: Final = nullcontext()


def decide(pool: SyncPool, inbox: DecidingInbox, items: Sequence[Accepted]) -> Committed:
    """Run one batch; the events of `items` are distinct, and `prepare` runs at most once for each.

    Raises:
        HandlerFailed: a handler raised, or returned no receipt of its event; nothing of the batch was committed.
        TransactionLost: a handler ended the transaction.
        psycopg.Error: the database refused or was lost.
    """
    arrived = [_arrived(item) for item in items]
    order = sorted(range(len(items)), key=lambda position: inbox.order(arrived[position]))
    _prepare(inbox, [(items[position], arrived[position]) for position in order])
    with pool.connection() as connection:
        with connection.transaction() as block:
            events = [(item.event_id, item.delivery.digest) for item in items]
            known, moment = store.meet(connection, consumer=inbox.key, events=events)
            new = [position for position in order if items[position].event_id not in known]
            batch = _Batch(inbox, connection, [items[at] for at in new], [arrived[at] for at in new], new)
            batch.run(write_timestamp(moment))
            require_same(connection, moment, batch.record())
        require_committed(block)
    return Committed(known, moment, batch.answers, batch.turned_away)


class _Batch:
    """The new events of one transaction and what becomes of them.

    `places` says where each stands in the batch that `decide` was called with.
    """

    def __init__(
        self,
        inbox: DecidingInbox,
        connection: Connection[Any],
        items: Sequence[Accepted],
        arrived: Sequence[Arrived],
        places: Sequence[int],
    ) -> None:
        self._inbox = inbox
        self._connection = connection
        self._items = items
        self._arrived = arrived
        self._places = places
        self._receipts: list[NewReceipt] = []
        self.answers: dict[UUID, Acknowledged] = {}
        self.turned_away: dict[UUID, Exception] = {}

    def run(self, committed_at: str) -> None:
        """Run the handlers; what they end in is kept until the receipts are recorded."""
        if not self._items:
            return
        surrounding = self._inbox.begin(self._connection, self._arrived)
        traced = tracing.is_recording()
        results: list[object] = []
        for position, item in enumerate(self._items):
            result = self._result(position, surrounding, results, committed_at, traced=traced)
            results.append(result)
            if isinstance(result, Exception):
                self.turned_away[item.event_id] = result
            else:
                self.answers[item.event_id] = result.answer
                self._receipts.append(
                    NewReceipt(item.event_id, item.delivery.digest, result.reference, result.candidate)
                )
        if surrounding is not None:
            surrounding.close(results)

    def record(self) -> datetime:
        """Write the receipts; the time of the transaction that did it."""
        require_open(self._connection)
        if not self._receipts:
            return store.committed_at(self._connection)
        return store.record(self._connection, consumer=self._inbox.key, receipts=self._receipts)

    def _result(
        self, position: int, surrounding: Round | None, results: Sequence[object], committed_at: str, *, traced: bool
    ) -> Decided | Exception:
        item = self._items[position]
        if surrounding is not None:
            verdict = surrounding.verdict(position, results)
            if verdict is not None:
                return verdict
        if item.refusal is not None:
            return item.refusal
        started = perf_counter()
        try:
            with span(self._inbox, item) if traced or item.traceparent else _NOTHING:
                return self._call(position, committed_at)
        except Exception as error:
            raise HandlerFailed(self._places[position]) from error
        finally:
            metrics.apply_seconds(self._inbox.name, perf_counter() - started)

    def _call(self, position: int, committed_at: str) -> Decided | Retry:
        item, arrived = self._items[position], self._arrived[position]
        receipts = self._inbox.decisions
        common = MappingProxyType(receipts.common(item.subject, committed_at))
        context = Deciding(
            arrived.received, arrived.envelope, arrived.envelope_sha256, committed_at, item.prepared, common
        )
        result = item.handler.function(self._connection, item.event, context)
        require_open(self._connection)
        return result if isinstance(result, Retry) else receipts.check(result, common, item.envelope)


def _arrived(item: Accepted) -> Arrived:
    return Arrived(item.event, item.received, item.delivery.envelope, item.subject.digest)


def _prepare(inbox: DecidingInbox, items: Sequence[tuple[Accepted, Arrived]]) -> None:
    """Call each handler's `prepare` for those of its events that have not been prepared; no connection is held."""
    waiting: dict[Prepare, list[tuple[Accepted, Arrived]]] = {}
    for item, arrived in items:
        prepare = inbox.prepares.get(item.handler.event)
        if prepare is not None and not item.is_prepared:
            waiting.setdefault(prepare, []).append((item, arrived))
    for prepare, group in waiting.items():
        _prepare_group(prepare, group)


def _prepare_group(prepare: Prepare, group: Sequence[tuple[Accepted, Arrived]]) -> None:
    """Keep what `prepare` makes of a group; where it raises, its halves are tried, down to the event it fails on."""
    try:
        results = prepare([arrived for _, arrived in group])
        if len(results) != len(group):
            raise InvalidSetting("`prepare` returns one result for each event.")
    except Exception as error:  # noqa: BLE001 - it may raise anything
        if len(group) > 1 and not isinstance(error, Retry):
            middle = len(group) // 2
            _prepare_group(prepare, group[:middle])
            _prepare_group(prepare, group[middle:])
            return
        for item, _ in group:
            item.refuse(error)
        return
    for (item, _), result in zip(group, results, strict=True):
        if isinstance(result, Retry | Reject):
            item.refuse(result)
        else:
            item.prepare(result)
