"""The examples of `examples/orbit`, run as their users run them, against a real server."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import psycopg
import pytest

from examples.orbit import manage_subscriptions, result_inbox, worker
from examples.orbit.inbox_store import Store, open_store
from orbit.access import administration
from orbit.sdk import EventConnection, ReceivedEvent
from orbit.store.database import Database
from tests.kit.database import DatabaseServer, TestDatabase
from tests.kit.drivers.urls import url_of
from tests.kit.orbit.server import Serving, serving

QUEUE: Final = "billing"
Documents = list[dict[str, Any]]
Run = Callable[..., Documents]


@pytest.fixture
def served(orbit_database: TestDatabase) -> Iterator[Serving]:
    """Serve a database of its own."""
    with serving(orbit_database.dsn) as running:
        yield running


@pytest.fixture
def run(served: Serving, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Give a function that runs an example's `main` with options and returns its lines."""

    async def bootstrap() -> str:
        async with Database(served.dsn, size_max=1) as database:
            made = await administration.bootstrap(
                database, namespace="shop", application="shop", queues=(QUEUE,), event_access=True
            )
        return str(made["token"])

    monkeypatch.setenv("ORBIT_TOKEN", asyncio.run(bootstrap()))

    def run_example(module: ModuleType, *options: str, code: int = 0) -> Documents:
        monkeypatch.setattr(sys, "argv", [module.__name__, "--base-url", served.base_url, *options])
        capsys.readouterr()
        assert module.main() == code
        said = capsys.readouterr()
        return [json.loads(line) for line in (said.out if code == 0 else said.err).splitlines()]

    return run_example


def _work(run: Run, *options: str, count: int = 2) -> Documents:
    """Submit tasks and confirm them."""
    return run(worker, "--queue", QUEUE, "--submit", str(count), "--count", str(count), *options)


@pytest.mark.req("orbit:EXM-09", "orbit:T-E02", "orbit:T-E03")
def test_the_worker_example_makes_each_outcome(run: Run) -> None:
    """Options for each row of the outcome table; a requeued task has a receipt without a sequence."""
    assert [each["event_type"] for each in _work(run)] == ["task.succeeded"] * 2
    assert [each["event_type"] for each in _work(run, "--outcome", "failed")] == ["task.failed"] * 2
    unknown = _work(run, "--outcome", "failed", "--effect", "unknown")
    assert [each["event_type"] for each in unknown] == ["task.needs_review"] * 2
    assert [each["sequence"] for each in unknown] == [5, 6]
    (requeued,) = _work(run, "--outcome", "failed", "--retryable", count=1)
    assert (requeued["event_type"], requeued["sequence"], requeued["task_state"]) == ("task.requeued", None, "queued")


@pytest.mark.req("orbit:EXM-01", "orbit:EXM-05", "orbit:T-E08")
def test_the_management_example_does_every_operation(run: Run, served: Serving) -> None:
    """Every subcommand, one JSON object per line, and the audit row that each change leaves behind."""

    def manage(*options: str, code: int = 0) -> Documents:
        return run(manage_subscriptions, *options, code=code)

    create = ("create", "--name", "results", "--queue", QUEUE, "--from-sequence", "0", "--max-attempts", "1")
    (made,) = manage(*create, "--key", "one")
    assert manage(*create, "--key", "one") == [made]
    (refused,) = manage(*create, "--key", "two", code=1)
    assert refused["code"] == "SUBSCRIPTION_NAME_CONFLICT"
    subscription = made["subscription_id"]
    (other,) = manage(
        "create", "--name", "reviews", "--queue", QUEUE, "--type", "task.needs_review", "--type", "task.failed"
    )
    assert set(other["types"]) == {"task.needs_review", "task.failed"}
    assert {each["name"] for each in manage("list")} == {"results", "reviews"}
    assert manage("list", "--status", "PAUSED") == []
    (paused,) = manage("pause", subscription, "--reason", "a test")
    assert (paused["status"], paused["revision"]) == ("PAUSED", 2)
    (refused,) = manage("resume", subscription, "--revision", "1", code=1)
    assert refused["code"] == "REVISION_CONFLICT"
    (resumed,) = manage("resume", subscription, "--revision", "2")
    assert manage("show", subscription) == [resumed]

    delivery = _exhausted(run, served, subscription)
    (expired,) = manage("exhausted", subscription)
    assert (expired["delivery_id"], expired["state"]) == (delivery, "EXPIRED")
    (retried,) = manage("retry", subscription, delivery, "--reason", "looked at it", "--add", "3")
    assert (retried["state"], retried["attempt_budget"]) == ("PENDING", 4)
    assert manage("exhausted", subscription) == []
    assert manage("deliveries", subscription, "--state", "PENDING") == manage("deliveries", subscription)

    with psycopg.connect(served.dsn) as connection:
        rows = connection.execute(
            "select action, count(*) from orbit.audit_log where action like 'event.%' group by action"
        ).fetchall()
    assert dict(rows) == {
        "event.subscription.created": 2,
        "event.subscription.paused": 1,
        "event.subscription.resumed": 1,
        "event.delivery.authorized": 1,
        "event.delivery.retried": 1,
    }


def _exhausted(run: Run, server: Serving, subscription: str) -> str:
    """Make a result, deliver it once with a budget of 1, let its lease run out; return the delivery's id."""
    _work(run, count=1)
    (event,) = _pull(server, subscription)
    with psycopg.connect(server.dsn, options="-c session_replication_role=replica") as connection:
        connection.execute("update orbit.event_deliveries set lease_expires_at = clock_timestamp()")
    assert _pull(server, subscription) == []
    return event.delivery_id


def _pull(server: Serving, subscription: str) -> list[ReceivedEvent]:
    token = os.environ["ORBIT_TOKEN"]
    with EventConnection.connect(server.base_url, token, subscription, capacity=1) as connection:
        return list(connection.pull(1))


@pytest.mark.req("orbit:EXM-06", "orbit:T-E01", "orbit:T-P05", "orbit:GEN-02")
def test_a_result_travels_from_the_worker_to_the_inbox_digit_for_digit(run: Run, tmp_path: Path) -> None:
    """Worker, journal, delivery, inbox, acknowledgement; a subscription from now gets only what comes later."""
    text = '{"n":123456789012345678901234567890, "x":1.500, "s":"\\u0000\\ud800 é"}'
    (first,) = run(manage_subscriptions, "create", "--name", "all", "--queue", QUEUE, "--from-sequence", "0")
    _work(run, "--result", text)
    (later,) = run(manage_subscriptions, "create", "--name", "later", "--queue", QUEUE)
    _work(run, "--result", text, count=1)
    for subscription, expected in ((first, [1, 2, 3]), (later, [3])):
        file = str(tmp_path / f"{subscription['name']}.db")
        options = ("--subscription", subscription["subscription_id"], "--db", file, "--until-idle", "0.5")
        assert sorted(each["sequence"] for each in run(result_inbox, *options)) == expected
        with closing(sqlite3.connect(file)) as database:
            results = database.execute("select result_text from task_results").fetchall()
            snapshots = database.execute("select snapshot_text from inbox").fetchall()
        assert results == [(text,)] * len(expected)
        assert all(snapshot.endswith(f'"result":{text}}}') for (snapshot,) in snapshots)
        (shown,) = run(manage_subscriptions, "show", subscription["subscription_id"])
        assert shown["pending_count"] == 0
        assert run(result_inbox, *options) == []


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path, database_server: DatabaseServer) -> Iterator[str]:
    """Give an address for an inbox of each kind."""
    if request.param == "sqlite":
        yield str(tmp_path / "inbox.db")
        return
    database = database_server.create()
    yield url_of(database.dsn)
    database_server.drop(database)


def _event(number: int, *, revision: int, state: str, task: str = "task_1") -> ReceivedEvent:
    snapshot = (
        f'{{"schema_version":1,"task_id":"{task}","queue_id":"q_1","state":"{state}","revision":{revision},'
        f'"effect_uncertain":{"true" if state == "needs_review" else "false"},"current_attempt_id":null,'
        f'"result":{{"n":{number}.00}}}}'
    )
    return ReceivedEvent(
        subscription_id="sub_1",
        delivery_id=f"dlv_{number}",
        event_id=f"evt_{number}",
        event_type=f"task.{state}",
        sequence=number,
        lease_epoch=1,
        lease_secret="s" * 43,
        lease_expires_at="2026-01-05T08:30:30.000000Z",
        attempts=1,
        attempt_budget=20,
        snapshot_text=snapshot,
    )


def _rows(address: str, query: str) -> list[tuple[Any, ...]]:
    if address.startswith("postgresql://"):
        with psycopg.connect(address) as connection:
            return connection.execute(query.encode()).fetchall()
    with closing(sqlite3.connect(address)) as database:
        return database.execute(query).fetchall()


@pytest.mark.req("orbit:EXM-07", "orbit:EXM-03", "orbit:SRC-03", "orbit:T-E04")
def test_an_inbox_takes_results_in_any_order_and_each_once(address: str) -> None:
    """The newer revision stays; a review counts as a review only; a repetition changes nothing."""
    review, final = _event(1, revision=3, state="needs_review"), _event(2, revision=4, state="failed")
    other = _event(3, revision=3, state="needs_review", task="task_2")
    with closing(open_store(address)) as store:
        assert [store.apply(event) for event in (final, review, other, final, review)] == [
            True,
            True,
            True,
            False,
            False,
        ]
    tasks = _rows(address, "select task_id, task_revision, state, needs_review, effect_uncertain, result_text"
                  " from task_results order by task_id")  # fmt: skip
    assert tasks == [("task_1", 4, "failed", 0, 0, '{"n":2.00}'), ("task_2", 3, "needs_review", 1, 1, '{"n":3.00}')]
    counters = dict(_rows(address, "select event_type, n from result_counters"))
    assert counters == {"task.needs_review": 2, "task.failed": 1}
    assert len(_rows(address, "select event_id from inbox")) == 3


@pytest.mark.req("orbit:EXM-02", "orbit:TX-30")
def test_a_business_change_that_fails_takes_the_inbox_row_with_it(address: str) -> None:
    """Both or neither: the result is delivered again, and nothing says that it was applied."""
    with closing(open_store(address)) as store:
        _break(address)
        with pytest.raises((sqlite3.Error, psycopg.Error)):
            store.apply(_event(1, revision=2, state="succeeded"))
        assert _rows(address, "select event_id from inbox") == []


def _break(address: str) -> None:
    """Take the business table away."""
    statement = "alter table task_results rename to elsewhere"
    if address.startswith("postgresql://"):
        with psycopg.connect(address) as connection:
            connection.execute(statement)
        return
    with closing(sqlite3.connect(address, isolation_level=None)) as database:
        database.execute(statement).close()


def test_two_processes_may_share_an_inbox(address: str) -> None:
    """Two stores, one result: one of them finds it there."""
    with closing(open_store(address)) as first, closing(open_store(address)) as second:
        stores: list[Store] = [first, second]
        assert [store.apply(_event(1, revision=2, state="succeeded")) for store in stores] == [True, False]


def test_an_example_without_a_token_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The token comes from the environment, never from the command line."""
    monkeypatch.delenv("ORBIT_TOKEN", raising=False)
    monkeypatch.setattr(sys, "argv", ["manage", "--base-url", "http://127.0.0.1:1", "list"])
    assert manage_subscriptions.main() == 2
    assert "ORBIT_TOKEN" in capsys.readouterr().err
