"""Feeds a version in batches: reads what it lacks, folds it, and finds the event that is to blame when a fold fails.

Failures of a batch (F40):

| What | Then |
|---|---|
| the claim was taken over or paused | ends the feed: another one goes on |
| a lost server or session, a timeout, a deadlock | transient: the caller backs off and reads again |
| anything else, in a batch of many | its halves, cut between aggregates where there are several |
| anything else, of one event | poison: by policy the feed stops there, or goes on without it |

The version remembers what stopped it. An event that was passed over has no receipt, so no proof calls the version
complete, and later revisions of its aggregate wait behind a gap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

import psycopg

from seapost.inbox.deciding import Prepare
from seapost.model.errors import ClaimFenced, ContractError, OutsideCandidate, SwitchUnderWay
from seapost.projections.fold import Fold, FoldResult
from seapost.projections.folded import Folded
from seapost.store import projection_feed as store
from seapost.store.projection_feed import Slot, SourceEvent

if TYPE_CHECKING:
    from psycopg import Connection

    from seapost.contracts.events import Event
    from seapost.database.pool import SyncPool
    from seapost.projections.projection import Projection

BATCH_DEFAULT: Final = 2_000
BATCH_MAX: Final = 10_000
REASON_LENGTH_MAX: Final = 200
TRANSIENT: Final = (psycopg.OperationalError, psycopg.errors.LockNotAvailable, psycopg.errors.QueryCanceled)
"""Nothing about any event: a lost server or session, a timeout, a deadlock, a serialization failure."""


WHOLE: Final = Slot(0, 1)
"""All aggregates."""


class OnPoison(StrEnum):
    """What a feed does with an event that its fold refuses."""

    STOP = "stop"
    SKIP = "skip"


class Poisoned(Exception):
    """Signal: the feed stopped at an event; the version remembers it."""

    def __init__(self, event_id: UUID, reason: str) -> None:
        self.event_id = event_id
        self.reason = reason
        super().__init__(f"{event_id}: {reason}")


class Step(NamedTuple):
    """One batch.

    Attributes:
        read: events that were read; 0 at the end of a pass.
        applied, waiting, skipped: what became of them.
        cursor: the last one read.
    """

    read: int
    applied: int
    waiting: int
    skipped: int
    cursor: UUID


class Feeder:
    """Feeds the aggregates of one slot of a version, under one shadow claim.

    Args:
        pool: of the consumer's role; a step holds one connection at a time.
        token: of the claim.
        batch: most events of one transaction.
        is_bounded: read only what is inside the border of a frozen candidate.
    """

    def __init__(
        self,
        projection: Projection,
        pool: SyncPool,
        token: UUID,
        *,
        slot: Slot = WHOLE,
        batch: int = BATCH_DEFAULT,
        on_poison: OnPoison = OnPoison.STOP,
        is_bounded: bool = False,
    ) -> None:
        self._projection = projection
        self._pool = pool
        self._token = token
        self._slot = slot
        self._batch = batch
        self._on_poison = on_poison
        self._is_bounded = is_bounded
        self._fold = Fold(projection)
        self._skipped: set[UUID] = set()

    def step(self, after: UUID) -> Step:
        """Read the next batch of the hot source after this event, and fold it.

        Raises:
            ClaimFenced: the claim was taken over or paused.
            SwitchUnderWay: a switch holds the version for a moment.
            Poisoned: by policy; what stood before it in the batch may have been applied.
        """
        with self._pool.connection() as connection:
            events = store.feed(
                connection,
                target=self._projection.target,
                token=self._token,
                after=after,
                limit=self._batch,
                slot=self._slot,
                is_bounded=self._is_bounded,
            )
        if not events:
            return Step(0, 0, 0, 0, after)
        return self.take(events)

    def take_missing(self, events: Sequence[SourceEvent]) -> Step:
        """Fold those of the events that the version lacks; for sources that cannot tell."""
        with self._pool.connection() as connection:
            missing = store.missing(
                connection,
                target=self._projection.target,
                token=self._token,
                event_ids=[event.event_id for event in events],
            )
        lacking = [event for event in events if event.event_id in missing]
        step = self.take(lacking) if lacking else Step(0, 0, 0, 0, events[-1].event_id)
        return step._replace(read=len(events), cursor=events[-1].event_id)

    def take(self, events: Sequence[SourceEvent]) -> Step:
        """Fold these events."""
        before = len(self._skipped)
        items = [item for item in map(self._opened, events) if item is not None]
        result = self._apply(items) if items else FoldResult(0, 0)
        return Step(len(events), result.applied, result.waiting, len(self._skipped) - before, events[-1].event_id)

    def _opened(self, event: SourceEvent) -> Folded | None:
        if event.event_id in self._skipped:
            return None
        try:
            return Folded.open(event, self._projection.inbox.handlers)
        except ContractError as error:
            self._poison(event.event_id, error)
            return None

    def _apply(self, items: Sequence[Folded]) -> FoldResult:
        """Fold a batch, and its parts where it fails."""
        try:
            prepared = _prepare(self._projection.inbox.prepares, items)
            with self._pool.connection() as connection:
                return self._fold.apply(connection, self._token, items, prepared)
        except (ClaimFenced, OutsideCandidate, SwitchUnderWay, *TRANSIENT):
            raise
        except Exception as error:  # noqa: BLE001 - a mutation may raise anything
            if len(items) == 1:
                self._poison(items[0].event_id, error)
                return FoldResult(0, 0)
        applied = waiting = 0
        for part in _halves(items):
            result = self._apply(part)
            applied, waiting = applied + result.applied, waiting + result.waiting
        return FoldResult(applied, waiting)

    def _poison(self, event_id: UUID, error: Exception) -> None:
        """Remember the event; by policy stop at it."""
        reason = f"{type(error).__name__}: {error}"[:REASON_LENGTH_MAX]
        with self._pool.connection() as connection:
            store.stall(connection, target=self._projection.target, token=self._token, event_id=event_id, reason=reason)
        if self._on_poison is OnPoison.STOP:
            raise Poisoned(event_id, reason) from error
        self._skipped.add(event_id)


def _halves(items: Sequence[Folded]) -> list[Sequence[Folded]]:
    """Two parts, never tearing an aggregate unless there is only one; then its earlier revisions come first."""
    ordered = sorted(items, key=lambda item: (item.key, item.revision))
    middle = len(ordered) // 2
    cut = middle
    while cut < len(ordered) and ordered[cut].key == ordered[cut - 1].key:
        cut += 1
    if cut == len(ordered):
        cut = middle
        while cut > 0 and ordered[cut].key == ordered[cut - 1].key:
            cut -= 1
    if cut == 0:
        cut = middle
    return [ordered[:cut], ordered[cut:]]


def _prepare(prepares: Mapping[type[Event], Prepare], items: Sequence[Folded]) -> dict[UUID, object]:
    """What the `prepare` of each handler finds for its events; outside any transaction."""
    found: dict[UUID, object] = {}
    if not prepares:
        return found
    waiting: dict[Prepare, list[Folded]] = {}
    for item in items:
        prepare = prepares.get(item.handler.event)
        if prepare is not None:
            waiting.setdefault(prepare, []).append(item)
    for prepare, group in waiting.items():
        results = prepare([item.arrived for item in group])
        found.update((item.event_id, result) for item, result in zip(group, results, strict=True))
    return found


def require_no_side_effects(connection: Connection[Any]) -> bool:
    """Whether the session's role could append events: what a replay must never do (F39)."""
    row = connection.execute(
        "select pg_catalog.has_function_privilege('seapost.outbox_append_v1(bytea[])', 'execute')"
    ).fetchone()
    return row is not None and bool(row[0])
