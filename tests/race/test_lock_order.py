"""Settle calls lock in one order, whatever order their arguments have: no deadlock between honest workers (F18)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest

from seapost.model.delivery import Claim
from tests.kit.builders import BILLING, PLACED, SEARCH, SHIPPED
from tests.kit.database import TestDatabase
from tests.kit.kernel import Kernel
from tests.kit.sessions import SessionFactory

Verb = Callable[..., Any]
VERBS: dict[str, Verb] = {
    "acknowledge": Kernel.acknowledge,
    "retry": Kernel.retry,
    "quarantine": Kernel.quarantine,
    "renew": Kernel.renew,
}
ROUNDS = 15
HOUR = timedelta(hours=1)


@pytest.mark.req("F18", "CLM-05")
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("event_type", [PLACED, SHIPPED])
def test_a_waiting_batch_holds_nothing_behind_the_row_it_waits_for(
    kernel: Kernel, each_guard_database: TestDatabase, sessions: SessionFactory, verb: str, event_type: str
) -> None:
    """Named backwards, a batch still waits at its lowest event first; whoever holds that one can finish the others."""
    kernel.append_new(event_type, 3)
    low, middle, high = kernel.claim()
    one, two = sessions(each_guard_database)
    one.call(lambda connection: Kernel(connection).acknowledge(low))
    late = two.start_call(lambda connection: VERBS[verb](Kernel(connection), high, middle, low))
    two.wait_until_blocked(by=one)
    assert one.call(lambda connection: Kernel(connection).retry(high, middle)) == []
    one.commit()
    answer = late.result()
    assert answer == set() if verb == "renew" else {row[2] for row in answer} == {"stale"}
    two.commit()
    statuses = [kernel.status(claim.fence.event_id) for claim in (low, middle, high)]
    assert statuses == ["acknowledged", "pending", "pending"]


@pytest.mark.req("F18", "DLV-15", "TST-33")
def test_opposite_settles_claims_and_recoveries_at_once_never_deadlock(
    kernel: Kernel, each_guard_database: TestDatabase
) -> None:
    """Four workers fight over the same claims with every verb, in both orders, while a fifth recovers: no error at
    all.
    """
    kernel.append_new(SHIPPED, 40)
    for _ in range(ROUNDS):
        claims = kernel.claim(BILLING, limit=20, lease=HOUR)
        searches = kernel.claim(SEARCH, limit=20, lease=HOUR)
        work: list[tuple[Verb, list[Claim]]] = [
            (Kernel.acknowledge, claims[::2]),
            (Kernel.retry, claims[::-1]),
            (Kernel.renew, claims),
            (Kernel.acknowledge, searches[::-1][:3]),
            (Kernel.retry, searches),
        ]
        barrier = Barrier(len(work))

        def settle(item: tuple[Verb, list[Claim]], barrier: Barrier = barrier) -> None:
            verb, named = item
            worker = Kernel(each_guard_database.connect("dispatcher", autocommit=True))
            barrier.wait(30)
            if named:
                verb(worker, *named)
            worker.recover()
            worker.connection.close()

        with ThreadPoolExecutor(len(work)) as threads:
            list(threads.map(settle, work))
        assert kernel.defects() == []
    assert kernel.value("select deadlocks from pg_stat_database where datname = current_database()") == 0
