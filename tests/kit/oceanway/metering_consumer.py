"""The consumer of metering as its deliveries meet it: the real inbox, its transactions and its answers."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from oceanway.metering.consumer import CONSUMER, DESTINATION, build_inbox
from seapost.database.pool import open_pool, open_sync_pool
from seapost.inbox.receive import Receiving
from seapost.model.delivery import Claim, Fence
from seapost.model.delivery_set import DefinitionQuad, Member
from seapost.model.outcome import Acknowledged, NonRetryable, Outcome
from seapost.transport.protocol import pack
from tests.kit.oceanway.metering_facts import Told

if TYPE_CHECKING:
    from oceanway.reads.client import Reader
    from seapost.inbox.deciding import DecidingInbox
    from seapost.testing.databases import TestDatabase

ROLE: Final = "metering_test_consumer"
_RECEIPT: Final = "MeteringInputProcessorConsumerReceipt"


class Consumer:
    """An inbox over a database; every call is one delivery or one batch of them.

    Args:
        runner: the event loop that the inbox lives in.
    """

    def __init__(self, database: TestDatabase, runner: asyncio.Runner, receiving: Receiving) -> None:
        self._runner = runner
        self._receiving = receiving
        with database.connect() as connection:
            row = connection.execute(
                "select delivery_set_version, encode(definition_digest, 'hex')"
                " from seapost.delivery_set_version where status = 'active'"
            ).fetchone()
        assert row is not None
        self._definition = DefinitionQuad(row[0], "1", "jcs-sha256-v1", row[1])

    def deliver(self, *told: Told) -> list[Outcome]:
        """Hand events over in one batch; one outcome for each."""
        (parcel,) = pack([self._claim(one) for one in told])
        return self._runner.run(self._receiving.receive(parcel.request))

    def accept(self, told: Told) -> bytes:
        """Deliver one event that must be acknowledged; its receipt."""
        (outcome,) = self.deliver(told)
        assert isinstance(outcome, Acknowledged), outcome
        return outcome.receipt

    def _claim(self, told: Told) -> Claim:
        kind = "execution.attempt-eligibility.finalized@1"
        if kind.encode() not in told.envelope:
            kind = "gateway.evidence-availability.current-changed@1"
        return Claim(
            destination=DESTINATION,
            fence=Fence(told.event_id, 41, uuid4()),
            attempt_number=1,
            failure_count=0,
            lost_count=0,
            company=1,
            member=Member(
                1,
                self._definition,
                kind,
                "1",
                DESTINATION,
                CONSUMER,
                mandatory=True,
                receipt_type=_RECEIPT,
                receipt_schema_version="1",
                projection=None,
            ),
            event_digest=sha256(told.envelope).digest(),
            envelope=told.envelope,
            available_at=datetime(2026, 1, 1, tzinfo=UTC),
        )


def prepare_role(database: TestDatabase) -> None:
    """Make the login role of the consumer's process: this consumer, and the kernel's consumer."""
    with database.connect(autocommit=True) as connection:
        connection.execute(
            f"do $$ begin create role {ROLE} nologin;"
            " exception when duplicate_object or unique_violation then null; end $$"
        )
        connection.execute(f"grant oceanway_metering_consumer, seapost_consumer to {ROLE}")


@contextmanager
def consuming(database: TestDatabase, reader: Reader, *, inbox: DecidingInbox | None = None) -> Generator[Consumer]:
    """Run the consumer in the roles of its process."""
    prepare_role(database)

    async def opened(stack: AsyncExitStack) -> Receiving:
        pool = await stack.enter_async_context(open_pool(database.dsn, part="inbox", role=ROLE, size_max=2))
        threads = stack.enter_context(open_sync_pool(database.dsn, part="inbox", role=ROLE, size_max=2))
        return await stack.enter_async_context(Receiving(inbox or build_inbox(reader), pool, threads))

    with ExitStack() as stack:
        runner = stack.enter_context(asyncio.Runner())
        opening = AsyncExitStack()
        receiving = runner.run(opened(opening))
        stack.callback(lambda: runner.run(opening.aclose()))
        yield Consumer(database, runner, receiving)


def codes(outcomes: Sequence[Outcome]) -> list[Any]:
    """What each delivery ended in, in one word."""
    return [
        "acknowledged"
        if isinstance(one, Acknowledged)
        else ("rejected" if isinstance(one, NonRetryable) else "retryable", one.code.value)
        for one in outcomes
    ]
