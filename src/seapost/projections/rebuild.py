"""Builds a version of a projection beside the one that is read: resumable, at a limited rate, fenced by its claim.

```python
report = Rebuild(orders_v2, dsn, actor="maria").run()
```

Authority: the receipts. What has one is done, so a rebuild that was killed is simply started again, in whichever order
events come. The claim it takes fences a former rebuild of the same version: whatever that one still has in flight
either commits before the claim is granted or is refused.

The source is read in passes, further sources first. A pass folds what has no receipt; an event that waits for an
earlier revision is met again by the next one. A pass that finds less than a batch, and leaves nothing waiting, ends
the rebuild, and the version follows as a shadow. Nothing but the view is changed: the session's role must not be able
to append events (F39).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from threading import Event, Lock
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from seapost.database.pool import open_sync_pool
from seapost.model.errors import InvalidSetting
from seapost.projections.feeding import (
    BATCH_DEFAULT,
    BATCH_MAX,
    TRANSIENT,
    Feeder,
    OnPoison,
    Step,
    require_no_side_effects,
)
from seapost.store import projection_feed as store
from seapost.store.projection_feed import FIRST, Slot, SourceEvent

if TYPE_CHECKING:
    from uuid import UUID

    from seapost.database.pool import SyncPool
    from seapost.projections.projection import Projection

WORKERS_MAX: Final = 16
LOOK_SECONDS: Final = 0.5
ATTEMPTS_MAX: Final = 6
BACKOFF_SECONDS: Final = 0.2
RATE_SLICE_SECONDS: Final = 0.25


class Source(Protocol):
    """Events that are not in the tables of this database: files, for instance."""

    def batches(self, after: UUID, limit: int) -> Iterator[Sequence[SourceEvent]]:
        """Batches of at most `limit` events after this one, in the order of their identifiers."""
        ...


class Progress(NamedTuple):
    """How far a rebuild is.

    Attributes:
        done: events with a receipt of this version.
        expected: events of the source that it folds in all.
        per_second: of this run, so far.
    """

    done: int
    expected: int
    per_second: float

    @property
    def seconds_left(self) -> float | None:
        """At this pace; None before anything was folded."""
        return max(0, self.expected - self.done) / self.per_second if self.per_second else None


@dataclass(frozen=True, slots=True)
class RebuildSettings:
    """How a rebuild works.

    Attributes:
        workers: threads that share the aggregates, each with a connection of its own.
        batch: most events of one transaction.
        rate: most events a second, of all workers; None is as fast as it goes.
        on_poison: what becomes of an event that the fold refuses.
        role: taken on by its sessions, where the login has more rights than a consumer.
    """

    workers: int = 2
    batch: int = BATCH_DEFAULT
    rate: float | None = None
    on_poison: OnPoison = OnPoison.STOP
    role: str | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.workers <= WORKERS_MAX:
            raise InvalidSetting(f"workers: 1 to {WORKERS_MAX}, not {self.workers}")
        if not 1 <= self.batch <= BATCH_MAX:
            raise InvalidSetting(f"batch: 1 to {BATCH_MAX}, not {self.batch}")
        if self.rate is not None and self.rate <= 0:
            raise InvalidSetting(f"rate: above 0 events a second, not {self.rate}")


@dataclass(frozen=True, slots=True)
class RebuildReport:
    """What a run of a rebuild did.

    Attributes:
        applied: events folded by this run.
        waiting: events that still wait for a revision that the source does not hold.
        skipped: events passed over, by policy.
        state: of the version now.
        is_complete: whether the last pass left nothing behind; what comes afterwards is for the feed.
    """

    applied: int
    waiting: int
    skipped: int
    passes: int
    seconds: float
    state: str
    is_complete: bool


@dataclass(slots=True)
class _Counts:
    """What all workers have done, in one place."""

    applied: int = 0
    skipped: int = 0
    lock: Lock = field(default_factory=Lock)

    def add(self, step: Step) -> None:
        with self.lock:
            self.applied += step.applied
            self.skipped += step.skipped


class _Pass(NamedTuple):
    applied: int
    waiting: int


def _is_behind(ended: _Pass, batch: int) -> bool:
    """Whether another pass is worth it: events come all the time, so the last one never finds nothing at all."""
    return ended.applied >= batch or bool(ended.applied and ended.waiting)


class Rebuild:
    """One run of a rebuild.

    Args:
        dsn: of the consumer's database, as a role that is a consumer and may change the view's tables.
        actor: who asks, for the audit.
        sources: what is read before the hot tables.
    """

    def __init__(
        self,
        projection: Projection,
        dsn: str,
        *,
        actor: str,
        sources: Sequence[Source] = (),
        settings: RebuildSettings | None = None,
        stop: Event | None = None,
    ) -> None:
        self._projection = projection
        self._dsn = dsn
        self._actor = actor
        self._sources = sources
        self._settings = RebuildSettings() if settings is None else settings
        self._stop = Event() if stop is None else stop
        self._counts = _Counts()
        self._started = 0.0

    def run(self, progress: Callable[[Progress], None] | None = None) -> RebuildReport:
        """Fold the source until nothing is left that can be folded.

        Raises:
            ClaimFenced: another rebuild took the version over.
            Poisoned: an event cannot be folded, and the policy is to stop.
            InvalidSetting: the session could append events.
            psycopg.Error: the database stayed unreachable.
        """
        self._started = time.monotonic()
        _ = self._projection.inbox.close()
        settings = self._settings
        with open_sync_pool(self._dsn, part="rebuild", size_max=settings.workers + 1, role=settings.role) as pool:
            with pool.connection() as connection:
                if require_no_side_effects(connection):
                    raise InvalidSetting(
                        "A rebuild runs as a role that cannot append events; use a login that is only a consumer."
                    )
                token = store.claim(connection, target=self._projection.target, actor=self._actor)
                expected = store.expected(connection, target=self._projection.target)
            return self._build(pool, token, expected, progress)

    def _build(
        self, pool: SyncPool, token: UUID, expected: int, progress: Callable[[Progress], None] | None
    ) -> RebuildReport:
        settings = self._settings
        feeders = [
            Feeder(
                self._projection,
                pool,
                token,
                slot=Slot(number, settings.workers),
                batch=settings.batch,
                on_poison=settings.on_poison,
            )
            for number in range(settings.workers)
        ]
        first = self._known(pool)
        whole = Feeder(self._projection, pool, token, batch=settings.batch, on_poison=settings.on_poison)
        for source in self._sources:
            for events in source.batches(FIRST, settings.batch):
                self._counts.add(self._again(lambda events=events: whole.take_missing(events)))
                self._tell(progress, first, expected)
                self._slow_down()
        passes, ended = 0, _Pass(settings.batch, 0)
        with ThreadPoolExecutor(settings.workers, "seapost-rebuild") as threads:
            while _is_behind(ended, settings.batch) and not self._stop.is_set():
                running = [threads.submit(self._one_pass, feeder) for feeder in feeders]
                ended = self._wait(running, lambda: self._tell(progress, first, expected))
                passes += 1
        is_complete = not (ended.waiting or self._counts.skipped or self._stop.is_set())
        with pool.connection() as connection:
            state = store.progress(
                connection,
                target=self._projection.target,
                token=token,
                cursor=None,
                applied=self._counts.applied,
                expected=expected,
                is_caught_up=is_complete,
            )
        seconds = time.monotonic() - self._started
        return RebuildReport(
            self._counts.applied, ended.waiting, self._counts.skipped, passes, seconds, state, is_complete
        )

    def _known(self, pool: SyncPool) -> int:
        """How many events had been applied before this run."""
        with pool.connection() as connection:
            return store.applied(connection, target=self._projection.target)

    def _one_pass(self, feeder: Feeder) -> _Pass:
        after, applied, waiting = FIRST, 0, 0
        while not self._stop.is_set():
            step = self._again(lambda after=after: feeder.step(after))
            if not step.read:
                break
            self._counts.add(step)
            after, applied, waiting = step.cursor, applied + step.applied, waiting + step.waiting
            self._slow_down()
        return _Pass(applied, waiting)

    def _again(self, act: Callable[[], Step]) -> Step:
        """Try again after what says nothing about any event, a few times."""
        for attempt in range(ATTEMPTS_MAX):
            try:
                return act()
            except TRANSIENT:
                if attempt == ATTEMPTS_MAX - 1:
                    raise
                _ = self._stop.wait(BACKOFF_SECONDS * 2**attempt)
        raise AssertionError  # the last attempt returns or raises

    def _slow_down(self) -> None:
        """Keep to the rate."""
        if self._settings.rate is None:
            return
        while not self._stop.is_set():
            ahead = self._counts.applied / self._settings.rate - (time.monotonic() - self._started)
            if ahead <= 0:
                return
            _ = self._stop.wait(min(ahead, RATE_SLICE_SECONDS))

    def _wait(self, running: Sequence[Future[_Pass]], look: Callable[[], None]) -> _Pass:
        """Wait for all workers; the first error of one ends the others."""
        waiting = set(running)
        while waiting:
            done, waiting = wait(waiting, LOOK_SECONDS)
            if any(one.exception() is not None for one in done):
                self._stop.set()
            look()
        results = [one.result() for one in running]
        return _Pass(sum(one.applied for one in results), sum(one.waiting for one in results))

    def _tell(self, progress: Callable[[Progress], None] | None, first: int, expected: int) -> None:
        if progress is not None:
            applied = self._counts.applied
            progress(Progress(first + applied, expected, applied / max(1e-9, time.monotonic() - self._started)))
