"""Two sessions at one lane: an inbox transaction against a worker, and a lease that was taken over."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from oceanway.contracts.errors import Stale
from oceanway.metering import lanes, store
from oceanway.metering.committing import commit
from oceanway.metering.outcomes import Task
from tests.kit.database import TestDatabase
from tests.kit.oceanway.metering import AT_ONCE, Metering, running_metering
from tests.kit.oceanway.metering_facts import COST, MOMENT, USAGE, Attempt

BLOCKED_BY = "select 1 from pg_stat_activity as a where %s = any (pg_blocking_pids(a.pid))"
WAITING = "select exists (select from pg_locks as l where not l.granted and l.pid = %s)"


@pytest.fixture(scope="module")
def metering(metering_database: TestDatabase) -> Iterator[Metering]:
    """Give one metering to all tests here; every test has attempts of its own."""
    with running_metering(metering_database) as bench:
        yield bench


def claimed(metering: Metering, attempt: Attempt) -> Task:
    """Lease the cost work of an attempt."""
    [task] = [one for one in metering.cost.claim(50) if one.work["executionAttemptId"] == attempt.ref]
    return task


def finishes(metering: Metering, attempt: Attempt) -> list[Any]:
    """The finishes of an attempt's works."""
    return metering.documents("work_finish", attempt)


def forget_finishes(metering: Metering, task: Task) -> None:
    """Take the finishes away, as if no inbox transaction had written them on behalf."""
    metering.admin.execute("set session_replication_role = replica")
    metering.admin.execute("delete from metering.work_finish where metering_input_work_ref = %s", (task.ref,))
    metering.admin.execute("set session_replication_role = origin")


def wait_until_blocked(metering: Metering, process_id: int, running: Future[Any]) -> None:
    """Return once the session waits for a lock; what runs in it must not end meanwhile."""
    while metering.admin.execute(WAITING, (process_id,)).fetchone() == (False,):
        assert not running.done(), running.exception()


def wait_until_blocking(metering: Metering, holder: psycopg.Connection[Any], running: Future[Any]) -> None:
    """Return once some session waits for this one; what shall wait must not end meanwhile."""
    while not metering.admin.execute(BLOCKED_BY, (holder.info.backend_pid,)).fetchone():
        assert not running.done(), running.exception()


@pytest.mark.req("TST-25", "MTR-11", "MTR-12", "MTR-13", "NEG-13")
def test_the_late_worker_and_the_inbox_transaction_get_the_same_superseded_finish(metering: Metering) -> None:
    """The worker waits for the inbox transaction that holds the lane, then gets the finish which that one wrote."""
    attempt = metering.new_attempt()
    metering.accept(attempt.report(COST, "spend", "pending"))
    task = claimed(metering, attempt)
    told = attempt.report(COST, "spend", "available")
    with metering.database.connect("oceanway_metering_service") as late, metering.database.connect() as holder:
        holder.execute("select from metering.lane where execution_attempt_id = %s for update", (attempt.ref,))
        with ThreadPoolExecutor(2) as threads:
            inbox = threads.submit(metering.consumer.accept, told)
            wait_until_blocking(metering, holder, inbox)
            finish = lanes.superseded(task.work, task.attempt_number, task.token, MOMENT)
            worker = threads.submit(store.superseded, late, finish=finish.data)
            wait_until_blocked(metering, late.info.backend_pid, worker)
            assert not worker.done()
            holder.rollback()
            inbox.result()
            first = worker.result()
            late.commit()
    [written] = finishes(metering, attempt)
    assert written["outcome"]["state"] == "superseded"
    assert written["meteringInputWorkAttemptFinishedDigest"] == finish.quad.digest
    assert first is not None
    assert json.loads(first) == written
    metering.work()
    metering.check()


@pytest.mark.req("TST-25", "MTR-12", "MTR-13")
def test_two_late_writers_of_one_superseded_finish_get_one_row(metering: Metering) -> None:
    """If the inbox transaction did not write it, whoever does so first decides the row; the others get it."""
    attempt = metering.new_attempt()
    metering.accept(attempt.report(COST, "spend", "pending"))
    task = claimed(metering, attempt)
    metering.accept(attempt.report(COST, "spend", "available"))
    forget_finishes(metering, task)
    early = lanes.superseded(task.work, task.attempt_number, task.token, "2026-01-01T00:00:00.000000Z")
    late = lanes.superseded(task.work, task.attempt_number, task.token, "2027-01-01T00:00:00.000000Z")
    with (
        metering.database.connect("oceanway_metering_service") as one,
        metering.database.connect("oceanway_metering_service") as two,
        ThreadPoolExecutor(1) as threads,
    ):
        first = store.superseded(one, finish=early.data)
        second = threads.submit(store.superseded, two, finish=late.data)
        wait_until_blocked(metering, two.info.backend_pid, second)
        one.commit()
        assert first == second.result() == early.data
        two.commit()
    [written] = finishes(metering, attempt)
    assert written["finishedAt"] == "2026-01-01T00:00:00.000000Z"
    metering.work()
    metering.check()


@pytest.mark.req("MTR-12")
def test_a_worker_whose_work_is_still_the_lanes_ends_nothing(metering: Metering) -> None:
    """Only a later generation supersedes, and only the latest attempt is named."""
    attempt = metering.new_attempt()
    metering.accept(attempt.report(COST, "spend", "pending"))
    task = claimed(metering, attempt)
    finish = lanes.superseded(task.work, task.attempt_number, task.token, MOMENT)
    with metering.database.connect("oceanway_metering_service", autocommit=True) as connection:
        assert store.superseded(connection, finish=finish.data) is None
        metering.expire(attempt)
        again = claimed(metering, attempt)
        metering.accept(attempt.report(COST, "spend", "available"))
        forget_finishes(metering, task)
        assert store.superseded(connection, finish=finish.data) is None
        last = lanes.superseded(again.work, again.attempt_number, again.token, MOMENT)
        assert store.superseded(connection, finish=last.data) == last.data
    metering.work()
    metering.check()


@pytest.mark.req("MTR-14", "NEG-13", "RCP-30", "AMB-45")
@pytest.mark.parametrize("lost", ["taken over", "superseded", "given back"])
def test_a_stale_token_writes_nothing(metering: Metering, lost: str) -> None:
    """Whatever the old worker found out: each kind of outcome is refused, and nothing of it stays."""
    attempt = metering.new_attempt()
    metering.accept(attempt.report(COST, "spend", "available", "3"))
    task = claimed(metering, attempt)
    [outcome] = metering.cost.judge([task])
    if lost == "taken over":
        metering.expire(attempt)
        assert claimed(metering, attempt).token > task.token
    elif lost == "superseded":
        metering.accept(attempt.report(COST, "spend", "available", "4"))
    else:
        with metering.database.connect("oceanway_metering_service", autocommit=True) as connection:
            store.release(connection, leases=[(task.ref, task.token)], backoff=AT_ONCE)
    before = metering.facts_digest()
    with metering.database.connect("oceanway_metering_service") as connection, pytest.raises(Stale):
        commit(connection, task, outcome, moment=MOMENT, backoff=AT_ONCE)
    metering.cost.settle([task], [outcome])
    assert metering.facts_digest() == before
    assert metering.documents("provider_cost_fact", attempt) == []
    assert metering.lane(attempt, "spend")["state"] == "pending"
    metering.expire(attempt)
    metering.work()
    expected = "4" if lost == "superseded" else "3"
    assert [fact["amount"] for fact in metering.documents("provider_cost_fact", attempt)] == [expected]
    metering.check()


@pytest.mark.req("MTR-02", "MTR-14", "RCP-30")
def test_an_event_that_comes_while_the_worker_writes_waits_and_then_makes_the_next_generation(
    metering: Metering,
) -> None:
    """The worker holds the lane: its finish stands, and the event finds a finished work."""
    attempt = metering.new_attempt()
    metering.accept(attempt.report(COST, "spend", "available", "3"))
    task = claimed(metering, attempt)
    [outcome] = metering.cost.judge([task])
    told = attempt.report(COST, "spend", "available", "4")
    with metering.database.connect("oceanway_metering_service") as connection, ThreadPoolExecutor(1) as threads:
        commit(connection, task, outcome, moment=MOMENT, backoff=AT_ONCE)
        inbox = threads.submit(metering.consumer.accept, told)
        wait_until_blocking(metering, connection, inbox)
        assert not inbox.done()
        connection.commit()
        inbox.result()
    assert [one["outcome"]["state"] for one in finishes(metering, attempt)] == ["availability_processed"]
    assert metering.lane(attempt, "spend")["latest_work_generation"] == 2
    metering.work()
    assert [fact["amount"] for fact in metering.documents("provider_cost_fact", attempt)] == ["3", "4"]
    metering.check()


@pytest.mark.req("AMB-45", "AMB-46", "MTR-20")
def test_two_workers_never_hold_one_work(metering: Metering) -> None:
    """What one claims the other passes by; tokens rise, and each lease has its started row."""
    attempts = [metering.new_attempt() for _ in range(10)]
    metering.accept(*(attempt.report(COST, "spend", "pending") for attempt in attempts))
    with ThreadPoolExecutor(2) as threads:
        one, two = threads.map(metering.cost.claim, (7, 7))
    refs = [task.ref for task in (*one, *two)]
    assert len(refs) == len(set(refs)) == 10
    tokens = [task.token for task in (*one, *two)]
    starts = metering.admin.execute(
        "select count(*) from metering.work_start where fencing_token = any(%s)", (tokens,)
    ).fetchone()
    assert starts == (10,)
    for attempt in attempts:
        metering.expire(attempt)
    metering.work()
    metering.check()


@pytest.mark.req("MTR-02", "MTR-03")
def test_two_events_of_a_new_attempt_at_once_make_one_fence(metering: Metering) -> None:
    """The second transaction waits for the first, whichever it is, and then finds its fence."""
    attempt = metering.new_attempt()
    told = [attempt.end(), attempt.report(USAGE, "tokens", "available", "2")]
    with metering.database.connect("oceanway_metering_consumer") as other, ThreadPoolExecutor(1) as threads:
        manifest = metering.manifest(attempt)
        store.lock(other, envelope=told[0].envelope, manifest=manifest)
        inbox = threads.submit(metering.consumer.accept, told[1])
        wait_until_blocking(metering, other, inbox)
        assert not inbox.done()
        other.commit()
        inbox.result()
    metering.accept(told[0])
    metering.work()
    assert metering.lane(attempt)["state"] == "applied"
    metering.check()


def test_the_database_refuses_a_second_finish_of_a_work(metering: Metering) -> None:
    """One for each work, whoever writes it."""
    attempt = metering.new_attempt()
    metering.accept(attempt.report(COST, "spend", "pending"))
    metering.work()
    with pytest.raises(psycopg.errors.UniqueViolation):
        metering.admin.execute(
            "insert into metering.work_finish select f.metering_input_work_ref, 'another', f.lane_kind,"
            " f.attempt_number, f.fencing_token, 'superseded', f.digest, f.document from metering.work_finish as f"
            " join metering.work as w using (metering_input_work_ref) where w.execution_attempt_id = %s",
            (attempt.ref,),
        )
