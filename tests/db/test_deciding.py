"""A deciding inbox: what its handler returns is what is committed, and what every redelivery is answered with."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from psycopg import Connection

from seapost.database.installer import GuardLevel
from seapost.inbox.deciding import TRANSACTION_EVENTS_MAX, Arrived, Conflicting, Deciding, read_decided
from seapost.model.errors import Reject, Retry
from seapost.model.outcome import Acknowledged, ErrorCode, NonRetryable, Outcome, Retryable
from tests.kit import builders
from tests.kit.database import DatabaseServer, TestDatabase
from tests.kit.deciding import Act, Judge, JudgedReceipt, Weighed, accepted, claim, prepare_database, running


@pytest.fixture(scope="module")
def shared(database_server: DatabaseServer) -> Iterator[TestDatabase]:
    """Give one database to all tests here; every test has its own events."""
    database = database_server.create(GuardLevel.STRICT)
    prepare_database(database)
    yield database
    database_server.drop(database)


def codes(outcomes: Sequence[Outcome]) -> list[str]:
    """What each delivery ended in, in one word."""
    return ["acknowledged" if isinstance(one, Acknowledged) else one.code.value for one in outcomes]


@pytest.mark.req("RCP-14", "RCP-39", "DLV-14", "DLV-20")
async def test_the_receipt_says_what_the_handler_decided_and_stays_for_ever(shared: TestDatabase) -> None:
    """A redelivery, in another process too, gets the first receipt byte for byte, and no handler runs again."""
    judge = Judge()
    held = claim()
    async with running(shared, judge.inbox()) as behind:
        (first,) = await behind.receive(held)
    async with running(shared, judge.inbox()) as behind:
        (again,) = await behind.receive(held)
        assert behind.effects(held) == ["apply"]
    assert isinstance(first, Acknowledged)
    assert again == first
    receipt = JudgedReceipt.decode(first.receipt)
    assert (receipt.verdict, receipt.event_id) == ("accepted", str(held.fence.event_id))
    assert receipt.judged_receipt_ref == f"judge:{held.fence.event_id}"
    assert receipt.committed_at == judge.contexts[0].committed_at
    assert judge.calls == [held.fence.event_id]
    assert json.loads(first.ack)["appliedReceipt"]["kind"] == "judged_receipt"


async def test_a_handler_is_told_what_it_decides_about(shared: TestDatabase) -> None:
    """The context holds the exact envelope, its digest, and the fields that every receipt of the inbox shares."""
    judge = Judge()
    held = claim()
    async with running(shared, judge.inbox()) as behind:
        await behind.receive(held)
    (context,) = judge.contexts
    assert (context.envelope, context.envelope_sha256) == (held.envelope, held.event_digest.hex())
    assert context.received.aggregate.id == f"order-{held.fence.event_id}"
    assert context.common["event_envelope_sha256"] == held.event_digest.hex()
    assert context.prepared is None


@pytest.mark.req("DLV-14", "RCP-14")
async def test_two_copies_in_one_batch_are_decided_once(shared: TestDatabase) -> None:
    """The second copy gets the answer of the first one."""
    judge = Judge()
    held = claim()
    async with running(shared, judge.inbox()) as behind:
        first, second = await behind.receive(held, held)
        assert behind.effects(held) == ["apply"]
    assert isinstance(first, Acknowledged)
    assert first == second


@pytest.mark.req("DLV-14", "OPS-10", "NEG-34")
async def test_the_same_event_with_another_digest_is_refused_for_good(shared: TestDatabase) -> None:
    """In the same batch or later: one effect, one receipt, and the other content goes to quarantine."""
    judge = Judge()
    held = claim()
    other = claim("hold", eventId=str(held.fence.event_id))
    async with running(shared, judge.inbox()) as behind:
        assert codes(await behind.receive(held, other)) == ["acknowledged", "digest_conflict"]
        (late,) = await behind.receive(other)
        assert isinstance(late, NonRetryable)
        assert late.code is ErrorCode.DIGEST_CONFLICT
        assert behind.effects(held) == ["apply"]


@pytest.mark.req("AMB-17", "NEG-46", "CAT-07")
async def test_a_returned_retry_keeps_its_effects_and_leaves_no_receipt(shared: TestDatabase) -> None:
    """The effects of a handler that has to wait are committed; the redelivery asks it again, until it decides."""
    judge = Judge()
    held, neighbour = claim("hold"), claim()
    async with running(shared, judge.inbox()) as behind:
        waiting, applied = await behind.receive(held, neighbour)
        assert isinstance(waiting, Retryable)
        assert waiting.code is ErrorCode.FENCE_UNBINDABLE
        assert isinstance(applied, Acknowledged)
        assert behind.effects(held) == ["hold"]
        assert behind.receipts(held, neighbour) == {neighbour.fence.event_id}
        judge.acts["hold"] = lambda _transaction, _event, context: accepted(context, verdict="held")
        (decided,) = await behind.receive(held)
        assert isinstance(decided, Acknowledged)
        assert JudgedReceipt.decode(decided.receipt).verdict == "held"
        assert behind.effects(held) == ["hold", "hold"]


@pytest.mark.req("NEG-46", "OPS-08")
@pytest.mark.parametrize(
    ("do", "code"),
    [
        ("raise retry", "owner_unreadable"),
        ("raise reject", "schema_invalid"),
        ("fail", "dependency_unavailable"),
    ],
)
async def test_what_raises_leaves_nothing_and_harms_no_neighbour(shared: TestDatabase, do: str, code: str) -> None:
    """In the middle of a batch: the others are applied, each once."""
    judge = Judge()
    claims = [claim(), claim(do), claim()]
    async with running(shared, judge.inbox()) as behind:
        assert codes(await behind.receive(*claims)) == ["acknowledged", code, "acknowledged"]
        assert behind.effects(*claims) == ["apply", "apply"]
        assert behind.receipts(*claims) == {claims[0].fence.event_id, claims[2].fence.event_id}


def _forged_digest(_transaction: Connection[Any], _event: Weighed, context: Deciding) -> object:
    return accepted(context).model_copy(update={"verdict": "held"})


def _swallow(transaction: Connection[Any], _event: Weighed, context: Deciding) -> object:
    with suppress(psycopg.Error):
        transaction.execute("select 1 / 0")
    return accepted(context)


def _commit(transaction: Connection[Any], _event: Weighed, context: Deciding) -> object:
    transaction.execute("commit")
    transaction.execute("begin")
    return accepted(context)


def _saying(**changes: str) -> Act:
    """A handler whose receipt differs in these fields, and has the digest of what it says."""
    return lambda _transaction, _event, context: accepted(context, **changes)


WRONG: dict[str, Act] = {
    "nothing": lambda _transaction, _event, _context: None,
    "an exception it should have raised": lambda _transaction, _event, _context: Reject("never"),
    "another event": _saying(event_id=str(builders.new_event_id())),
    "another digest": _saying(event_envelope_sha256="0" * 64),
    "another consumer": _saying(consumer_name="jury"),
    "another destination": _saying(destination="court"),
    "another moment": _saying(committed_at="2026-01-01T00:00:00.000000Z"),
    "another reference": _saying(judged_receipt_ref="x"),
    "a digest that is not its own": _forged_digest,
    "what the dispatcher would refuse": _saying(verdict="forged"),
    "after swallowing a database error": _swallow,
}


@pytest.mark.req("DLV-19", "NEG-46", "F32")
@pytest.mark.parametrize("name", WRONG)
async def test_a_wrong_answer_of_a_handler_is_never_committed(shared: TestDatabase, name: str) -> None:
    """It is an error of the program: logged, retryable, and neither effect nor receipt stays."""
    judge = Judge(acts={"wrong": WRONG[name]})
    held = claim("wrong")
    async with running(shared, judge.inbox()) as behind:
        (outcome,) = await behind.receive(held)
        assert isinstance(outcome, Retryable), outcome
        assert outcome.reference
        assert (behind.effects(held), behind.receipts(held)) == ([], set())


@pytest.mark.req("F32")
async def test_a_transaction_that_the_handler_ended_is_never_acknowledged(shared: TestDatabase) -> None:
    """Commit in SQL text is noticed before the receipt of the batch counts."""
    judge = Judge(acts={"commit": _commit})
    held = claim("commit")
    async with running(shared, judge.inbox()) as behind:
        (outcome,) = await behind.receive(held)
        assert isinstance(outcome, Retryable)
        assert behind.receipts(held) == set()


@pytest.mark.req("NEG-46", "OPS-08", "DLV-14")
async def test_a_connection_that_dies_under_the_handler_takes_everything_with_it(shared: TestDatabase) -> None:
    """The batch is tried again without the event at fault; nothing of the lost transaction stays."""

    def die(transaction: Connection[Any], _event: Weighed, _context: Deciding) -> object:
        with shared.connect(autocommit=True) as killer:
            killer.execute("select pg_terminate_backend(%s, 5000)", (transaction.info.backend_pid,))
        transaction.execute("select 1")
        return None

    judge = Judge(acts={"die": die})
    claims = [claim(), claim("die"), claim()]
    async with running(shared, judge.inbox()) as behind:
        assert codes(await behind.receive(*claims)) == ["acknowledged", "dependency_unavailable", "acknowledged"]
        assert behind.effects(*claims) == ["apply", "apply"]
        del judge.acts["die"]
        assert codes(await behind.receive(claims[1])) == ["acknowledged"]
        assert behind.effects(claims[1]) == ["die"]


# Prepare ---------------------------------------------------------------------------------------------------


@pytest.mark.req("AMB-35")
async def test_prepare_sees_a_batch_at_once_and_holds_no_transaction(shared: TestDatabase) -> None:
    """It runs once for the events of a handler, outside any transaction, and its results reach the handlers."""
    open_transactions: list[int] = []

    def prepare(items: Sequence[Arrived]) -> Sequence[object]:
        with shared.connect(autocommit=True) as observer:
            row = observer.execute(
                "select count(*) from pg_stat_activity where datname = current_database()"
                " and application_name = 'seapost-inbox' and xact_start is not null"
            ).fetchone()
            assert row is not None
            open_transactions.append(row[0])
        return [item.received.event_id for item in items]

    judge = Judge(preparing=prepare)
    claims = [claim() for _ in range(5)]
    async with running(shared, judge.inbox()) as behind:
        assert codes(await behind.receive(*claims)) == ["acknowledged"] * 5
    assert [len(items) for items in judge.prepared] == [5]
    assert open_transactions == [0]
    assert [context.prepared for context in judge.contexts] == judge.calls


@pytest.mark.req("AMB-35", "NEG-46", "MTR-06")
async def test_what_prepare_refuses_is_the_outcome_of_that_event(shared: TestDatabase) -> None:
    """A `Retry` or `Reject` among the results leaves neither effect nor receipt, and the others are applied."""

    def prepare(items: Sequence[Arrived]) -> Sequence[object]:
        words = [item.event.do if isinstance(item.event, Weighed) else "" for item in items]
        answers = {"unreadable": Retry("away", code="owner_unreadable"), "absent": Reject(code="schema_invalid")}
        return [answers.get(word) for word in words]

    judge = Judge(preparing=prepare)
    claims = [claim("unreadable"), claim(), claim("absent")]
    async with running(shared, judge.inbox()) as behind:
        assert codes(await behind.receive(*claims)) == ["owner_unreadable", "acknowledged", "schema_invalid"]
        assert behind.effects(*claims) == ["apply"]
        assert behind.receipts(*claims) == {claims[1].fence.event_id}


@pytest.mark.req("AMB-35", "NEG-46")
async def test_prepare_that_fails_on_one_event_is_tried_without_it(shared: TestDatabase) -> None:
    """An exception costs only the event that causes it; a `Retry` that is raised is everybody's."""

    def prepare(items: Sequence[Arrived]) -> Sequence[object]:
        words = {item.event.do for item in items if isinstance(item.event, Weighed)}
        if "poison" in words:
            raise LookupError("poison")
        if "away" in words:
            raise Retry("the owner is away", code="owner_unreadable")
        return [None] * len(items)

    judge = Judge(preparing=prepare)
    claims = [claim(), claim("poison"), claim(), claim()]
    away = [claim(), claim("away")]
    async with running(shared, judge.inbox()) as behind:
        outcomes = codes(await behind.receive(*claims))
        assert outcomes == ["acknowledged", "dependency_unavailable", "acknowledged", "acknowledged"]
        judge.prepared.clear()
        assert codes(await behind.receive(*away)) == ["owner_unreadable"] * 2
        assert len(judge.prepared) == 1


@pytest.mark.req("AMB-35")
async def test_an_event_is_prepared_once_however_its_batch_is_divided(shared: TestDatabase) -> None:
    """A handler that raises costs its neighbours another transaction, and the owner no other read."""
    judge = Judge(preparing=lambda items: [item.received.event_id for item in items])
    claims = [claim(), claim("fail"), claim()]
    async with running(shared, judge.inbox()) as behind:
        assert codes(await behind.receive(*claims)) == ["acknowledged", "dependency_unavailable", "acknowledged"]
    assert [len(items) for items in judge.prepared] == [3]
    assert all(context.prepared == context.received.event_id for context in judge.contexts)


@pytest.mark.req("DLV-14", "DLV-20")
async def test_a_known_event_needs_no_owner(shared: TestDatabase) -> None:
    """What `prepare` says about an event that has a receipt does not matter: it gets its receipt."""
    judge = Judge(preparing=lambda items: [None] * len(items))
    held = claim()
    async with running(shared, judge.inbox()) as behind:
        (first,) = await behind.receive(held)
        judge.preparing = lambda items: [Reject("gone")] * len(items)
        assert await behind.receive(held) == [first]


async def test_prepare_must_answer_for_every_event(shared: TestDatabase) -> None:
    """Too few results are an error of the program; nothing is applied on a guess."""
    judge = Judge(preparing=lambda _items: [])
    held = claim()
    async with running(shared, judge.inbox()) as behind:
        assert codes(await behind.receive(held)) == ["dependency_unavailable"]
        assert behind.effects(held) == []


async def test_a_large_batch_is_divided(shared: TestDatabase) -> None:
    """One transaction takes a bounded number of events, because each costs the server a lock."""
    judge = Judge()
    claims = [claim() for _ in range(TRANSACTION_EVENTS_MAX + 3)]
    async with running(shared, judge.inbox()) as behind:
        assert set(codes(await behind.receive(*claims))) == {"acknowledged"}
    assert len({context.committed_at for context in judge.contexts}) == 2


# Reads -----------------------------------------------------------------------------------------------------


@pytest.mark.req("RCP-57", "RCP-58", "RCP-59", "RCP-07", "RCP-09")
async def test_a_decided_receipt_is_read_by_its_complete_identity(shared: TestDatabase) -> None:
    """Found only when quad, event and digest are all as stored; otherwise conflicting, or not found."""
    judge = Judge()
    held = claim()
    inbox = judge.inbox()
    async with running(shared, inbox) as behind:
        (answer,) = await behind.receive(held)
    assert isinstance(answer, Acknowledged)
    receipt = JudgedReceipt.decode(answer.receipt)
    quad, event_id, digest = receipt.quad(), receipt.event_id, receipt.event_envelope_sha256
    with shared.connect(autocommit=True) as connection:
        connection.execute("set role seapost_consumer")
        found = read_decided(connection, inbox, quad=quad, event_id=event_id, event_digest=digest)
        assert found == receipt
        for changed in (
            {"ref": "another"},
            {"schema_version": "2"},
            {"digest_algorithm_version": "jcs-sha256-v2"},
            {"digest": "0" * 64},
        ):
            wrong = type(quad)(**{**{name: getattr(quad, name) for name in quad.__slots__}, **changed})
            answered = read_decided(connection, inbox, quad=wrong, event_id=event_id, event_digest=digest)
            assert answered == Conflicting()
        assert read_decided(connection, inbox, quad=quad, event_id=event_id, event_digest="0" * 64) == Conflicting()
        unknown = str(builders.new_event_id())
        assert read_decided(connection, inbox, quad=quad, event_id=unknown, event_digest=digest) is None
