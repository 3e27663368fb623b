"""Receipt and effect are one transaction of the consumer's own library, whatever its handler does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import pytest

from seapost.database.pool import open_pool
from seapost.inbox.receive import Receiving
from seapost.model.delivery import Claim
from seapost.model.outcome import Acknowledged, ErrorCode, NonRetryable, Outcome, Retryable
from tests.conformance.conftest import Route
from tests.kit.consumer import DEFINITION, claim, request_of
from tests.kit.database import TestDatabase
from tests.kit.drivers.inboxes import INBOXES, Awaiting, Blocking
from tests.kit.kernel import Kernel

TABLES = """
create table public.effect (event_id uuid not null, colour text not null);
create function public.refuse() returns trigger language plpgsql
    as $$ begin raise exception 'too late' using errcode = '23514'; end $$;
create constraint trigger late after insert on public.effect deferrable initially deferred
    for each row when (new.colour = 'late') execute function public.refuse()"""
REFUSE_RECEIPTS = """
create constraint trigger late after insert on seapost.inbox_receipt deferrable initially deferred
    for each row execute function public.refuse()"""

Kind = type[Blocking] | type[Awaiting]


@dataclass
class Consumer:
    """A running inbox, and its database as an onlooker sees it."""

    kernel: Kernel
    receiving: Receiving

    async def receive(self, *claims: Claim) -> Sequence[Outcome]:
        """Hand claims to the inbox."""
        return await self.receiving.receive(request_of(claims))

    def kept(self) -> tuple[list[str], int]:
        """The colours of the effects, and the number of receipts."""
        rows = self.kernel.rows("select colour from public.effect order by event_id, colour")
        return [row[0] for row in rows], self.kernel.count("inbox_receipt")


@asynccontextmanager
async def running(kind: Kind, database: TestDatabase, route: Route) -> AsyncGenerator[Consumer]:
    """Run an inbox of this library."""
    kernel = Kernel(database.connect(autocommit=True))
    kernel.connection.execute(TABLES)
    kernel.register(DEFINITION)
    async with AsyncExitStack() as stack:
        pool = await stack.enter_async_context(open_pool(route.dsn, part="inbox", behind_pooler=not route.prepared))
        inbox = await stack.enter_async_context(kind(route.dsn, prepared=route.prepared).inbox())
        receiving = await stack.enter_async_context(Receiving(inbox, pool))
        yield Consumer(kernel, receiving)


@pytest.fixture(params=list(INBOXES))
def library(request: pytest.FixtureRequest) -> Kind:
    """Each library in turn."""
    return INBOXES[request.param]


@pytest.fixture
async def consumer(library: Kind, database: TestDatabase, route: Route) -> AsyncIterator[Consumer]:
    """Give a running inbox."""
    async with running(library, database, route) as started:
        yield started


def colour_of(library: Kind) -> str:
    """What an effect of this library's handlers says."""
    return "sync" if issubclass(library, Blocking) else "async"


@pytest.mark.req("F32", "DLV-14", "DLV-20")
async def test_effect_and_receipt_come_together_and_once(consumer: Consumer, library: Kind) -> None:
    """A new event gets effect and receipt; a second delivery gets the first receipt, byte for byte, and no effect."""
    one = claim(do="apply")
    (first,) = await consumer.receive(one)
    (second,) = await consumer.receive(one)

    assert isinstance(first, Acknowledged)
    assert second == first
    assert consumer.kept() == ([colour_of(library)], 1)


@pytest.mark.req("F32", "NEG-46")
@pytest.mark.parametrize("word", ["fail", "retry", "reject", "swallow", "late", "end", "undo", "die"])
async def test_a_failing_handler_leaves_nothing(word: str, consumer: Consumer, library: Kind) -> None:
    """Whatever goes wrong in a handler or at its commit, neither effect nor receipt stays; the next event is fine."""
    bad = claim(do=word)
    (outcome,) = await consumer.receive(bad)

    if word == "reject":
        assert isinstance(outcome, NonRetryable)
    else:
        assert isinstance(outcome, Retryable)
    assert consumer.kept() == ([], 0)
    (after,) = await consumer.receive(claim(do="apply"))
    assert isinstance(after, Acknowledged), after
    assert consumer.kept() == ([colour_of(library)], 1)


@pytest.mark.req("F32")
async def test_a_refused_receipt_takes_the_effect_with_it(consumer: Consumer) -> None:
    """A receipt that cannot be committed leaves no effect either."""
    consumer.kernel.connection.execute(REFUSE_RECEIPTS)
    (outcome,) = await consumer.receive(claim(do="apply"))

    assert isinstance(outcome, Retryable)
    assert consumer.kept() == ([], 0)


@pytest.mark.req("F32")
async def test_a_commit_in_sql_text_is_found(consumer: Consumer, library: Kind) -> None:
    """It cannot be refused, so it is reported; the redelivery finds the receipt and applies nothing again."""
    one = claim(do="commit")
    (outcome,) = await consumer.receive(one)
    assert isinstance(outcome, Retryable)

    (again,) = await consumer.receive(one)
    assert isinstance(again, Acknowledged)
    assert consumer.kept() == ([colour_of(library)], 1)


@pytest.mark.req("F32")
async def test_a_handler_may_use_savepoints(consumer: Consumer, library: Kind) -> None:
    """What failed inside the library's own savepoint is gone, the rest commits."""
    (outcome,) = await consumer.receive(claim(do="savepoint"))

    assert isinstance(outcome, Acknowledged)
    assert consumer.kept() == ([colour_of(library)], 1)


@pytest.mark.req("F32")
async def test_a_bad_event_does_not_harm_its_neighbours(consumer: Consumer, library: Kind) -> None:
    """In one batch each event has its own outcome."""
    words = ["apply", "fail", "apply", "late", "apply", "reject"]
    outcomes = await consumer.receive(*[claim(do=word) for word in words])

    kinds = [Acknowledged, Retryable, Acknowledged, Retryable, Acknowledged, NonRetryable]
    assert [type(outcome) for outcome in outcomes] == kinds
    assert consumer.kept() == ([colour_of(library)] * 3, 3)


@pytest.mark.req("F03", "DLV-14")
async def test_other_content_under_a_known_id_is_a_conflict(consumer: Consumer, library: Kind) -> None:
    """The first content was applied, the second never is."""
    first = claim(do="apply")
    other = claim(eventId=str(first.fence.event_id), payload={"do": "apply", "note": "other"})
    await consumer.receive(first)
    (outcome,) = await consumer.receive(other)

    assert isinstance(outcome, NonRetryable)
    assert outcome.code is ErrorCode.DIGEST_CONFLICT
    assert consumer.kept() == ([colour_of(library)], 1)


@pytest.mark.req("DLV-14")
async def test_two_deliveries_at_once_are_one_effect(consumer: Consumer, library: Kind) -> None:
    """Both are answered with the same receipt, whoever was first."""
    one = claim(do="apply")
    answers = await asyncio.gather(*[consumer.receive(one) for _ in range(4)])

    receipts = {outcome.receipt for (outcome,) in answers if isinstance(outcome, Acknowledged)}
    assert len(receipts) == 1
    assert json.loads(receipts.pop())["eventId"] == str(one.fence.event_id)
    assert consumer.kept() == ([colour_of(library)], 1)
