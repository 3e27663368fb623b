"""Definitions under concurrency: an event never freezes a retired one, and a version never gets two meanings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg import IsolationLevel

from tests.kit import builders
from tests.kit.builders import BILLING, PLACED, SEARCH, envelope, event_id_of
from tests.kit.database import TestDatabase
from tests.kit.kernel import Kernel, refused
from tests.kit.sessions import SessionFactory

NEXT = builders.definition("2", {PLACED: [SEARCH]})


def _append(text: bytes) -> Callable[[psycopg.Connection[Any]], int]:
    return lambda connection: Kernel(connection).append(text)


def _activate(connection: psycopg.Connection[Any]) -> None:
    Kernel(connection).activate("2", NEXT)


def _frozen(kernel: Kernel, text: bytes) -> tuple[str, list[str]]:
    version = kernel.value(
        "select delivery_set_version from seapost.outbox_events where event_id = %s", event_id_of(text)
    )
    rows = kernel.rows("select destination from seapost.outbox_deliveries where event_id = %s", event_id_of(text))
    return version, [row[0] for row in rows]


@pytest.mark.req("SET-31", "NEG-51", "REF-04", "SET-17")
def test_an_activation_waits_for_the_appends_in_flight(
    kernel: Kernel, each_guard_database: TestDatabase, sessions: SessionFactory
) -> None:
    """The event of an open producer commits under the old definition before the new one becomes active."""
    kernel.register(NEXT)
    producer, operator = sessions(each_guard_database)
    old = envelope()
    producer.call(_append(old))
    switching = operator.start_call(_activate)
    operator.wait_until_blocked(by=producer)
    assert not switching.done
    producer.commit()
    switching.result()
    operator.commit()
    assert _frozen(kernel, old) == ("1", [BILLING])


@pytest.mark.req("SET-31", "NEG-51", "REF-04")
def test_an_append_waits_for_the_activation_and_freezes_the_new_definition(
    kernel: Kernel, each_guard_database: TestDatabase, sessions: SessionFactory
) -> None:
    """Whoever appends during a switch waits for it and gets what it decided, also when it was given up."""
    kernel.register(NEXT)
    operator, producer = sessions(each_guard_database)
    for end, expected in ((operator.rollback, ("1", [BILLING])), (operator.commit, ("2", [SEARCH]))):
        text = envelope()
        operator.call(_activate)
        waiting = producer.start_call(_append(text))
        producer.wait_until_blocked(by=operator)
        end()
        assert waiting.result() == 1
        producer.commit()
        assert _frozen(kernel, text) == expected


@pytest.mark.req("SET-31", "NEG-51")
@pytest.mark.parametrize("isolation", [IsolationLevel.REPEATABLE_READ, IsolationLevel.SERIALIZABLE], ids=str)
def test_a_producer_with_an_old_snapshot_cannot_freeze_a_retired_definition(
    kernel: Kernel, each_guard_database: TestDatabase, isolation: IsolationLevel
) -> None:
    """Its transaction began before the switch and still sees the old version; append fails with a serialization
    error.
    """
    kernel.register(NEXT)
    producer = Kernel(each_guard_database.connect())
    producer.connection.isolation_level = isolation
    assert (
        producer.value("select delivery_set_version from seapost.delivery_set_versions where status = 'active'") == "1"
    )
    kernel.activate("2", NEXT)
    with refused("40001"):
        producer.append(envelope())
    producer.connection.rollback()
    text = envelope()
    producer.append(text)
    producer.connection.commit()
    assert _frozen(kernel, text) == ("2", [SEARCH])


@pytest.mark.req("SET-31")
def test_a_producer_with_an_old_snapshot_blocks_the_switch_once_it_has_appended(
    kernel: Kernel, each_guard_database: TestDatabase, sessions: SessionFactory
) -> None:
    """At REPEATABLE READ too an append in flight holds the activation back until it commits."""
    kernel.register(NEXT)
    producer, operator = sessions(each_guard_database)
    producer.connection.isolation_level = IsolationLevel.REPEATABLE_READ
    text = envelope()
    producer.call(_append(text))
    switching = operator.start_call(_activate)
    operator.wait_until_blocked(by=producer)
    producer.commit()
    switching.result()
    operator.commit()
    assert _frozen(kernel, text) == ("1", [BILLING])


@pytest.mark.req("SET-17")
def test_two_activations_at_once_leave_one_active_version(
    kernel: Kernel, each_guard_database: TestDatabase, sessions: SessionFactory
) -> None:
    """The second waits, then retires what the first made active."""
    third = builders.definition("3", {PLACED: [BILLING]})
    kernel.register(NEXT)
    kernel.register(third)
    one, two = sessions(each_guard_database)
    one.call(_activate)
    late = two.start_call(lambda connection: Kernel(connection).activate("3", third))
    two.wait_until_blocked(by=one)
    one.commit()
    late.result()
    two.commit()
    statuses = kernel.rows("select delivery_set_version, status from seapost.delivery_set_versions order by 1")
    assert statuses == [("1", "retired"), ("2", "retired"), ("3", "active")]


@pytest.mark.req("SET-17", "SET-14")
@pytest.mark.parametrize("is_same", [True, False], ids=["same content", "other content"])
def test_two_registrations_at_once_insert_or_compare(
    kernel: Kernel, each_guard_database: TestDatabase, sessions: SessionFactory, *, is_same: bool
) -> None:
    """The second waits for the first: the same candidate gets the same name, another one under that version a
    conflict.
    """
    one, two = sessions(each_guard_database)
    other = NEXT if is_same else builders.definition("2", {PLACED: [BILLING]})
    identity = one.call(lambda connection: Kernel(connection).register(NEXT))
    late = two.start_call(lambda connection: Kernel(connection).register(other))
    two.wait_until_blocked(by=one)
    one.commit()
    if is_same:
        assert late.result() == identity
    else:
        with refused("SP004"):
            late.result()
    two.rollback()
    assert kernel.value("select count(*) from seapost.delivery_set_versions where delivery_set_version = '2'") == 1
