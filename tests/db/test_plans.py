"""The hot functions do the same thing under every plan, and touch a bounded number of pages whatever statistics say."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from seapost.model.delivery import Claim
from tests.kit import builders
from tests.kit.builders import BILLING, SEARCH, SHIPPED
from tests.kit.clock import Clock
from tests.kit.database import TestDatabase
from tests.kit.kernel import Kernel
from tests.kit.planners import PLANNERS, pages_of, use_planner

BACKLOG = 20_000


def _backlog(kernel: Kernel, count: int) -> None:
    """Append so many two-destination events with statements of a thousand each."""
    for start in range(0, count, 1000):
        kernel.append(*(builders.envelope(SHIPPED) for _ in range(min(1000, count - start))))


@pytest.mark.req("CLM-01", "CLM-02", "CLM-07", "DLV-07")
@pytest.mark.parametrize("planner", PLANNERS)
def test_every_plan_does_the_same(kernel: Kernel, clock: Clock, planner: str) -> None:
    """Claim n takes exactly the n oldest, settle and recovery move exactly what they name, whatever plan runs them."""
    use_planner(kernel, PLANNERS[planner])
    kernel.claim()
    kernel.recover()
    _one_round(kernel, clock)
    kernel.run("analyze")
    _one_round(kernel, clock)


def _one_round(kernel: Kernel, clock: Clock) -> None:
    """Forty events, each destination on its own, every verb with an exact result."""
    ids = sorted(kernel.append_new(SHIPPED, 40))
    first = kernel.claim(limit=7)
    assert [claim.fence.event_id for claim in first] == ids[:7]
    second = kernel.claim(limit=13)
    assert [claim.fence.event_id for claim in second] == ids[7:20]
    assert kernel.acknowledge(*first[:3]) == []
    assert kernel.retry(*first[3:5], delay=timedelta(days=1)) == kernel.quarantine(*first[5:]) == []
    assert len(kernel.renew(*second[:6], lease=timedelta(hours=1))) == 6
    clock.advance(60)
    assert kernel.recover(limit=4) == {BILLING: 4}
    assert kernel.recover(limit=4) == {BILLING: 3}
    assert len(kernel.claim(limit=3, suspects=True)) == 1
    assert len(kernel.claim(limit=100)) == 20
    assert len(kernel.claim(SEARCH, limit=39)) == 39
    assert len(kernel.claim(SEARCH, limit=39)) == 1
    clock.advance(7200)
    kernel.recover()
    suspects = [kernel.claim(name, limit=1000, suspects=True) for name in (BILLING, SEARCH)]
    assert all(kernel.acknowledge(*claims) == [] for claims in suspects if claims)
    assert kernel.claim() == kernel.claim(SEARCH) == []


@pytest.mark.req("CLM-02")
@pytest.mark.parametrize(
    "planner", ["as usual", "enable_tidscan", "hash joins only", "merge joins only", "enable_material"]
)
def test_a_claim_beside_locked_rows_never_takes_more_than_its_limit(
    kernel: Kernel, each_guard_database: TestDatabase, planner: str
) -> None:
    """With the oldest rows locked by an open claim, the next claim takes exactly its limit of the following ones."""
    ids = sorted(kernel.append_new(builders.PLACED, 30))
    other = Kernel(each_guard_database.connect())
    assert len(other.claim(limit=10)) == 10
    use_planner(kernel, PLANNERS[planner])
    assert [claim.fence.event_id for claim in kernel.claim(limit=10)] == ids[10:20]
    other.connection.rollback()
    assert [claim.fence.event_id for claim in kernel.claim(limit=10)] == ids[:10]


def _leases(kernel: Kernel) -> list[Claim]:
    """The claims that hold a lease of billing, put together from the tables."""
    found = kernel.rows(
        "select l.event_id, l.attempt_id, l.token, l.attempt_count, l.failure_count, l.lost_count, l.company,"
        " l.member_id,"
        " l.event_digest, e.envelope, l.created_at, l.lane from seapost.delivery_lease as l join seapost.event as e"
        " using (event_id)"
        " where l.destination = 'billing' order by l.attempt_id"
    )
    return [kernel.claim_of(BILLING, row) for row in found]


@pytest.mark.req("CLM-01", "CLM-07", "DLV-07")
def test_plans_made_on_empty_tables_stay_bounded_behind_a_backlog(lean_kernel: Kernel, database: TestDatabase) -> None:
    """The plans were made when the tables were empty and vacuumed; behind 20,000 rows each verb touches as few
    pages.
    """
    clock = Clock(lean_kernel.connection)
    lean_kernel.append_new()
    old = lean_kernel.claim_one()
    lean_kernel.acknowledge(old)
    lean_kernel.run("vacuum analyze")
    kernel = Kernel(database.connect(autocommit=True))
    use_planner(kernel, {"plan_cache_mode": "force_generic_plan"})
    assert kernel.claim() == []
    assert (kernel.recover(), kernel.renew(old)) == ({}, set())
    for settle in (kernel.acknowledge, kernel.retry, kernel.quarantine):
        assert [row[2] for row in settle(old)] == ["stale"]
    with kernel.connection.transaction(force_rollback=True):
        _receive(kernel, [old.fence.event_id])
        _receive(kernel, [old.fence.event_id])
    small, large = _measure(kernel, clock, 200), _measure(kernel, clock, BACKLOG)
    for verb, pages in large.items():
        # One more level of an index costs a page per probe, of which a verb makes up to two for each of its 50 rows;
        # one scan of the backlog would cost 300 and more.
        assert pages <= small[verb] * 1.15 + 150, (verb, small, large)


def _measure(kernel: Kernel, clock: Clock, backlog: int) -> dict[str, int]:
    """Pages per verb for 50 deliveries with so many events waiting, and as many leased."""
    _backlog(kernel, backlog)
    kernel.claim(SEARCH, limit=min(backlog, 10_000), lease=timedelta(hours=1))
    pages: dict[str, int] = {}
    pages["claim"], _ = pages_of(kernel, lambda session: session.claim(limit=50, lease=timedelta(hours=1)))
    claims = _leases(kernel)[-50:]
    pages["renew"], _ = pages_of(kernel, lambda session: session.renew(*claims))
    pages["acknowledge"], _ = pages_of(kernel, lambda session: session.acknowledge(*claims[:25]))
    pages["retry"], _ = pages_of(kernel, lambda session: session.retry(*claims[25:45], delay=timedelta(hours=1)))
    pages["quarantine"], _ = pages_of(kernel, lambda session: session.quarantine(*claims[45:]))
    kernel.claim(limit=50, lease=timedelta(seconds=1))
    clock.advance(2)
    pages["recover"], _ = pages_of(kernel, lambda session: session.recover(limit=50))
    kernel.acknowledge(*kernel.claim(limit=50, suspects=True))
    _receive(kernel, [builders.new_event_id() for _ in range(min(backlog, 10_000))])
    known = [row[0] for row in kernel.rows("select event_id from seapost.inbox_receipts limit 50")]
    # So many new rows bring the server to analyse them by itself; the next call makes its plans anew and reads the
    # catalogs for that, which is not what a call costs.
    kernel.run("analyze seapost.inbox_receipt")
    _receive(kernel, known)
    pages["receive"], _ = pages_of(kernel, lambda session: _receive(session, known))
    return pages


def _receive(kernel: Kernel, event_ids: list[UUID]) -> None:
    """Receive these events at one consumer; those received before are answered with their first receipt."""
    size = len(event_ids)
    kernel.rows(
        "select * from seapost.inbox_receive_v1('c', %s, %s, %s, %s)",
        event_ids,
        [bytes(32)] * size,
        ["r"] * size,
        [b"{}"] * size,
    )
