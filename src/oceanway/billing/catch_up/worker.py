"""The worker of catch-ups: leases works, lets the evaluator ask and decide, and writes each end (CAT-12 to CAT-22).

A work that moved on meanwhile writes nothing: its successor or a newer generation is the work now. A work whose
dimension or account changed is given back, and its next lease starts from the new state with another validation
operation (CASE-33).
"""

from __future__ import annotations

import os
import socket
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from oceanway.billing import store_settlement as store
from oceanway.billing.catch_up.evaluating import Blocked, CaughtUp, Evaluator, Later, LeasedWork, Rebased
from oceanway.contracts.errors import NotCovered, OceanWayError, Stale
from seapost.contracts.identifiers import write_timestamp
from seapost.telemetry.logging import get_logger

if TYPE_CHECKING:
    from oceanway.reads.client import Reader
    from seapost.database.pool import SyncPool

_log = get_logger("oceanway.billing.catch_up.worker")


@dataclass(frozen=True, slots=True)
class Pace:
    """How long a work is leased, and how long one rests that cannot end now."""

    lease: timedelta = timedelta(seconds=30)
    retry_base: timedelta = timedelta(milliseconds=100)
    retry_longest: timedelta = timedelta(seconds=60)


DEFAULT_PACE: Final = Pace()


def build_runner(pool: SyncPool, reader: Reader, *, pace: Pace = DEFAULT_PACE) -> CatchUpRunner:
    """Make a runner of catch-up works."""
    return CatchUpRunner(pool, reader, pace=pace)


class CatchUpRunner:
    """Runs catch-up works; `step` is what a loop calls.

    Attributes:
        waiting: how often a work could not end, by reason.
    """

    def __init__(self, pool: SyncPool, reader: Reader, *, pace: Pace = DEFAULT_PACE) -> None:
        self._pool = pool
        self._pace = pace
        self._owner = f"{socket.gethostname()}:{os.getpid()}"[:64]
        self._evaluator = Evaluator(reader)
        self.waiting: Counter[str] = Counter()

    def step(self, limit: int) -> int:
        """Lease and end at most so many works; how many were leased."""
        with self._pool.connection() as connection:
            rows = store.claim_works(connection, self._owner, limit, self._pace.lease)
        if not rows:
            return 0
        endings = self._evaluator.end([LeasedWork.of(row) for row in rows], write_timestamp(datetime.now(UTC)))
        later = [one for one in endings if isinstance(one, Later)]
        later += self._finish([one for one in endings if isinstance(one, CaughtUp)])
        for one in endings:
            if isinstance(one, Rebased | Blocked):
                later += self._write(one)
        self._give_back(later)
        return len(rows)

    def _finish(self, ended: Sequence[CaughtUp]) -> list[Later]:
        """End works that are caught up, in one transaction; those that moved on are left to what replaced them."""
        if not ended:
            return []
        try:
            with self._pool.connection() as connection:
                _ = store.finish_works(connection, ended)
        except OceanWayError as error:
            if len(ended) > 1:
                return [later for one in ended for later in self._finish([one])]
            _log.error("catch_up_not_finished", work=ended[0].work.work_ref, exc_info=error)
            return [Later(ended[0].work, type(error).__name__)]
        return []

    def _write(self, ending: Rebased | Blocked) -> list[Later]:
        """Write one evaluation or one Blocked, in a transaction of its own."""
        work = ending.work
        try:
            with self._pool.connection() as connection:
                match ending:
                    case Rebased():
                        _ = store.commit_evaluation(connection, ending.evaluated)
                    case Blocked():
                        _ = store.block_work(
                            connection,
                            conflict=ending.conflict,
                            blocked=ending.blocked,
                            fencing_token=work.attempt.fencing_token,
                            expected_revision=work.fence_revision,
                            base=self._pace.retry_base,
                            longest=self._pace.retry_longest,
                        )
                        self.waiting["input_conflicting"] += 1
        except (Stale, NotCovered) as error:
            return [Later(work, type(error).__name__)]
        except OceanWayError as error:
            _log.error("catch_up_not_written", work=work.work_ref, exc_info=error)
            return [Later(work, type(error).__name__)]
        return []

    def _give_back(self, endings: Sequence[Later]) -> None:
        if not endings:
            return
        reasons = Counter(one.reason for one in endings)
        self.waiting.update(reasons)
        for reason, count in reasons.items():
            _log.info("catch_up_waits", reason=reason, works=count)
        with self._pool.connection() as connection:
            _ = store.retry_works(
                connection,
                [(one.work.work_ref, one.work.attempt.fencing_token) for one in endings],
                base=self._pace.retry_base,
                longest=self._pace.retry_longest,
            )
