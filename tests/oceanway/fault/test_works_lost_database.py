"""A work loop and its database: sessions are lost, the database refuses, and the loop goes on by itself."""

from __future__ import annotations

from threading import Event, Thread

import psycopg
import pytest
from psycopg import sql

from oceanway.works.loop import Pace, WorkLoop
from seapost.database.pool import open_sync_pool
from seapost.testing.databases import TestDatabase
from tests.kit.eventually import eventually

PACE = Pace(batch=1, idle_seconds_min=0.001, idle_seconds_max=0.01, failure_seconds_min=0.01, failure_seconds_max=0.05)


@pytest.mark.req("AMB-45")
def test_a_loop_outlives_its_sessions_and_a_database_that_refuses(empty_database: TestDatabase) -> None:
    """Each session is ended in the middle of a step, then nobody may connect for a while: the works go on after it."""
    stop = Event()
    with open_sync_pool(empty_database.dsn, part="work-test", size_max=1, wait_seconds=0.2) as pool:
        sessions: list[int] = []

        def step(_limit: int) -> int:
            with pool.connection() as connection:
                sessions.append(connection.info.backend_pid)
                _ = connection.execute("select pg_sleep(0.002)")
            return 1

        loop = WorkLoop("lost", step, PACE)
        thread = Thread(target=loop.run, args=(stop,))
        thread.start()
        with psycopg.connect(empty_database.dsn, dbname="postgres", autocommit=True) as observer:
            eventually(lambda: loop.done > 3, what="some works")
            _refuse(observer, empty_database, refuses=True)
            failures = loop.failures
            eventually(lambda: loop.failures > failures, what="a failed step")
            _refuse(observer, empty_database, refuses=False)
        done = loop.done
        eventually(lambda: loop.done > done + 3, what="works after the outage")
        stop.set()
        thread.join(20)
    assert not thread.is_alive()
    assert len(set(sessions)) > 1


def _refuse(observer: psycopg.Connection, database: TestDatabase, *, refuses: bool) -> None:
    """End every session of a database and let nobody in, or let everybody in again."""
    statement = sql.SQL("alter database {} allow_connections {}")
    allowed = sql.Literal(not refuses)
    _ = observer.execute(statement.format(sql.Identifier(database.name), allowed))
    _ = observer.execute(
        "select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = %s", (database.name,)
    )
