"""Append while the ground moves: locks, cancellation, lost connections, other sessions, other isolation levels."""

from __future__ import annotations

import contextlib
from collections.abc import Generator

import pytest

from seapost.contracts.envelope import PreparedEvent
from seapost.contracts.events import Event
from seapost.model.errors import EventConflict
from seapost.outbox.append import prepare
from tests.conformance.conftest import COUNTED, MakeProducer, Shop
from tests.kit import builders
from tests.kit.drivers.base import WAIT_SECONDS, AsyncDriver, Producer
from tests.kit.sessions import wait_until_blocked

CANCEL_SECONDS = 0.2
HOLD = "select pg_advisory_xact_lock(seapost.delivery_set_lock_key())"


class Counted(Event, type="test.counted@1", producer="tests", aggregate="counter"):
    """An event that is routed."""

    n: int


def counted(n: int) -> PreparedEvent:
    """A fresh prepared event."""
    return prepare(Counted(n=n), key=f"c-{n}", revision=1)


@contextlib.contextmanager
def activation_under_way(shop: Shop) -> Generator[None]:
    """Somebody holds the delivery set lock, so that every append waits."""
    holder = shop.database.connect()
    holder.execute(HOLD)
    try:
        yield
    finally:
        holder.rollback()


def process_id(producer: Producer) -> int:
    """The server process of the producer's open transaction."""
    ((found,),) = producer.execute("select pg_backend_pid()")
    return found


def assert_nothing_stays(shop: Shop) -> None:
    """Neither event nor delivery nor business row."""
    assert (shop.numbers(), shop.business()) == ([], [])
    assert (shop.kernel.count("delivery"), shop.kernel.count("delivery_ready")) == (0, 0)


@pytest.mark.req("F01")
def test_a_connection_lost_in_the_middle_of_an_append_leaves_nothing(producer: Producer, shop: Shop) -> None:
    """The server ends the session while the append runs: the library raises, and nothing is there."""
    with activation_under_way(shop), producer.lost(), producer.transaction():
        producer.execute("insert into public.business values (1)")
        process = process_id(producer)
        appending = producer.start(lambda: producer.driver.append_many([counted(1)]))
        wait_until_blocked(shop.kernel.connection, process)
        shop.database.kill(process)
        appending.result(WAIT_SECONDS)

    assert_nothing_stays(shop)


@pytest.mark.req("F01")
def test_a_lock_timeout_reaches_the_caller(producer: Producer, shop: Shop) -> None:
    """An append that waits too long fails its transaction with the library's own error, 55P03."""
    with activation_under_way(shop), producer.refused("55P03"), producer.transaction():
        producer.execute("insert into public.business values (1)")
        producer.execute("set local lock_timeout = '50ms'")
        producer.append_many([counted(1)])

    assert_nothing_stays(shop)
    with producer.transaction():
        producer.append_many([counted(2)])
    assert shop.numbers() == [2]


@pytest.mark.req("F01")
def test_a_cancelled_task_leaves_nothing(producer: Producer, shop: Shop) -> None:
    """A task that is cancelled while its append waits takes the whole transaction with it."""
    driver = producer.driver
    if not isinstance(driver, AsyncDriver):
        pytest.skip("there are no tasks here")
    with activation_under_way(shop), producer.lost(), producer.transaction():
        producer.execute("insert into public.business values (1)")
        producer.call(lambda: driver.append_for([counted(1)], CANCEL_SECONDS))

    assert_nothing_stays(shop)


@pytest.mark.req("SET-31", "REF-04")
def test_a_snapshot_older_than_an_activation_is_a_serialization_failure(producer: Producer, shop: Shop) -> None:
    """REPEATABLE READ must not freeze a retired delivery set: the caller gets 40001 and repeats, as it must anyway."""
    with producer.refused("40001"), producer.transaction("isolation level repeatable read"):
        producer.execute("select count(*) from public.business")
        shop.kernel.route("2", {COUNTED: (builders.BILLING, builders.SEARCH)})
        producer.append_many([counted(1)])
    assert_nothing_stays(shop)

    with producer.transaction("isolation level repeatable read"):
        producer.append_many([counted(1)])
    assert shop.kernel.count("delivery") == 2


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_stricter_isolation_levels_append_alike(level: str, producer: Producer, shop: Shop) -> None:
    """Without an activation in between, every isolation level appends."""
    with producer.transaction(f"isolation level {level}"):
        producer.execute("select count(*) from public.business")
        producer.append_many([counted(1)])

    assert shop.numbers() == [1]


def test_a_read_only_transaction_cannot_append(producer: Producer, shop: Shop) -> None:
    """The database says so, and the library's own error passes."""
    with producer.refused("25006"), producer.transaction("read only"):
        producer.append_many([counted(1)])

    assert shop.numbers() == []


@pytest.mark.req("F03")
@pytest.mark.parametrize("fate", ["commit", "rollback"])
def test_two_sessions_with_one_event(fate: str, make: MakeProducer, shop: Shop) -> None:
    """The second waits for the first: it finds the event stored, or stores it itself when the first rolled back."""
    event = counted(1)
    first, second = make(), make()
    with second.transaction():
        process = process_id(second)
        first.call(first.driver.begin)
        assert first.append_many([event]) == 1
        appending = second.start(lambda: second.driver.append_many([event]))
        wait_until_blocked(shop.kernel.connection, process)
        first.call(first.driver.commit if fate == "commit" else first.driver.rollback)
        assert appending.result(WAIT_SECONDS) == (0 if fate == "commit" else 1)

    assert shop.numbers() == [1]


@pytest.mark.req("F03")
def test_two_sessions_with_one_id_and_two_contents(make: MakeProducer, shop: Shop) -> None:
    """The second waits, and then is told of the conflict."""
    event = counted(1)
    other = prepare(Counted(n=2), key="c-2", revision=1, event_id=event.event_id)
    first, second = make(), make()
    with second.refused("SP002", EventConflict), second.transaction():
        process = process_id(second)
        with first.transaction():
            assert first.append_many([event]) == 1
            appending = second.start(lambda: second.driver.append_many([other]))
            wait_until_blocked(shop.kernel.connection, process)
        appending.result(WAIT_SECONDS)

    assert shop.numbers() == [1]
