"""One fenced settle call, repeated and split as its errors ask for; nothing here knows what is settled.

Authority: the database, which names what it refused and commits the rest.
States: call → done with refusals | again after a backoff | split in two | abandoned to recovery.
Failures: a lost connection, deadlock or time limit: the same call again while we believe in the lease. If the first did
commit, the second comes back stale, which changes nothing. A call refused for its content is split until the one
item is found, so that only that one is left behind. Anything else abandons the call: leases run out by themselves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

import psycopg

from seapost.dispatcher.batch import Batch
from seapost.dispatcher.context import Context
from seapost.dispatcher.pulse import Pulse
from seapost.dispatcher.session import BACKOFF_MAX_SECONDS, Connection, backoff_seconds, is_transient
from seapost.dispatcher.settings import DestinationSettings
from seapost.model.delivery import Refusal
from seapost.model.errors import InvalidArgument
from seapost.store.delivery import Isolation, Postponement, Settlement
from seapost.telemetry.catalog import LogEvent
from seapost.telemetry.logging import get_logger

STALE: Final = "stale"

_LOG: Final = get_logger("seapost.dispatcher")

ItemT = TypeVar("ItemT", Settlement, Postponement, Isolation)
Call = Callable[[Connection, Sequence[ItemT]], Awaitable[list[Refusal]]]


@dataclass(slots=True)
class Written(Generic[ItemT]):
    """What became of the items of a call.

    Attributes:
        done: moved by this call.
        invalid: still ours, but the acknowledgement does not match; nothing changed.
        stale: held by somebody else or by nobody.
        abandoned: the call failed for good.
    """

    done: list[ItemT] = field(default_factory=list[Any])
    invalid: list[Refusal] = field(default_factory=list[Refusal])
    stale: int = 0
    abandoned: int = 0

    def add(self, other: Written[ItemT]) -> None:
        """Take in what became of other items."""
        self.done.extend(other.done)
        self.invalid.extend(other.invalid)
        self.stale += other.stale
        self.abandoned += other.abandoned


class Writer:
    """Writes for one lane of a destination."""

    def __init__(self, context: Context, settings: DestinationSettings, pulse: Pulse) -> None:
        self._context = context
        self._settings = settings
        self._pulse = pulse

    async def write(self, batch: Batch, items: Sequence[ItemT], call: Call[ItemT]) -> Written[ItemT]:
        """Call until it commits, is known to be hopeless, or the lease is no longer believed."""
        written = Written[ItemT]()
        if not items:
            return written
        try:
            refusals = await self._persist(batch, items, call)
        except (InvalidArgument, psycopg.DataError, psycopg.IntegrityError) as error:
            if len(items) == 1:
                return self._abandon(items, error)
            middle = len(items) // 2
            for part in (items[:middle], items[middle:]):
                written.add(await self.write(batch, part, call))
            return written
        except Exception as error:  # noqa: BLE001 - recovery takes over, and the lane goes on
            return self._abandon(items, error)
        if not refusals:
            written.done = list(items)
            return written
        refused = {refusal.event_id for refusal in refusals}
        written.done = [item for item in items if item.fence.event_id not in refused]
        written.invalid = [refusal for refusal in refusals if refusal.result != STALE]
        written.stale = len(refusals) - len(written.invalid)
        if written.stale:
            self._context.metrics.stale(self._settings.name, written.stale)
            _LOG.warning(LogEvent.SETTLE_STALE, destination=self._settings.name, deliveries=written.stale)
        return written

    async def _persist(self, batch: Batch, items: Sequence[ItemT], call: Call[ItemT]) -> list[Refusal]:
        failures = 0
        while True:
            self._pulse.expect(self._context.settings.database_seconds_max + BACKOFF_MAX_SECONDS)
            try:
                async with self._context.session() as connection:
                    return await call(connection, items)
            except Exception as error:
                failures += 1
                pause = backoff_seconds(failures, self._context.rng)
                until = min(batch.believed_until, self._context.stopping.deadline)
                if not is_transient(error) or self._context.clock() + pause >= until:
                    raise
            await asyncio.sleep(pause)

    def _abandon(self, items: Sequence[ItemT], error: BaseException) -> Written[ItemT]:
        _LOG.error(
            LogEvent.SETTLE_FAILED,
            destination=self._settings.name,
            deliveries=len(items),
            event_id=items[0].fence.event_id,
            exc_info=error,
        )
        return Written[ItemT](abandoned=len(items))
