"""After an outage the pools come back soon, however long it was (F79)."""

from __future__ import annotations

import asyncio
import threading

import psycopg_pool.base
import pytest

from seapost.database import pool as pools
from seapost.database.pool import open_pool, open_sync_pool
from tests.kit.database import TestDatabase
from tests.kit.eventually import eventually, eventually_async
from tests.kit.proxy import Proxy

ATTEMPTS = 24
"""With a delay that doubled each time, so many would take minutes even at a tenth of it."""
HURRY = 10.0


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every delay a tenth."""
    attempt = psycopg_pool.base.AttemptWithBackoff
    monkeypatch.setattr(attempt, "INITIAL_DELAY", attempt.INITIAL_DELAY / HURRY)
    monkeypatch.setattr(pools, "RECONNECT_SECONDS", pools.RECONNECT_SECONDS / HURRY)


@pytest.mark.req("F79")
async def test_a_waiting_caller_is_served_when_the_server_is_back(database: TestDatabase) -> None:
    """It asked once, while nobody answered; attempts go on at the same pace until one succeeds."""
    with Proxy.before_database(database.dsn) as proxy:
        proxy.is_refusing = True
        async with open_pool(proxy.dsn(database.dsn), part="dispatcher", wait_seconds=60.0) as pool:
            waiting = asyncio.ensure_future(pool.getconn())
            await eventually_async(lambda: proxy.refused >= ATTEMPTS, what=f"{ATTEMPTS} attempts")
            proxy.is_refusing = False
            await eventually_async(waiting.done, what="a connection")
            await pool.putconn(waiting.result())


@pytest.mark.req("F79")
def test_a_waiting_thread_is_served_when_the_server_is_back(database: TestDatabase) -> None:
    """The synchronous twin."""
    with Proxy.before_database(database.dsn) as proxy:
        proxy.is_refusing = True
        with open_sync_pool(proxy.dsn(database.dsn), part="inbox", wait_seconds=60.0) as pool:
            served = threading.Event()

            def ask() -> None:
                with pool.connection():
                    served.set()

            thread = threading.Thread(target=ask)
            thread.start()
            eventually(lambda: proxy.refused >= ATTEMPTS, what=f"{ATTEMPTS} attempts")
            proxy.is_refusing = False
            eventually(served.is_set, what="a connection")
            thread.join()
