"""One suite for both colours of append: the caller's transaction decides everything."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Protocol
from uuid import UUID

import psycopg
import pytest

from seapost.contracts.envelope import Aggregate, PreparedEvent, Tenant, build_envelope_of, new_event_id
from seapost.contracts.events import Event
from seapost.model.errors import (
    AppendOutsideTransaction,
    CanonicalError,
    ContractError,
    EventConflict,
    EventNotRoutable,
    LimitExceeded,
    NoActiveDeliverySet,
)
from seapost.outbox import routes
from seapost.outbox.append import EVENTS_PER_CALL_MAX, append, append_async, append_many, append_many_async, prepare
from seapost.outbox.application import Application
from tests.kit.database import TestDatabase


class Counted(Event, type="test.counted@1", producer="tests", aggregate="counter"):
    """An event that is routed."""

    n: int


class Unrouted(Event, type="test.unrouted@1", producer="tests"):
    """An event that is not in the delivery set."""

    n: int


APPLICATION = Application("tests")
APPLICATION.route(Counted, "billing")


class Producer(Protocol):
    """A connection of one colour, driven in the same words."""

    def execute(self, statement: str) -> list[Any]:
        """Run a statement and return its rows."""
        ...

    def append_many(self, events: Iterable[PreparedEvent]) -> int:
        """Append prepared events."""
        ...

    def append(self, event: Event, **options: Any) -> object:
        """Append one event."""
        ...


class SyncProducer:
    """`append` on a psycopg connection."""

    def __init__(self, dsn: str, *, autocommit: bool = False) -> None:
        self.connection = psycopg.connect(dsn, autocommit=autocommit)
        self.execute("set role seapost_producer")
        self.execute("commit")

    def execute(self, statement: str) -> list[Any]:
        """Run a statement and return its rows."""
        cursor = self.connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []

    def append_many(self, events: Iterable[PreparedEvent]) -> int:
        """Append prepared events."""
        return append_many(self.connection, events)

    def append(self, event: Event, **options: Any) -> object:
        """Append one event."""
        return append(self.connection, event, **options)

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()


class AsyncProducer:
    """`append_async` on an async psycopg connection, one event loop for its whole life."""

    def __init__(self, dsn: str, *, autocommit: bool = False) -> None:
        self.runner = asyncio.Runner()
        self.connection = self.runner.run(psycopg.AsyncConnection.connect(dsn, autocommit=autocommit))
        self.execute("set role seapost_producer")
        self.execute("commit")

    def execute(self, statement: str) -> list[Any]:
        """Run a statement and return its rows."""

        async def run() -> list[Any]:
            cursor = await self.connection.execute(statement.encode())
            return await cursor.fetchall() if cursor.description else []

        return self.runner.run(run())

    def append_many(self, events: Iterable[PreparedEvent]) -> int:
        """Append prepared events."""
        return self.runner.run(append_many_async(self.connection, events))

    def append(self, event: Event, **options: Any) -> object:
        """Append one event."""
        return self.runner.run(append_async(self.connection, event, **options))

    def close(self) -> None:
        """Close the connection."""
        self.runner.run(self.connection.close())
        self.runner.close()


ProducerClass = type[SyncProducer] | type[AsyncProducer]


@pytest.fixture
def shop(database: TestDatabase) -> TestDatabase:
    """A database in which the application's routes are active and producers own a table."""

    async def activate() -> None:
        async with await psycopg.AsyncConnection.connect(database.dsn) as connection:
            definition = APPLICATION.definition("1")
            await routes.apply(connection, definition, source_release="tests", actor="tests")

    asyncio.run(activate())
    with database.connect(autocommit=True) as connection:
        connection.execute("create table public.business (n int primary key)")
        connection.execute("grant select, insert on public.business to seapost_producer")
    return database


@pytest.fixture(params=[SyncProducer, AsyncProducer], ids=["sync", "async"])
def producer_class(request: pytest.FixtureRequest) -> ProducerClass:
    """Each colour in turn."""
    return request.param


@pytest.fixture
def producer(producer_class: ProducerClass, shop: TestDatabase) -> Iterator[Producer]:
    """A producer in an ordinary transaction."""
    made = producer_class(shop.dsn)
    yield made
    made.close()


def stored(database: TestDatabase) -> list[int]:
    """The payload numbers of the stored events, in order."""
    rows = database.connect().execute("select (event_payload ->> 'n')::int from seapost.outbox_events order by 1")
    return [row[0] for row in rows]


@pytest.mark.req("F01", "GEN-13", "APP-04")
def test_event_and_business_change_share_one_fate(producer: Producer, shop: TestDatabase) -> None:
    """What a savepoint undoes is gone with its event; the rest commits with its business row."""
    for n in (1, 2, 3):
        if n == 2:
            producer.execute("savepoint before_two")
        producer.execute(f"insert into public.business values ({n})")  # noqa: S608 - a number of this loop
        producer.append(Counted(n=n), key=f"c-{n}", revision=1)
        if n == 2:
            producer.execute("rollback to savepoint before_two")
    producer.execute("commit")

    assert stored(shop) == [1, 3]
    assert [row[0] for row in shop.connect().execute("select n from public.business order by n")] == [1, 3]
    shop.assert_places()


@pytest.mark.req("F01", "GEN-13")
def test_rollback_leaves_nothing(producer: Producer, shop: TestDatabase) -> None:
    """An event whose transaction rolls back was never there, nor was its delivery."""
    producer.append(Counted(n=1), key="c-1", revision=1)
    producer.execute("rollback")

    assert stored(shop) == []
    assert shop.connect().execute("select count(*) from seapost.outbox_deliveries").fetchone() == (0,)


@pytest.mark.req("F01")
def test_autocommit_is_refused(producer_class: ProducerClass, shop: TestDatabase) -> None:
    """Append alone in autocommit mode is refused with advice; inside an explicit transaction it works."""
    producer = producer_class(shop.dsn, autocommit=True)
    with pytest.raises(AppendOutsideTransaction, match=r"connection\.transaction"):
        producer.append(Counted(n=1), key="c-1", revision=1)
    assert stored(shop) == []

    producer.execute("begin")
    producer.append(Counted(n=1), key="c-1", revision=1)
    producer.execute("commit")
    producer.close()

    assert stored(shop) == [1]


@pytest.mark.req("F03", "TST-09")
def test_same_id_same_content_is_stored_once(producer: Producer, shop: TestDatabase) -> None:
    """Appending the same prepared event again, in this or a later transaction, changes nothing."""
    event = prepare(Counted(n=1), key="c-1", revision=1)

    assert producer.append_many([event, prepare(Counted(n=2), key="c-2", revision=1)]) == 2
    assert producer.append_many([event]) == 0
    producer.execute("commit")
    assert producer.append_many([event]) == 0
    producer.execute("commit")

    assert stored(shop) == [1, 2]
    shop.assert_places()


@pytest.mark.req("F03")
def test_same_id_other_content_is_refused(producer: Producer, shop: TestDatabase) -> None:
    """A known id with another payload, tenant or type is a conflict of its own kind, and nothing is stored."""
    identity = new_event_id()
    first = _document(identity, {"n": 1})
    assert producer.append_many([first]) == 1
    producer.execute("commit")

    for other in (
        _document(identity, {"n": 2}),
        _document(identity, {"n": 1}, tenant=Tenant("organization", "other", "default")),
    ):
        with pytest.raises(EventConflict, match="other content"):
            producer.append_many([other])
        producer.execute("rollback")
    assert producer.append_many([_document(identity, {"n": 1.0})]) == 0  # the same canonical document
    producer.execute("commit")

    assert stored(shop) == [1]


def _document(identity: UUID, payload: dict[str, Any], tenant: Tenant | None = None) -> PreparedEvent:
    return build_envelope_of(
        payload,
        event_type="test.counted@1",
        event_schema_version="1",
        producer="tests",
        aggregate=Aggregate("counter", "c-1", 1),
        tenant=tenant or Tenant("organization", "default", "default"),
        occurred_at=datetime(2026, 1, 31, tzinfo=UTC),
        event_id=identity,
    )


@pytest.mark.req("F04")
@pytest.mark.parametrize(
    "payload",
    [{"a": "x\u0000y"}, {"a": "\ud83d"}, {"a": "\ude00\ud83d"}, {"\u0000": 1}],
    ids=["nul", "half", "swapped", "key"],
)
def test_strings_that_no_database_can_hold_are_refused_at_the_boundary(
    producer: Producer, shop: TestDatabase, payload: dict[str, Any]
) -> None:
    """The refusal names the place, and the caller's transaction is still usable."""
    producer.execute("insert into public.business values (1)")
    with pytest.raises(CanonicalError) as refusal:
        producer.append_many([_document(new_event_id(), payload)])
    assert refusal.value.pointer.startswith("/payload")
    producer.append(Counted(n=1), key="c-1", revision=1)
    producer.execute("commit")

    assert stored(shop) == [1]


@pytest.mark.req("F04", "STO-13")
def test_honest_strings_are_stored_unchanged(producer: Producer, shop: TestDatabase) -> None:
    """A written-out escape and a real surrogate pair come back byte for byte."""
    event = _document(new_event_id(), {"n": 1, "a": "\\u0000", "b": "\U0001f600", "caf\u00e9": "cafe\u0301"})
    producer.append_many([event])
    producer.execute("commit")

    row = shop.connect().execute("select event_envelope from seapost.outbox_events").fetchone()
    assert row == (event.envelope,)


@pytest.mark.req("SET-38", "SET-39", "SET-40")
def test_an_event_outside_the_delivery_set_fails_its_transaction(producer: Producer, shop: TestDatabase) -> None:
    """An event that no active definition contains is refused at once, also beside one that it contains."""
    with pytest.raises(EventNotRoutable, match=r"test\.unrouted@1"):
        producer.append_many(
            [prepare(Counted(n=1), key="c-1", revision=1), prepare(Unrouted(n=2), key="u-1", revision=1)]
        )
    producer.execute("rollback")

    assert stored(shop) == []


@pytest.mark.req("APP-01")
def test_without_an_active_delivery_set_nothing_is_appended(
    producer_class: ProducerClass, database: TestDatabase
) -> None:
    """The set comes from the database alone; without one there is a clear error."""
    producer = producer_class(database.dsn)
    with pytest.raises(NoActiveDeliverySet):
        producer.append(Counted(n=1), key="c-1", revision=1)
    producer.close()


def test_too_many_events_are_refused_before_anything_is_sent(producer: Producer, shop: TestDatabase) -> None:
    """The limit of one call is named."""
    event = prepare(Counted(n=1), key="c-1", revision=1)
    with pytest.raises(LimitExceeded, match=str(EVENTS_PER_CALL_MAX)):
        producer.append_many([event] * (EVENTS_PER_CALL_MAX + 1))
    assert stored(shop) == []


@pytest.mark.parametrize(
    ("options", "pointer"),
    [
        ({"key": "", "revision": 1}, "/aggregate/id"),
        ({"key": "c\u200b1", "revision": 1}, "/aggregate/id"),
        ({"key": "c-1", "revision": 0}, "/aggregate/revision"),
        ({"key": "c-1", "revision": True}, "/aggregate/revision"),
        ({"key": "c-1", "revision": 1, "producer": "Not A Name"}, None),
    ],
)
@pytest.mark.req("F11")
def test_bad_arguments_name_the_field(producer: Producer, options: dict[str, Any], pointer: str | None) -> None:
    """An identifier that breaks its rule is refused with the pointer inside the envelope, never repaired."""
    if pointer is None:
        producer.append(Counted(n=1), **options)  # the class names its producer, which wins
        return
    with pytest.raises(ContractError) as refusal:
        producer.append(Counted(n=1), **options)
    assert refusal.value.pointer == pointer
