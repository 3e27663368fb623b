"""Sessions from pools are limited, in UTC, in their role; errors of our functions arrive as our exceptions."""

from __future__ import annotations

import multiprocessing
import os

import psycopg
import pytest
from psycopg_pool import ConnectionPool

from seapost.database.pool import RoleTimeouts, SyncPool, open_pool, open_sync_pool
from seapost.database.sqlstates import error_for, translated
from seapost.model.errors import EventConflict, SeapostError
from tests.kit.database import TestDatabase
from tests.kit.sessions import SessionFactory

STATE = """
select current_setting('TimeZone'), current_setting('statement_timeout'), current_setting('lock_timeout'),
       current_setting('idle_in_transaction_session_timeout'), current_user::text,
       current_setting('application_name')"""
RAISE = "do $$ begin raise exception using errcode = 'SP002', message = 'known', detail = 'event 17'; end $$"


async def test_an_asynchronous_session_is_configured(database: TestDatabase) -> None:
    """Every pooled session has UTC, its time limits, its role and its name."""
    limits = RoleTimeouts(statement_seconds=7, lock_seconds=3, idle_in_transaction_seconds=9)
    async with (
        open_pool(database.dsn, part="dispatcher", role_timeouts=limits, role="seapost_dispatcher") as pool,
        pool.connection() as connection,
    ):
        row = await (await connection.execute(STATE)).fetchone()
    assert row == ("UTC", "7s", "3s", "9s", "seapost_dispatcher", "seapost-dispatcher")


def test_a_synchronous_session_is_configured(database: TestDatabase) -> None:
    """The synchronous pool configures its sessions alike, and they outlive a rolled back transaction."""
    with open_sync_pool(database.dsn, part="inbox", role="seapost_consumer", size_max=1) as pool:
        with pytest.raises(psycopg.errors.DivisionByZero), pool.connection() as connection:
            connection.execute("select 1 / 0")
        with pool.connection() as connection:
            row = connection.execute(STATE).fetchone()
    assert row == ("UTC", "30s", "5s", "30s", "seapost_consumer", "seapost-inbox")


def test_behind_a_pooler_nothing_is_prepared_and_no_state_is_set(database: TestDatabase) -> None:
    """With a transaction-mode pooler between, sessions are not ours: no settings, no prepared statements."""
    with open_sync_pool(database.dsn, part="inbox", behind_pooler=True) as pool, pool.connection() as connection:
        for _ in range(10):
            connection.execute("select %s::int", (1,))
        assert connection.execute("select count(*) from pg_prepared_statements").fetchone() == (0,)
        assert connection.execute("select current_setting('statement_timeout')").fetchone() == ("0",)


def _use(pool: SyncPool, answer: multiprocessing.Queue[str]) -> None:
    try:
        pool.getconn(timeout=1)
    except SeapostError as error:
        answer.put(str(error))
    else:
        answer.put("shared")
    answer.close()
    answer.join_thread()
    os._exit(0)


@pytest.mark.req("F79")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_pool_is_not_shared_across_a_fork(database: TestDatabase) -> None:
    """A child that inherited an open pool is refused instead of talking over its parent's connection."""
    context = multiprocessing.get_context("fork")
    answer: multiprocessing.Queue[str] = context.Queue()
    with open_sync_pool(database.dsn, part="inbox") as pool:
        child = context.Process(target=_use, args=(pool, answer))
        child.start()
        assert "open it after the fork" in answer.get(timeout=20)
        child.join(20)


@pytest.mark.req("F79")
def test_a_pool_made_before_a_fork_opens_no_connection(database: TestDatabase) -> None:
    """Describing a pool connects to nothing; it opens when it is entered, in the process that uses it."""
    pool: ConnectionPool = open_sync_pool(database.dsn, part="early")
    count = "select count(*) from pg_stat_activity where application_name = 'seapost-early'"
    observer = database.connect(autocommit=True)
    assert observer.execute(count).fetchone() == (0,)
    with pool:
        pool.wait()
        assert observer.execute(count).fetchone() == (1,)


def test_a_raised_code_becomes_its_exception(empty_database: TestDatabase) -> None:
    """An error of class SP arrives as its exception, with the message and detail that the function raised."""
    connection = empty_database.connect(autocommit=True)
    with pytest.raises(EventConflict) as caught, translated():
        connection.execute(RAISE)
    assert (caught.value.message, caught.value.detail) == ("known", "event 17")
    assert isinstance(caught.value.__cause__, psycopg.DatabaseError)
    assert error_for(psycopg.OperationalError()) is None


async def test_translation_surrounds_awaits(empty_database: TestDatabase) -> None:
    """The same block works around asynchronous calls, and lets every other error pass."""
    connection = await empty_database.connect_async(autocommit=True)
    with pytest.raises(EventConflict), translated():
        await connection.execute(RAISE)
    with pytest.raises(psycopg.errors.DivisionByZero), translated():
        await connection.execute("select 1 / 0")


def test_scripted_sessions_wait_on_the_visible_lock(empty_database: TestDatabase, sessions: SessionFactory) -> None:
    """Of two sessions at one row the second is seen waiting for the first, and ends when that commits."""
    first, second = sessions(empty_database)
    first.execute("create table thing as select 1 as id, 0 as value")
    first.commit()
    first.execute("update thing set value = 1 where id = 1")
    step = second.start("update thing set value = value + 1 where id = 1 returning value")
    second.wait_until_blocked(by=first)
    assert not step.done
    first.commit()
    assert step.result() == [(2,)]
