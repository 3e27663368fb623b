"""Delivering everything that is due, now, in the test's own process: the real claims, calls, receipts and settles.

Only the loops are missing: nothing sleeps, wakes or runs in the background. Retries come at once, up to a number of
attempts; after those a delivery is left waiting, as it would be for a consumer that stays away.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final
from uuid import UUID

from seapost.contracts.receipt_registry import DEFAULT_RECEIPTS, ReceiptRegistry
from seapost.database.pool import AsyncPool, open_pool, open_sync_pool
from seapost.dispatcher.claim import Claimer
from seapost.dispatcher.context import Context, new_owner
from seapost.dispatcher.deliver import Deliverer
from seapost.dispatcher.pulse import Pulse
from seapost.dispatcher.renew import Leases
from seapost.dispatcher.settings import DAY_SECONDS, DestinationSettings, DispatcherSettings
from seapost.dispatcher.settle import Settled, Settler
from seapost.dispatcher.stopping import Stopping
from seapost.inbox.inbox import Inbox
from seapost.inbox.receive import Receiving, needs_sync_pool
from seapost.model.delivery import Claim
from seapost.model.outcome import Outcome, Retryable
from seapost.testing.consumer import FakeConsumer
from seapost.transport.inprocess import InProcessTransport
from seapost.transport.protocol import Receiver

if TYPE_CHECKING:
    from seapost.testing.databases import TestDatabase

ATTEMPTS_MAX: Final = 3
AT_ONCE_SECONDS: Final = 0.001
LATER_SECONDS: Final = 3_600.0
CONNECTIONS: Final = 4


@dataclass(slots=True)
class Drained:
    """What a drain did, in deliveries.

    Attributes:
        acknowledged: a receipt came back and was believed.
        retried: attempts that ended with "try again".
        quarantined: given up for good.
        waiting: distinct deliveries left for later, because a consumer used up its attempts or asked for time.
    """

    acknowledged: int = 0
    retried: int = 0
    quarantined: int = 0
    waiting: int = 0


def run_until_idle(
    database: TestDatabase,
    *consumers: Inbox | FakeConsumer,
    consumer_database: TestDatabase | None = None,
    attempts_max: int = ATTEMPTS_MAX,
    receipts: ReceiptRegistry = DEFAULT_RECEIPTS,
) -> Drained:
    """Deliver all that is due in `database` to the given consumers; return when nothing more is due.

    Args:
        database: the producer's.
        consumers: real inboxes, whose handlers run in their own transactions, or fakes. A destination of none of
            them is left alone.
        consumer_database: where the inboxes keep receipts and effects; by default the producer's.
        attempts_max: how often a delivery that wants to be tried again is tried here.
        receipts: the receipt types that acknowledgements may name.
    """
    return asyncio.run(
        run_until_idle_async(
            database, *consumers, consumer_database=consumer_database, attempts_max=attempts_max, receipts=receipts
        )
    )


async def run_until_idle_async(
    database: TestDatabase,
    *consumers: Inbox | FakeConsumer,
    consumer_database: TestDatabase | None = None,
    attempts_max: int = ATTEMPTS_MAX,
    receipts: ReceiptRegistry = DEFAULT_RECEIPTS,
) -> Drained:
    """The same as `run_until_idle`, inside an event loop."""
    async with AsyncExitStack() as stack:
        pool = await stack.enter_async_context(
            open_pool(database.dsn, part="testing", role="seapost_dispatcher", size_max=CONNECTIONS)
        )
        context = drain_context(pool, receipts)
        lines = [
            Line(context, consumer.destination, await _receiver(stack, consumer, consumer_database or database))
            for consumer in consumers
        ]
        drained = Drained()
        while True:
            found = [await line.turn(drained, attempts_max) for line in lines]
            if not any(found):
                if not any(line.soon for line in lines):
                    break
                await asyncio.sleep(AT_ONCE_SECONDS)
        drained.waiting = sum(len(line.later) for line in lines)
        return drained


def drain_context(pool: AsyncPool, receipts: ReceiptRegistry) -> Context:
    """What the claims, calls and settles of a drain share."""
    settings = DispatcherSettings()
    stopping = Stopping(give_back_seconds=settings.give_back_seconds, clock=time.monotonic)
    return Context(
        pool=pool, settings=settings, receipts=receipts, owner=new_owner(), stopping=stopping, rng=random.Random()
    )


async def _receiver(stack: AsyncExitStack, consumer: Inbox | FakeConsumer, database: TestDatabase) -> Receiver:
    if isinstance(consumer, FakeConsumer):
        return consumer.receive
    pool = await stack.enter_async_context(
        open_pool(database.dsn, part="testing-inbox", role="seapost_consumer", size_max=CONNECTIONS)
    )
    threads = None
    if needs_sync_pool(consumer):
        threads = stack.enter_context(
            open_sync_pool(database.dsn, part="testing-inbox", role="seapost_consumer", size_max=CONNECTIONS)
        )
    return (await stack.enter_async_context(Receiving(consumer, pool, threads))).receive


@dataclass(slots=True)
class Line:
    """One destination: one batch at a time through claim, call and settle.

    Attributes:
        soon: deliveries that come back at once.
        later: deliveries that do not.
    """

    context: Context
    destination: str
    receiver: Receiver
    soon: set[UUID] = field(default_factory=set[UUID])
    later: set[UUID] = field(default_factory=set[UUID])
    _batch_size: int = field(init=False)
    _claimer: Claimer = field(init=False)
    _deliverer: Deliverer = field(init=False)
    _settler: Settler = field(init=False)

    def __post_init__(self) -> None:
        settings = DestinationSettings(
            name=self.destination,
            backoff_min_seconds=AT_ONCE_SECONDS,
            backoff_base_seconds=AT_ONCE_SECONDS,
            backoff_max_seconds=AT_ONCE_SECONDS,
            retry_after_max_seconds=DAY_SECONDS,
        )
        self._batch_size = settings.batch_size
        self._claimer = Claimer(self.context, settings)
        self._deliverer = Deliverer(self.context, settings, InProcessTransport(self.receiver), Leases())
        self._settler = Settler(self.context, settings, Pulse("testing", self.context.clock))

    async def turn(self, drained: Drained, attempts_max: int) -> bool:
        """Work on one batch; False when nothing is due."""
        self._claimer.sweep()
        batch = await self._claimer.run_once(self._batch_size)
        if batch is None:
            return False
        delivered = await self._deliverer.run_once(batch)
        outcomes = [(claim, self._bounded(claim, outcome, attempts_max)) for claim, outcome in delivered.outcomes]
        settled = await self._settler.run_once(batch, outcomes)
        self._claimer.finished(batch)
        self._note(outcomes)
        _add(drained, settled)
        return True

    def _bounded(self, claim: Claim, outcome: Outcome, attempts_max: int) -> Outcome:
        """A wish for a retry after the last attempt is put off."""
        if isinstance(outcome, Retryable) and claim.attempt_number >= attempts_max:
            return replace(outcome, retry_after_seconds=max(outcome.retry_after_seconds or 0.0, LATER_SECONDS))
        return outcome

    def _note(self, outcomes: Sequence[tuple[Claim, Outcome]]) -> None:
        for claim, outcome in outcomes:
            event_id = claim.fence.event_id
            self.soon.discard(event_id)
            if isinstance(outcome, Retryable):
                (self.later if (outcome.retry_after_seconds or 0.0) > AT_ONCE_SECONDS else self.soon).add(event_id)


def _add(drained: Drained, settled: Settled) -> None:
    drained.acknowledged += settled.acknowledged
    drained.retried += settled.postponed
    drained.quarantined += settled.isolated
