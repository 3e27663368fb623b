"""The last mandatory acknowledgements of one event at the same moment: published exactly once (AMB-47, PUB-09)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any

import psycopg
import pytest

from seapost.model.delivery import Claim
from tests.kit.builders import BILLING, PLACED, SEARCH, SHIPPED
from tests.kit.database import TestDatabase
from tests.kit.kernel import Kernel, Row
from tests.kit.sessions import SessionFactory

EVENTS = 200
BATCH = 20


def _acknowledge(*claims: Claim) -> Callable[[psycopg.Connection[Any]], list[Row]]:
    return lambda connection: Kernel(connection).acknowledge(*claims)


@pytest.mark.req("NEG-45", "PUB-05", "PUB-09", "AMB-47")
@pytest.mark.parametrize("order", [(BILLING, SEARCH), (SEARCH, BILLING)], ids="-".join)
def test_of_two_last_acknowledgements_the_second_waits_and_publishes(
    kernel: Kernel, each_guard_database: TestDatabase, sessions: SessionFactory, order: tuple[str, str]
) -> None:
    """The second cannot look before the first has committed, so it sees a complete set and publishes it."""
    (event_id,) = kernel.append_new(SHIPPED)
    claims = [kernel.claim_one(destination) for destination in order]
    one, two = sessions(each_guard_database)
    assert one.call(_acknowledge(claims[0])) == []
    late = two.start_call(_acknowledge(claims[1]))
    two.wait_until_blocked(by=one)
    one.commit()
    assert late.result() == []
    assert kernel.published_at(event_id) is None
    two.commit()
    assert kernel.published_at(event_id) is not None
    assert kernel.count("publication") == 1


@pytest.mark.req("NEG-45", "PUB-09", "NEG-10")
def test_when_the_first_of_two_rolls_back_nothing_is_published(
    kernel: Kernel, each_guard_database: TestDatabase, sessions: SessionFactory
) -> None:
    """The second commits an incomplete set; the first, done again, completes it."""
    (event_id,) = kernel.append_new(SHIPPED)
    first, second = kernel.claim_one(BILLING), kernel.claim_one(SEARCH)
    one, two = sessions(each_guard_database)
    one.call(_acknowledge(first))
    late = two.start_call(_acknowledge(second))
    two.wait_until_blocked(by=one)
    one.rollback()
    assert late.result() == []
    two.commit()
    assert kernel.published_at(event_id) is None
    assert kernel.acknowledge(first) == []
    assert kernel.published_at(event_id) is not None


@pytest.mark.req("AMB-47", "CLM-02")
def test_events_with_one_mandatory_delivery_need_no_lock(
    kernel: Kernel, each_guard_database: TestDatabase, sessions: SessionFactory
) -> None:
    """An acknowledgement of a single-destination event holds no publication lock, so it makes nobody wait."""
    kernel.append_new(PLACED, 2)
    first, second = kernel.claim()
    one, two = sessions(each_guard_database)
    one.call(_acknowledge(first))
    held = kernel.value("select count(*) from pg_locks where locktype = 'advisory' and pid = %s", one.process_id)
    assert held == 0
    assert two.call(_acknowledge(second)) == []
    one.commit()
    two.commit()
    assert kernel.count("publication") == 2


@pytest.mark.req("NEG-45", "PUB-05", "PUB-09", "F18", "AMB-47")
def test_two_threads_that_acknowledge_in_opposite_order_lose_no_publication(
    kernel: Kernel, each_guard_database: TestDatabase
) -> None:
    """200 events with two destinations, confirmed from both ends at once: no deadlock, each published once."""
    kernel.append_new(SHIPPED, EVENTS)
    hour = timedelta(hours=1)
    billing = kernel.claim(BILLING, limit=EVENTS, lease=hour)
    search = kernel.claim(SEARCH, limit=EVENTS, lease=hour)
    barrier = Barrier(2)

    def confirm(claims: Sequence[Claim]) -> int:
        worker = Kernel(each_guard_database.connect("dispatcher", autocommit=True))
        refused = 0
        for start in range(0, EVENTS, BATCH):
            barrier.wait(30)
            refused += len(worker.acknowledge(*claims[start : start + BATCH]))
        return refused

    # Both name the same events in each round, one of them backwards: their sorted locks still meet in one order.
    with ThreadPoolExecutor(2) as threads:
        backwards = [claim for start in range(0, EVENTS, BATCH) for claim in reversed(search[start : start + BATCH])]
        assert list(threads.map(confirm, [billing, backwards])) == [0, 0]
    assert kernel.value("select count(*) from seapost.outbox_events where published_at is null") == 0
    assert kernel.count("publication") == EVENTS
