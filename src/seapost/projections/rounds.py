"""The revisions of one transaction: which events may be applied, and what is written about the others.

Authority: the aggregate rows, locked from `meet` to the commit. The events stand in the order of their aggregates and
revisions, so what may run follows from the revision reached so far, be it the stored one or that of the event before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from seapost.model.errors import Reject, Retry
from seapost.model.outcome import ErrorCode
from seapost.store import projections as store
from seapost.store.projections import Advance, AggregateKey, Gap
from seapost.telemetry import metrics

if TYPE_CHECKING:
    from psycopg import Connection

    from seapost.inbox.deciding import Arrived, Verdict
    from seapost.model.delivery_set import ProjectionTarget


def key_of(item: Arrived) -> AggregateKey:
    """The aggregate of an event."""
    aggregate = item.received.aggregate
    return AggregateKey(item.received.producer, aggregate.kind, aggregate.id)


class Revisions:
    """A round of a projection (`seapost.inbox.deciding.Round`)."""

    def __init__(
        self, transaction: Connection[Any], consumer: str, target: ProjectionTarget, items: Sequence[Arrived]
    ) -> None:
        self._transaction = transaction
        self._consumer = consumer
        self._target = target
        self._items = items
        self._keys = [key_of(item) for item in items]
        keys = list(dict.fromkeys(self._keys))
        event_ids = [item.received.event_id for item in items]
        revisions = store.meet(transaction, target=target, token=None, event_ids=event_ids, keys=keys)
        self._met = dict(zip(keys, revisions, strict=True))
        self._reached = dict(self._met)
        self._last: dict[AggregateKey, UUID] = {}
        self._gaps: list[Gap] = []
        self._applied: list[tuple[UUID, bytes]] = []

    def verdict(self, position: int, results: Sequence[object]) -> Verdict:
        """None for the next revision of the aggregate."""
        self._take(results)
        key, revision = self._keys[position], self._items[position].received.aggregate.revision
        expected = self._reached[key] + 1
        if revision == expected:
            return None
        if revision < expected:
            reason = "this revision of the aggregate was applied from another event"
            return Reject(reason, code=ErrorCode.IDENTITY_CONFLICT)
        self._gaps.append(Gap(key, expected, revision))
        return Retry(f"revision {expected} of the aggregate has not been applied", code=ErrorCode.REVISION_GAP)

    def close(self, results: Sequence[object]) -> None:
        """Move the aggregates, keep the envelopes of other databases' events, and record the gaps."""
        self._take(results)
        if self._applied:
            _ = store.accept(self._transaction, events=self._applied)
        moved = [Advance(key, self._met[key], self._reached[key], event_id) for key, event_id in self._last.items()]
        open_gaps = None
        if moved:
            open_gaps = store.advance(self._transaction, target=self._target, advances=moved)
        if self._gaps:
            open_gaps = store.wait(self._transaction, target=self._target, gaps=self._gaps)
        if open_gaps is not None:
            metrics.revision_gaps(self._consumer, open_gaps)

    def _take(self, results: Sequence[object]) -> None:
        """Count the event before this one, if it was applied."""
        if results and not isinstance(results[-1], Exception):
            position = len(results) - 1
            key = self._keys[position]
            self._reached[key] = self._items[position].received.aggregate.revision
            self._last[key] = self._items[position].received.event_id
            self._applied.append((self._last[key], self._items[position].envelope))
