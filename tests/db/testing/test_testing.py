"""What `seapost.testing` offers to users, used as they would: with their own events, inboxes and failures."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, Literal
from uuid import UUID

import psycopg
import pytest

import seapost
from seapost.model.errors import ContractError
from seapost.model.outcome import ErrorCode
from seapost.testing import (
    Drained,
    FakeConsumer,
    TestDatabase,
    appended,
    assert_appended,
    build,
    received,
    refute_appended,
    run_until_idle,
    run_until_idle_async,
)


class Size(StrEnum):
    """An enumeration in a payload."""

    SMALL = "small"
    LARGE = "large"


class Line(seapost.EventPart):
    """A nested structure in a payload."""

    article: str
    pieces: int


class Packed(seapost.Event, type="parcel.packed@2", aggregate="parcel"):
    """An event with a field of every kind that is made up."""

    parcel_id: str
    weight: Decimal
    size: Size
    kind: Literal["letter", "box"]
    fragile: bool
    packed_at: datetime
    first: Line
    label: UUID
    note: str | None
    others: list[Line]


class Sent(seapost.Event, type="parcel.sent@1", aggregate="parcel"):
    """A small event."""

    parcel_id: str


application = seapost.Application("parcels")
application.route(Packed, "billing")
application.route(Sent, "billing", "search")


@pytest.fixture
def parcels(database: TestDatabase) -> TestDatabase:
    """A database with the routes of this module."""
    database.route(application)
    return database


def _send(database: TestDatabase, *keys: str) -> None:
    with psycopg.connect(database.dsn) as connection:
        for key in keys:
            seapost.append(connection, Sent(parcel_id=key), key=key, revision=1)


def test_appended_events_are_seen_inside_the_transaction_and_after_it(parcels: TestDatabase) -> None:
    """The producer's own connection sees them at once, everybody else after the commit."""
    connection = parcels.connect("producer")
    seapost.append(connection, Sent(parcel_id="p-1"), key="p-1", revision=1)
    refute_appended(parcels, Sent)
    superuser = parcels.connect()
    assert appended(superuser, Sent) == []
    connection.commit()

    one = assert_appended(parcels, Sent, key="p-1", revision=1, parcel_id="p-1", to={"billing", "search"})
    assert one.deliveries == {"billing": "pending", "search": "pending"}
    assert (one.event, one.key, one.revision) == (Sent(parcel_id="p-1"), "p-1", 1)


def test_an_open_transaction_of_the_owner_is_read_through_its_own_connection(parcels: TestDatabase) -> None:
    """Whoever may read the views can assert before the commit."""
    connection = parcels.connect()
    seapost.append(connection, Sent(parcel_id="p-1"), key="p-1", revision=1)
    assert_appended(connection, Sent, key="p-1")
    connection.rollback()
    refute_appended(connection, Sent)


def test_a_failed_assertion_says_what_was_appended_instead(parcels: TestDatabase) -> None:
    """None, or more than one: the message names the wish and shows what there is."""
    _send(parcels, "p-1", "p-2")
    with pytest.raises(AssertionError, match=r"0 events parcel\.sent@1 match key='p-3'; appended.*: 2\n  key="):
        assert_appended(parcels, Sent, key="p-3")
    with pytest.raises(AssertionError, match=r"2 events parcel\.sent@1 match anything"):
        assert_appended(parcels, Sent)
    with pytest.raises(AssertionError, match=r"1 events parcel\.sent@1 match key='p-2', parcel_id='p-2'"):
        refute_appended(parcels, Sent, key="p-2", parcel_id="p-2")
    with pytest.raises(TypeError, match="str leads to no psycopg connection"):
        appended("postgresql://", Sent)


def test_run_until_idle_delivers_everything_to_fakes(parcels: TestDatabase) -> None:
    """Each event once, with receipts that the dispatcher verifies; a destination that is not named is left alone."""
    _send(parcels, "p-1", "p-2", "p-3")
    billing = FakeConsumer("billing")
    assert run_until_idle(parcels, billing) == Drained(acknowledged=3)
    assert [event.parcel_id for event in billing.events(Sent)] == ["p-1", "p-2", "p-3"]
    assert billing.events(Packed) == []
    assert assert_appended(parcels, Sent, key="p-1").deliveries == {"billing": "acknowledged", "search": "pending"}
    assert run_until_idle(parcels, billing, FakeConsumer("search")) == Drained(acknowledged=3)
    parcels.assert_places()


def test_a_fake_fails_as_it_is_told(parcels: TestDatabase) -> None:
    """Try again, never, and an answer lost on the way: the last applies once and is acknowledged by its receipt."""
    _send(parcels, "p-1")
    billing, search = FakeConsumer("billing"), FakeConsumer("search")
    billing.retry_next(2)
    search.reject_next(code=ErrorCode.SCHEMA_UNKNOWN)
    assert run_until_idle(parcels, billing, search) == Drained(acknowledged=1, retried=2, quarantined=1)
    assert (billing.calls, len(billing.received), search.received) == (3, 1, [])

    _send(parcels, "p-2")
    billing.lose_next()
    assert run_until_idle(parcels, billing) == Drained(acknowledged=1, retried=1)
    assert (billing.calls, len(billing.received)) == (5, 2)
    parcels.assert_places()


def test_a_consumer_that_stays_away_leaves_its_deliveries_waiting(parcels: TestDatabase) -> None:
    """After the last attempt a drain ends, and says what is left."""
    _send(parcels, "p-1", "p-2")
    billing = FakeConsumer("billing")
    billing.retry_next(100)
    assert run_until_idle(parcels, billing, attempts_max=2) == Drained(retried=4, waiting=2)
    assert run_until_idle(parcels, billing) == Drained()


async def test_real_inboxes_apply_in_their_own_database(
    parcels: TestDatabase,
    database_server: Any,  # noqa: ANN401 - the kit's fixture
) -> None:
    """Handlers of both colours; one that raises at first is retried, and its effect is there once."""
    consumer = database_server.create(parcels.guards)
    try:
        consumer.route(application)
        consumer.connect(autocommit=True).execute(
            "create table public.bills (parcel_id text primary key); grant insert on public.bills to public"
        )
        billing, search = seapost.Inbox("billing"), seapost.Inbox("search")
        failures = ["once"]

        @billing.consumer(Sent)
        def bill(transaction: psycopg.Connection[Any], event: Sent) -> None:
            transaction.execute("insert into public.bills values (%s)", (event.parcel_id,))
            if failures:
                failures.pop()
                raise RuntimeError

        @search.consumer(Sent)
        async def index(transaction: psycopg.AsyncConnection[Any], event: Sent) -> None:
            await transaction.execute("select %s::text", (event.parcel_id,))

        _send(parcels, "p-1")
        drained = await run_until_idle_async(parcels, billing, search, consumer_database=consumer)
        assert drained == Drained(acknowledged=2, retried=1)
        assert consumer.connect().execute("select * from public.bills").fetchall() == [("p-1",)]
    finally:
        database_server.drop(consumer)


def test_build_makes_up_what_is_not_given() -> None:
    """Plausible values of every type; given ones win; what breaks a rule of the class is refused as ever."""
    event = build(Packed, weight=Decimal("2.50"), others=[build(Line, pieces=3)])
    assert event.parcel_id == "parcel_id-1"
    assert (event.size, event.kind, event.note) == (Size.SMALL, "letter", None)
    assert event.first == Line(article="article-1", pieces=1)
    assert event.packed_at == datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert (event.weight, [line.pieces for line in event.others]) == (Decimal("2.50"), [3])

    class Odd(seapost.Event, type="odd@1"):
        value: complex  # type: ignore[misc]

    with pytest.raises((ContractError, TypeError), match="value"):
        build(Odd)


def test_received_is_what_a_handler_would_be_told() -> None:
    """Made from a real envelope, so that it cannot say what no envelope says."""
    told = received(build(Packed), key="p-9", revision=4, attempt_number=2)
    assert (told.event_type, told.schema_version, told.aggregate.id, told.aggregate.revision) == (
        "parcel.packed@2",
        "2",
        "p-9",
        4,
    )
    assert told.attempt_number == 2
    with pytest.raises(ContractError):
        received(build(Packed), key="")
