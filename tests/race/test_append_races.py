"""One event id, two producers (F03), and batches in opposite order (F18)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from tests.kit import builders
from tests.kit.builders import SHIPPED, envelope
from tests.kit.database import TestDatabase
from tests.kit.kernel import Kernel, refused
from tests.kit.sessions import SessionFactory


def _append(*texts: bytes) -> Callable[[psycopg.Connection[Any]], int]:
    return lambda connection: Kernel(connection).append(*texts)


@pytest.mark.req("F03")
@pytest.mark.parametrize("is_same", [True, False], ids=["same content", "other content"])
def test_two_appends_of_one_id_store_one_event(
    kernel: Kernel, each_guard_database: TestDatabase, sessions: SessionFactory, *, is_same: bool
) -> None:
    """The second waits for the first: the same bytes are a replay, other content is the mismatch error and nothing
    else.
    """
    identity = str(builders.new_event_id())
    first = envelope(SHIPPED, eventId=identity, payload={"n": 1})
    second = first if is_same else envelope(SHIPPED, eventId=identity, payload={"n": 2})
    one, two = sessions(each_guard_database)
    assert one.call(_append(first)) == 1
    late = two.start_call(_append(second))
    two.wait_until_blocked(by=one)
    one.commit()
    if is_same:
        assert late.result() == 0
    else:
        with refused("SP002", identity):
            late.result()
    two.rollback()
    assert bytes(kernel.value("select event_envelope from seapost.outbox_events")) == first
    assert kernel.count("outbox_deliveries") == 2


@pytest.mark.req("F03", "F01")
def test_when_the_first_append_rolls_back_the_second_is_the_event(
    kernel: Kernel, each_guard_database: TestDatabase, sessions: SessionFactory
) -> None:
    """Nothing of the first remains, so the second content is no conflict."""
    identity = str(builders.new_event_id())
    one, two = sessions(each_guard_database)
    one.call(_append(envelope(SHIPPED, eventId=identity, payload={"n": 1})))
    second = envelope(SHIPPED, eventId=identity, payload={"n": 2})
    late = two.start_call(_append(second))
    two.wait_until_blocked(by=one)
    one.rollback()
    assert late.result() == 1
    two.commit()
    assert bytes(kernel.value("select event_envelope from seapost.outbox_events")) == second


@pytest.mark.req("F18", "F03")
def test_batches_in_opposite_order_wait_for_each_other_and_never_deadlock(
    kernel: Kernel, each_guard_database: TestDatabase, sessions: SessionFactory
) -> None:
    """The second batch waits at its lowest id while it holds no other, so the first can go on and commit."""
    low, middle, high = sorted(envelope(SHIPPED) for _ in range(3))
    low, middle, high = sorted((low, middle, high), key=builders.event_id_of)
    one, two = sessions(each_guard_database)
    assert one.call(_append(low)) == 1
    late = two.start_call(_append(high, middle, low))
    two.wait_until_blocked(by=one)
    assert one.call(_append(high, middle)) == 2
    one.commit()
    assert late.result() == 0
    two.commit()
    assert kernel.count("outbox_events") == 3


@pytest.mark.req("REF-01", "F03")
def test_two_events_of_one_aggregate_revision_meet_at_strict(
    strict_kernel: Kernel, strict_database: TestDatabase, sessions: SessionFactory
) -> None:
    """The second producer of the same revision waits and is refused when the first commits."""
    aggregate = {"kind": "order", "id": "order-17", "revision": 2}
    one, two = sessions(strict_database)
    one.call(_append(envelope(aggregate=aggregate)))
    late = two.start_call(_append(envelope(aggregate=aggregate)))
    two.wait_until_blocked(by=one)
    one.commit()
    with refused("SP002", "order-17"):
        late.result()
    two.rollback()
    assert strict_kernel.count("outbox_events") == 1


@pytest.mark.req("F03")
def test_a_repeatable_read_producer_that_met_another_fails_with_a_serialization_error(
    kernel: Kernel, each_guard_database: TestDatabase, sessions: SessionFactory
) -> None:
    """It cannot see the event that blocked it, so the server asks it to run its transaction again."""
    text = envelope()
    one, two = sessions(each_guard_database)
    two.connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    two.execute("select 1")
    one.call(_append(text))
    late = two.start_call(_append(text))
    two.wait_until_blocked(by=one)
    one.commit()
    with refused("40001"):
        late.result()
    two.rollback()
    assert two.call(_append(text)) == 0
    two.commit()
    assert kernel.count("outbox_events") == 1
