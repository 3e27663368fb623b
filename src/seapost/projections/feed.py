"""Follows the source for a version that deliveries do not bring everything: a shadow, a draining or a new active one.

Each pass asks for what has no receipt, near the end of the source; a whole pass at a longer interval finds what
committed late under an old identifier (AMB-48). Neither says that everything was found: that is for a proof.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final
from uuid import UUID

from seapost.model.errors import SwitchUnderWay
from seapost.projections.feeding import TRANSIENT, Feeder, OnPoison
from seapost.store import projection_feed as store
from seapost.store.projection_feed import FIRST

if TYPE_CHECKING:
    from threading import Event

    from seapost.database.pool import SyncPool
    from seapost.projections.projection import Projection

IDLE_SECONDS: Final = 0.2
OVERLAP_SECONDS: Final = 60.0
WHOLE_SECONDS: Final = 60.0
BACKOFF_SECONDS_MAX: Final = 5.0
_TIMESTAMP_SHIFT: Final = 80


class Feed:
    """Feeds one version until it is told to stop or its claim is taken over.

    Args:
        pool: of the consumer's role.
        token: of the claim.
        is_bounded: the claim belongs to a frozen candidate; only what is inside its border is read.
    """

    def __init__(
        self,
        projection: Projection,
        pool: SyncPool,
        token: UUID,
        *,
        on_poison: OnPoison = OnPoison.STOP,
        is_bounded: bool = False,
    ) -> None:
        self._projection = projection
        self._pool = pool
        self._token = token
        self._feeder = Feeder(projection, pool, token, on_poison=on_poison, is_bounded=is_bounded)
        self._whole_at = 0.0

    def run(self, stop: Event) -> None:
        """Follow.

        Raises:
            ClaimFenced: the claim was taken over or paused.
            Poisoned: by policy.
        """
        _ = self._projection.inbox.close()
        failures = 0
        while not stop.is_set():
            try:
                applied = self.once()
                failures = 0
            except (SwitchUnderWay, *TRANSIENT):
                failures += 1
                _ = stop.wait(min(BACKOFF_SECONDS_MAX, IDLE_SECONDS * 2**failures))
                continue
            if not applied:
                _ = stop.wait(IDLE_SECONDS)

    def once(self) -> int:
        """One pass; how many events it folded."""
        now = time.monotonic()
        after = _moments_ago(OVERLAP_SECONDS)
        if now >= self._whole_at:
            after, self._whole_at = FIRST, now + WHOLE_SECONDS
        return self._pass(after)

    def catch_up(self) -> int:
        """Whole passes until one folds nothing; how many events they folded. For a source that does not grow."""
        total = 0
        while applied := self._pass(FIRST):
            total += applied
        return total

    def _pass(self, after: UUID) -> int:
        applied = 0
        while (step := self._feeder.step(after)).read:
            after, applied = step.cursor, applied + step.applied
        if applied:
            with self._pool.connection() as connection:
                _ = store.progress(
                    connection, target=self._projection.target, token=self._token, cursor=None, applied=applied
                )
        return applied


def _moments_ago(seconds: float) -> UUID:
    """The lowest identifier of version 7 that was made then."""
    milliseconds = int((time.time() - seconds) * 1000)
    return UUID(int=max(0, milliseconds) << _TIMESTAMP_SHIFT)
