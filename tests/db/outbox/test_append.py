"""`outbox_append_v1`: the event and exactly its deliveries, in the caller's own transaction."""

from __future__ import annotations

from datetime import datetime

import psycopg
import pytest
from psycopg import IsolationLevel

from tests.kit import builders
from tests.kit.builders import BILLING, PLACED, SEARCH, SHIPPED, envelope, event_id_of, member
from tests.kit.database import TestDatabase
from tests.kit.kernel import Kernel, refused


def _destinations(kernel: Kernel, text: bytes) -> list[tuple[str, str]]:
    return kernel.rows(
        "select destination, status from seapost.outbox_deliveries where event_id = %s order by 1", event_id_of(text)
    )


@pytest.mark.req("APP-01", "APP-02", "APP-03", "APP-04", "STO-17", "STO-19", "REF-04")
def test_append_stores_the_event_with_the_active_quad_and_one_pending_delivery_per_member(kernel: Kernel) -> None:
    """The stored event carries the bytes, their digest and the complete definition quad; each member owes a
    delivery.
    """
    candidate = builders.definition()
    text = envelope(SHIPPED)
    assert kernel.append(text) == 1
    stored = kernel.row(
        "select event_envelope, event_envelope_sha256, event_envelope_digest_algorithm_version, delivery_set_version,"
        " delivery_set_definition_schema_version, delivery_set_definition_digest_algorithm_version,"
        " delivery_set_definition_digest, mandatory_count, published_at from seapost.outbox_events where event_id = %s",
        event_id_of(text),
    )
    assert bytes(stored[0]) == text
    assert stored[1:] == (
        builders.digest(text).hex(),
        "jcs-sha256-v1",
        "1",
        "1",
        "jcs-sha256-v1",
        builders.digest(candidate).hex(),
        2,
        None,
    )
    assert _destinations(kernel, text) == [(BILLING, "pending"), (SEARCH, "pending")]


@pytest.mark.req("APP-01")
def test_append_needs_an_active_delivery_set(each_guard_database: TestDatabase) -> None:
    """Without an active definition, even with a registered one, append fails and stores nothing."""
    kernel = Kernel(each_guard_database.connect(autocommit=True))
    kernel.register(builders.definition())
    with refused("SP001"):
        kernel.append(envelope())
    assert kernel.count("outbox_events") == 0


@pytest.mark.req("NEG-06", "APP-01")
@pytest.mark.parametrize(
    ("event_type", "schema_version"),
    [("order.lost@1", "1"), (PLACED, "2"), (PLACED, "1.0"), ("order.placed", "1"), ("order.placed@2", "1")],
)
def test_an_event_outside_the_definition_fails_the_transaction(
    kernel: Kernel, event_type: str, schema_version: str
) -> None:
    """An unknown pair, another version and an alias are all refused by exact comparison; the good event beside falls
    too.
    """
    with refused("SP003", event_type, "active version 1"):
        kernel.append(envelope(), envelope(event_type, eventSchemaVersion=schema_version))
    assert (kernel.count("outbox_events"), kernel.count("outbox_deliveries")) == (0, 0)


@pytest.mark.req("AMB-11", "SET-08")
def test_an_optional_member_owes_no_delivery(kernel: Kernel) -> None:
    """A member with mandatory=false is part of the definition and creates no delivery row."""
    lines = [member(PLACED, BILLING), member(PLACED, SEARCH, mandatory=False)]
    candidate = builders.canonical(builders.definition_document("2", lines))
    kernel.register(candidate)
    kernel.activate("2", candidate)
    text = envelope(PLACED)
    kernel.append(text)
    assert _destinations(kernel, text) == [(BILLING, "pending")]
    kernel.acknowledge(kernel.claim_one())
    assert kernel.published_at(event_id_of(text)) is not None


@pytest.mark.req("SET-40", "NEG-41", "SET-31", "STO-14")
def test_a_destination_added_later_owes_nothing_for_the_past(kernel: Kernel) -> None:
    """Events appended before an activation keep their destinations; only later ones get the new one."""
    old = envelope(PLACED)
    kernel.append(old)
    kernel.route("2", {PLACED: [BILLING, SEARCH]})
    new = envelope(PLACED)
    kernel.append(new)
    assert [name for name, _ in _destinations(kernel, old)] == [BILLING]
    assert [name for name, _ in _destinations(kernel, new)] == [BILLING, SEARCH]
    assert [c.fence.event_id for c in kernel.claim(SEARCH)] == [event_id_of(new)]


@pytest.mark.req("F03", "STO-13")
def test_the_same_bytes_again_are_left_alone_and_other_content_is_a_conflict(kernel: Kernel) -> None:
    """A replay stores nothing, however its numbers were spelled; other content under a known id is refused by its
    own code.
    """
    identity = str(builders.new_event_id())
    assert kernel.append(envelope(eventId=identity, payload={"n": 1})) == 1
    assert kernel.append(envelope(eventId=identity, payload={"n": 1.0})) == 0
    with refused("SP002", identity, "stored digest", "given digest"):
        kernel.append(envelope(), envelope(eventId=identity, payload={"n": 2}))
    assert (kernel.count("outbox_events"), kernel.count("outbox_deliveries")) == (1, 1)


@pytest.mark.req("F03")
def test_a_replay_is_recognised_after_its_pair_has_left_the_definition(kernel: Kernel) -> None:
    """What is stored stays stored: the same bytes are no conflict, although a new event of that type would be
    refused.
    """
    text = envelope(SHIPPED)
    kernel.append(text)
    kernel.route("2", {PLACED: [BILLING]})
    assert kernel.append(text) == 0
    with refused("SP003"):
        kernel.append(envelope(SHIPPED))


@pytest.mark.req("F03")
def test_one_call_may_name_an_event_twice_only_with_one_content(kernel: Kernel) -> None:
    """Twice the same bytes are one event; two contents under one id are a conflict and store nothing."""
    identity = str(builders.new_event_id())
    with refused("SP002"):
        kernel.append(envelope(eventId=identity), envelope(eventId=identity, payload={}))
    assert kernel.count("outbox_events") == 0
    text = envelope(eventId=identity)
    assert kernel.append(text, text) == 1
    assert kernel.count("outbox_deliveries") == 1


@pytest.mark.req("F01", "APP-05")
def test_the_event_shares_the_fate_of_the_callers_transaction(
    kernel: Kernel, each_guard_database: TestDatabase
) -> None:
    """Append never commits: nothing is seen before commit, a savepoint takes its part back, a rollback everything."""
    connection = each_guard_database.connect("producer")
    producer = Kernel(connection)
    first, second, third = (envelope() for _ in range(3))
    producer.append(first)
    with connection.transaction() as savepoint:
        producer.append(second)
        raise psycopg.Rollback(savepoint)
    producer.append(third)
    assert kernel.claim() == []
    connection.commit()
    assert {c.fence.event_id for c in kernel.claim()} == {event_id_of(first), event_id_of(third)}
    producer.append(envelope())
    connection.rollback()
    assert (kernel.count("outbox_events"), kernel.claim()) == (2, [])


@pytest.mark.req("F01")
@pytest.mark.parametrize("isolation", list(IsolationLevel), ids=lambda level: level.name.lower())
def test_append_works_at_every_isolation_level(
    kernel: Kernel, each_guard_database: TestDatabase, isolation: IsolationLevel
) -> None:
    """The producer chooses the isolation of its transaction; append stores the same rows in each."""
    producer = Kernel(each_guard_database.connect("producer"))
    producer.connection.isolation_level = isolation
    assert producer.append(envelope(), envelope(SHIPPED)) == 2
    producer.connection.commit()
    assert kernel.count("outbox_deliveries") == 3


def test_arguments_are_bounded(kernel: Kernel) -> None:
    """No array, a nested array and too many envelopes are refused; an empty array stores nothing."""
    assert kernel.append() == 0
    for query in (
        "select seapost.outbox_append_v1(null)",
        "select seapost.outbox_append_v1(array[array['a'::bytea], array['b'::bytea]])",
        "select seapost.outbox_append_v1(array_fill('x'::bytea, array[10001]))",
    ):
        with refused("SP013"):
            kernel.run(query)
    with refused("SP006", "null"):
        kernel.run("select seapost.outbox_append_v1(array[null::bytea])")


def test_an_event_for_nobody_is_stored_and_never_published(kernel: Kernel) -> None:
    """An applicable event without members is a fact without deliveries; nobody has confirmed it, so nothing says so."""
    kernel.route("2", {PLACED: []})
    text = envelope(PLACED)
    assert kernel.append(text) == 1
    assert _destinations(kernel, text) == []
    assert kernel.published_at(event_id_of(text)) is None


@pytest.mark.req("AMB-48", "F19")
def test_deliveries_carry_the_moving_clock_and_not_the_start_of_the_transaction(kernel: Kernel) -> None:
    """A long producer transaction stamps its rows when it writes them, so they do not land far below a low-water
    hint.
    """
    text = envelope()
    with kernel.connection.transaction():
        started: datetime = kernel.value("select now()")
        kernel.append(text)
        (written,) = kernel.row("select available_at from seapost.outbox_deliveries")
    assert written > started


@pytest.mark.req("F74")
def test_only_a_sleeping_destination_is_notified_and_only_at_commit(
    kernel: Kernel, each_guard_database: TestDatabase
) -> None:
    """Append notifies a destination whose dispatcher declared itself asleep, at commit of the producer's
    transaction.
    """
    listener = each_guard_database.connect(autocommit=True)
    listener.execute("listen seapost")
    listener.execute("select seapost.dispatcher_sleep_v1(%s)", (SEARCH,))
    kernel.append_new(PLACED)
    producer = Kernel(each_guard_database.connect())
    producer.append_new(SHIPPED)
    producer.connection.rollback()
    assert list(listener.notifies(timeout=0)) == []
    producer.append_new(SHIPPED)
    assert list(listener.notifies(timeout=0)) == []
    producer.connection.commit()
    listener.execute("select 1")
    assert [notice.payload for notice in listener.notifies(timeout=5, stop_after=1)] == [SEARCH]
    listener.execute("select seapost.dispatcher_wake_v1(%s)", (SEARCH,))
    kernel.append_new(SHIPPED)
    listener.execute("select 1")
    assert list(listener.notifies(timeout=0)) == []
