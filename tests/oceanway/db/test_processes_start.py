"""The start of a process: it waits for its database, and not for longer than it is told."""

from __future__ import annotations

import time
from collections.abc import Iterator
from threading import Event, Thread

import psycopg
import pytest

from oceanway.cli.starting import wait_for_release
from oceanway.installation.databases import install
from oceanway.installation.errors import ReleaseIncomplete
from seapost import Application
from seapost import Event as SomethingHappened
from seapost.testing.databases import DatabaseServer, TestDatabase


class OrderPlaced(SomethingHappened, type="order.placed@1", producer="shop", aggregate="order"):
    """Somebody ordered."""

    order: str


NOWHERE = "host=127.0.0.1 port=1 dbname=nowhere"


def routes() -> Application:
    """One event with one destination."""
    application = Application("shop")
    application.route(OrderPlaced, "search")
    return application


@pytest.fixture(scope="module")
def shop(database_server: DatabaseServer) -> Iterator[TestDatabase]:
    """Give a database where the routes are active."""
    database = database_server.clone("oceanway_start", lambda dsn: install(dsn, [], routes()))
    yield database
    database_server.drop(database)


@pytest.mark.req("SET-37")
def test_a_producer_starts_when_its_release_is_active_and_ends_when_it_is_not(shop: TestDatabase) -> None:
    """An incomplete release is no outage: there is nothing to wait for."""
    other = Application("shop")
    other.route(OrderPlaced, "search", "billing")
    assert wait_for_release(shop.dsn, routes(), [OrderPlaced], wait_seconds=0, stop=Event())
    with pytest.raises(ReleaseIncomplete):
        _ = wait_for_release(shop.dsn, other, [OrderPlaced], wait_seconds=60, stop=Event())


def test_a_database_that_does_not_come_up_ends_the_wait(capsys: pytest.CaptureFixture[str]) -> None:
    """What the database said last is raised after the time; one line on standard error says what is waited for."""
    with pytest.raises(psycopg.OperationalError):
        _ = wait_for_release(NOWHERE, routes(), [], wait_seconds=0.1, stop=Event())
    assert capsys.readouterr().err.count("waiting for the database") == 1


def test_a_waiting_process_stops_at_once() -> None:
    """The order to stop ends the wait without an error."""
    stop, answers = Event(), list[bool]()

    def wait() -> None:
        answers.append(wait_for_release(NOWHERE, routes(), [], wait_seconds=600, stop=stop))

    thread = Thread(target=wait)
    thread.start()
    began = time.monotonic()
    stop.set()
    thread.join(20)
    assert answers == [False]
    assert time.monotonic() - began < 10
