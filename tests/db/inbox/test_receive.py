"""Receipt and effect are one transaction, whatever a handler, a connection or a concurrent delivery does."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg import Connection

from seapost.database.pool import RoleTimeouts
from seapost.model.outcome import Acknowledged, ErrorCode, NonRetryable, Outcome, Retryable
from seapost.telemetry import logging, tracing
from tests.kit.consumer import ORDERED, PAID, Consumer, Ordered, claim, consumer, request_of
from tests.kit.database import TestDatabase
from tests.kit.eventually import eventually, eventually_async

Act = Callable[[Connection[Any], Ordered], None]


@pytest.fixture
async def running(database: TestDatabase) -> AsyncIterator[Consumer]:
    """Give the scripted consumer over a fresh database."""
    async with consumer(database) as behind:
        yield behind


async def receive(behind: Consumer, *claims: Any) -> list[Outcome]:
    """Hand claims to the inbox."""
    return await behind.receiving.receive(request_of(claims))


def assert_nothing_stays(behind: Consumer, outcome: Outcome) -> None:
    """The event ended retryable and left neither receipt nor effect (NEG-46)."""
    assert isinstance(outcome, Retryable), outcome
    assert behind.receipts() == []
    assert behind.effects() == []


@pytest.mark.req("F32", "NEG-46")
@pytest.mark.parametrize("kind", [ORDERED, PAID])
async def test_handler_cannot_commit_early(running: Consumer, kind: str) -> None:
    """`commit` on the handler's connection is refused, in both colours, and nothing of the attempt stays."""
    running.script.sync["commit"] = lambda transaction, _: transaction.commit()
    (outcome,) = await receive(running, claim(kind, "commit"))
    assert_nothing_stays(running, outcome)


def _swallow(transaction: Connection[Any], _event: Ordered) -> None:
    with contextlib.suppress(psycopg.Error):
        transaction.execute("select 1 / 0")


def _restart(transaction: Connection[Any], _event: Ordered) -> None:
    transaction.execute("rollback")
    transaction.execute("begin")


ACTS: dict[str, Act] = {
    "roll back": lambda transaction, _: transaction.rollback(),
    "roll back in SQL": lambda transaction, _: transaction.execute("rollback") and None,
    "begin another transaction": _restart,
    "swallow a database error": _swallow,
    "close the connection": lambda transaction, _: transaction.close(),
}


@pytest.mark.req("F32", "NEG-46", "DLV-03")
@pytest.mark.parametrize("act", ACTS)
async def test_broken_transaction_is_never_acknowledged(running: Consumer, act: str) -> None:
    """A handler that ends, replaces or aborts its transaction gets no receipt, and its neighbours are applied."""
    running.script.sync[act] = ACTS[act]
    good, bad, other = claim(ORDERED), claim(ORDERED, act), claim(ORDERED)
    first, second, third = await receive(running, good, bad, other)
    assert isinstance(first, Acknowledged)
    assert isinstance(second, Retryable)
    assert isinstance(third, Acknowledged)
    applied = sorted([good.fence.event_id, other.fence.event_id])
    assert running.receipts() == running.effects() == applied


@pytest.mark.req("F32")
@pytest.mark.parametrize("statement", ["commit", "commit; begin", "rollback; begin"])
async def test_commit_in_sql_is_reported(running: Consumer, statement: LiteralString) -> None:
    """`commit` sent as SQL cannot be undone, but it is found, also when another transaction was begun."""
    running.script.sync["commit"] = lambda transaction, _: transaction.execute(statement) and None
    (outcome,) = await receive(running, claim(ORDERED, "commit"))
    assert isinstance(outcome, Retryable)


@pytest.mark.req("DLV-14", "GEN-16")
@pytest.mark.parametrize("event", [ORDERED, PAID], ids=["sync", "async"])
async def test_a_known_event_beside_a_new_one_has_no_second_effect(running: Consumer, event: str) -> None:
    """In one batch the known one gets its first receipt, and only the new one is handled."""
    known, new = claim(event), claim(event)
    first = await receive(running, known)
    again = await receive(running, known, new)
    assert again[0] == first[0]
    assert isinstance(again[1], Acknowledged)
    assert running.effects() == sorted(held.fence.event_id for held in (known, new))


@pytest.mark.req("F32", "NEG-46")
async def test_failure_at_commit_leaves_nothing(running: Consumer) -> None:
    """A deferred constraint that fails at commit leaves no receipt; the neighbours go on in their own transactions."""
    with running.database.connect(autocommit=True) as connection:
        connection.execute("create table public.parent (id int primary key)")
        connection.execute("create table public.child (id int references public.parent deferrable initially deferred)")
        connection.execute("grant select, insert on public.child to seapost_consumer")
    running.script.sync["late"] = lambda transaction, _: (
        transaction.execute("insert into public.child values (1)") and None
    )
    claims = [claim(ORDERED, "late" if position == 2 else "apply") for position in range(5)]
    outcomes = await receive(running, *claims)
    kinds = [type(outcome).__name__ for outcome in outcomes]
    assert kinds == ["Acknowledged", "Acknowledged", "Retryable", "Acknowledged", "Acknowledged"]
    assert running.receipts() == running.effects()
    assert claims[2].fence.event_id not in running.receipts()


@pytest.mark.req("DLV-14", "DLV-20", "F32", "TST-31")
async def test_concurrent_deliveries_of_one_event_meet_at_the_receipt(running: Consumer) -> None:
    """A second delivery waits for the first one's commit, finds its receipt, and returns the same bytes."""
    entered, release = threading.Event(), threading.Event()

    def hold(_transaction: Connection[Any], _event: Ordered) -> None:
        entered.set()
        assert release.wait(20)

    running.script.sync["hold"] = hold
    held = claim(ORDERED, "hold")
    first = asyncio.create_task(receive(running, held))
    await eventually_async(entered.is_set, what="the first handler")
    second = asyncio.create_task(receive(running, held))
    with running.database.connect(autocommit=True) as connection:
        await asyncio.to_thread(
            eventually,
            lambda: connection.execute(
                "select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
            ).fetchone(),
            what="the second delivery waits for a lock",
        )
    release.set()
    assert await first == await second
    assert running.effects() == [held.fence.event_id]


@pytest.mark.req("DLV-14", "GEN-16")
async def test_abandoned_call_still_converges(running: Consumer) -> None:
    """A call given up while a handler runs in its thread commits on its own; the redelivery finds that receipt."""
    entered, release = threading.Event(), threading.Event()

    def hold(_transaction: Connection[Any], _event: Ordered) -> None:
        entered.set()
        assert release.wait(20)

    running.script.sync["hold"] = hold
    held = claim(ORDERED, "hold")
    call = asyncio.create_task(receive(running, held))
    await eventually_async(entered.is_set, what="the handler")
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    release.set()
    (outcome,) = await receive(running, held)
    assert isinstance(outcome, Acknowledged)
    assert running.effects() == [held.fence.event_id]


async def test_sync_handlers_do_not_block_the_loop(running: Consumer) -> None:
    """While a plain function waits, the event loop goes on: only the loop can let this handler return."""
    release = threading.Event()
    running.script.sync["wait"] = lambda _transaction, _event: None if release.wait(20) else pytest.fail("blocked")
    call = asyncio.create_task(receive(running, claim(ORDERED, "wait")))
    await eventually_async(lambda: bool(running.script.calls), what="the handler")
    release.set()
    (outcome,) = await call
    assert isinstance(outcome, Acknowledged)


@pytest.mark.req("RTY-02", "NEG-46", "F32")
async def test_killed_backend_is_a_retry(running: Consumer) -> None:
    """A backend terminated under a handler leaves nothing of the batch's unlucky event; redelivery applies it."""
    doomed = claim(ORDERED, "die")

    def die(transaction: Connection[Any], _event: Ordered) -> None:
        if len([call for call in running.script.calls if call[0] == "die"]) <= 2:
            running.database.kill(transaction.info.backend_pid)
        transaction.execute("select 1")

    running.script.sync["die"] = die
    good = claim(ORDERED)
    first, second = await receive(running, doomed, good)
    assert isinstance(first, Retryable)
    assert first.code is ErrorCode.DEPENDENCY_UNAVAILABLE
    assert isinstance(second, Acknowledged)
    assert running.effects() == running.receipts() == [good.fence.event_id]
    (again,) = await receive(running, doomed)
    assert isinstance(again, Acknowledged)


@pytest.mark.req("RTY-02")
async def test_database_out_of_reach_answers_for_all(database: TestDatabase) -> None:
    """When no connection is to be had, every delivery is retryable at once, without a wait for each."""
    async with consumer(database, wait_seconds=0.3) as behind:
        (known,) = await receive(behind, claim(ORDERED))
        assert isinstance(known, Acknowledged)
        taken = [behind.sync_pool.getconn() for _ in range(behind.sync_pool.max_size)]
        started = asyncio.get_running_loop().time()
        outcomes = await receive(behind, *[claim(ORDERED) for _ in range(20)])
        assert asyncio.get_running_loop().time() - started < 5
        for connection in taken:
            behind.sync_pool.putconn(connection)
    assert {type(outcome) for outcome in outcomes} == {Retryable}
    assert len(behind.receipts()) == 1


@pytest.mark.req("F81")
async def test_waiting_inside_the_transaction_loses_it(database: TestDatabase) -> None:
    """A handler that waits for the outside world longer than its session may idle ends as a timeout, not as a hang."""
    async with consumer(database, timeouts=RoleTimeouts(idle_in_transaction_seconds=0.1)) as behind:

        def wait(transaction: Connection[Any], _event: Ordered) -> None:
            process_id = transaction.info.backend_pid
            with database.connect(autocommit=True) as watcher:
                eventually(
                    lambda: (
                        not watcher.execute("select 1 from pg_stat_activity where pid = %s", (process_id,)).fetchone()
                    ),
                    what="the end of the session",
                )
            transaction.execute("select 1")

        behind.script.sync["wait"] = wait
        (outcome,) = await receive(behind, claim(ORDERED, "wait"))
        assert_nothing_stays(behind, outcome)


@pytest.mark.req("F81", "RTY-01")
async def test_slow_statement_is_a_timeout(database: TestDatabase) -> None:
    """A statement above the role's limit ends its own event as timeout and nobody else's."""
    async with consumer(database, timeouts=RoleTimeouts(statement_seconds=0.2)) as behind:
        behind.script.sync["slow"] = lambda transaction, _: transaction.execute("select pg_sleep(10)") and None
        first, second = await receive(behind, claim(ORDERED, "slow"), claim(ORDERED))
    assert isinstance(first, Retryable)
    assert first.code is ErrorCode.TIMEOUT
    assert isinstance(second, Acknowledged)


@pytest.mark.req("DLV-03")
async def test_good_batch_is_one_transaction(running: Consumer) -> None:
    """A batch without failures commits once: all its receipts carry one time."""
    outcomes = await receive(running, *[claim(ORDERED) for _ in range(300)])
    assert all(isinstance(outcome, Acknowledged) for outcome in outcomes)
    with running.database.connect(autocommit=True) as connection:
        row = connection.execute("select count(*), count(distinct committed_at) from seapost.inbox_receipts").fetchone()
    assert row == (300, 1)


@pytest.mark.req("NEG-46")
async def test_every_event_of_a_bad_batch_fails_alone(running: Consumer) -> None:
    """When all events of a batch fail, each is called at most twice, and none is left out."""
    claims = [claim(ORDERED, "fail") for _ in range(30)]
    outcomes = await receive(running, *claims)
    assert {type(outcome) for outcome in outcomes} == {Retryable}
    calls = [event_id for _, event_id in running.script.calls]
    assert {event_id: calls.count(event_id) for event_id in calls} == {
        held.fence.event_id: 1 if held is claims[-1] else 2 for held in claims
    }


async def test_handler_learns_the_envelope(running: Consumer) -> None:
    """The third argument gives event, aggregate, tenant, correlation, time and attempt; and the trace goes on."""
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    seen: list[str | None] = []
    running.script.sync["look"] = lambda _transaction, _event: seen.append(tracing.current_traceparent())
    held = claim(
        ORDERED,
        "look",
        attempt_number=4,
        aggregate={"kind": "order", "id": "o-17", "revision": 3},
        correlation={"correlationId": "story", "traceparent": trace},
    )
    await receive(running, held)
    (received,) = running.script.received
    assert (received.event_id, received.attempt_number) == (held.fence.event_id, 4)
    assert (received.aggregate.kind, received.aggregate.id, received.aggregate.revision) == ("order", "o-17", 3)
    assert (received.tenant.id, received.correlation.correlation_id, received.producer) == ("acme", "story", "shop")
    assert received.occurred_at.isoformat() == "2026-01-31T23:59:59+00:00"
    assert seen == [trace]
    assert tracing.current_traceparent() is None


@pytest.mark.req("SEC-17", "REF-07", "RTY-05")
async def test_log_of_a_failed_handler_holds_no_payload(running: Consumer) -> None:
    """The reference of a failed event names a log record with type and place of the error, without its message."""
    stream = io.StringIO()
    logging.configure(stream=stream)
    try:
        (outcome,) = await receive(running, claim(ORDERED, "fail"))
    finally:
        logging.configure()
    assert isinstance(outcome, Retryable)
    assert outcome.reference is not None
    (record,) = [json.loads(line) for line in stream.getvalue().splitlines() if outcome.reference in line]
    assert record["error"][0]["type"] == "builtins.LookupError"
    assert any("_obey" in frame for frame in record["error"][0]["frames"])
    assert "Ada" not in stream.getvalue()


@pytest.mark.req("F35", "DLV-05")
async def test_conflict_is_logged_with_both_digests(running: Consumer) -> None:
    """A known event with other content raises an alarm that names both digests."""
    held = claim(ORDERED)
    changed = claim(ORDERED, eventId=str(held.fence.event_id), producer="other")
    await receive(running, held)
    stream = io.StringIO()
    logging.configure(stream=stream)
    try:
        (outcome,) = await receive(running, changed)
    finally:
        logging.configure()
    assert isinstance(outcome, NonRetryable)
    (record,) = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert record["level"] == "error"
    assert record["applied_digest"] == held.event_digest.hex()
    assert record["received_digest"] == changed.event_digest.hex()
