"""Claims over fair lanes take exactly what they should under every plan, and read a bounded number of rows."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

import pytest

from tests.kit.clock import Clock
from tests.kit.database import TestDatabase
from tests.kit.kernel import Kernel
from tests.kit.planners import PLANNERS, pages_of, use_planner
from tests.kit.tenants import append_of, fair, tenant_in

pytestmark = pytest.mark.req("CLM-01", "CLM-02", "F23")

LANES = 64
LEASE = timedelta(hours=1)


@pytest.mark.parametrize("planner", PLANNERS)
def test_every_plan_takes_the_same(kernel: Kernel, clock: Clock, planner: str) -> None:
    """Shares, leftovers, rotation and suspects are exact, with plans made on empty tables and after ANALYZE."""
    fair(kernel, 8)
    tenants = [tenant_in(kernel, lane, 8) for lane in (1, 4, 6)]
    use_planner(kernel, PLANNERS[planner])
    kernel.claim()
    for _ in range(2):
        ids = [append_of(kernel, tenant, count) for tenant, count in zip(tenants, (20, 2, 9), strict=True)]
        first = kernel.claim(limit=2, first_lane=5)
        assert [claim.fence.event_id for claim in first] == sorted([ids[2][0], ids[0][0]])
        claims = kernel.claim(limit=17, lease=timedelta(seconds=1))
        assert Counter(claim.lane for claim in claims) == {1: 8, 4: 2, 6: 7}
        assert {claim.company for claim in claims} == {17}
        assert {claim.fence.event_id for claim in claims} == {*ids[0][1:9], *ids[1], *ids[2][1:8]}
        assert len(kernel.claim(limit=1000)) == 12
        clock.advance(1)
        assert sum(kernel.recover().values()) == 17
        suspects = kernel.claim(limit=48, suspects=True)
        assert Counter(claim.lane for claim in suspects) == {1: 2, 4: 2, 6: 2}
        kernel.acknowledge(*first, *suspects)
        rest = kernel.claim(limit=1000, suspects=True)
        assert len(rest) == 11
        kernel.acknowledge(*rest)
        assert kernel.claim() == kernel.claim(suspects=True) == []
        kernel.run("analyze")


@pytest.mark.parametrize("planner", ["as usual", "enable_tidscan", "hash joins only", "enable_material", "no helper"])
def test_a_claim_beside_locked_rows_never_takes_more_than_its_limit(
    kernel: Kernel, each_guard_database: TestDatabase, planner: str
) -> None:
    """While another claim is open, this one takes exactly its limit of the following rows, lane by lane."""
    fair(kernel, 4)
    for lane in (0, 1, 2):
        append_of(kernel, tenant_in(kernel, lane, 4), 30)
    other = Kernel(each_guard_database.connect())
    assert len(other.claim(limit=30)) == 30
    use_planner(kernel, PLANNERS[planner])
    claims = kernel.claim(limit=30)
    assert Counter(claim.lane for claim in claims) == {0: 10, 1: 10, 2: 10}
    other.connection.rollback()
    assert len(kernel.claim(limit=100)) == 60


def _index_rows_read(kernel: Kernel) -> int:
    """Entries that this transaction has read from the claim index so far."""
    return kernel.value(
        "select pg_stat_get_xact_tuples_returned(c.oid) from pg_class as c"
        " where c.oid = 'seapost.delivery_ready_claim'::regclass"
    )


@pytest.mark.parametrize("backlogs", [(5_000,), (5_000, 5_000, 3, 1), (100,) * LANES, (2_000, 7, 40, 200, 1)], ids=str)
def test_a_claim_reads_few_rows_more_than_it_takes(lean_kernel: Kernel, backlogs: tuple[int, ...]) -> None:
    """Whatever the backlogs of the lanes, a claim of 500 reads at most three times as many entries of its index."""
    fair(lean_kernel, LANES)
    for lane, count in enumerate(backlogs):
        append_of(lean_kernel, tenant_in(lean_kernel, lane, LANES), count)
    with lean_kernel.connection.transaction():
        before = _index_rows_read(lean_kernel)
        assert len(lean_kernel.claim(limit=500)) == min(500, sum(backlogs))
        assert _index_rows_read(lean_kernel) - before <= 3 * 500


def test_plans_made_on_empty_tables_stay_bounded_behind_a_backlog(lean_kernel: Kernel, database: TestDatabase) -> None:
    """A claim whose plans were made on empty, vacuumed tables touches as few pages behind 20,000 rows as behind 200."""
    fair(lean_kernel, LANES)
    lean_kernel.run("vacuum analyze")
    kernel = Kernel(database.connect(autocommit=True))
    use_planner(kernel, {"plan_cache_mode": "force_generic_plan"})
    assert kernel.claim() == []
    pages: list[int] = []
    for backlog in (200, 20_000):
        append_of(lean_kernel, tenant_in(lean_kernel, 3, LANES), backlog)
        append_of(lean_kernel, tenant_in(lean_kernel, 5, LANES), 5)
        found, _ = pages_of(kernel, lambda session: session.claim(limit=50, lease=LEASE))
        pages.append(found)
    # One more level of an index costs a page per probe and row; one scan of the backlog would cost 300 and more.
    assert pages[1] <= pages[0] * 1.15 + 100 + LANES, pages


def test_dead_rows_behind_an_old_snapshot_are_skipped_in_each_lane(lean_kernel: Kernel, database: TestDatabase) -> None:
    """With 20,000 dead entries that no vacuum may remove, hints keep a claim as cheap as on a fresh table, although the
    loud lane lags behind the quiet one; without hints it pays for them.
    """
    fair(lean_kernel, LANES)
    loud, quiet = (tenant_in(lean_kernel, lane, LANES) for lane in (10, 20))
    old = database.connect()
    old.execute("set transaction isolation level repeatable read")
    old.execute("select count(*) from seapost.audit_records")
    append_of(lean_kernel, loud, 50)
    append_of(lean_kernel, quiet, 5)
    fresh, _ = pages_of(lean_kernel, lambda session: session.claim(limit=50, lease=LEASE))
    append_of(lean_kernel, loud, 20_000)
    lows: dict[int, datetime] = {}
    for _ in range(39):
        append_of(lean_kernel, quiet, 10)
        lows |= {claim.lane: claim.available_at for claim in lean_kernel.claim(limit=500, lease=LEASE)}
    assert lows[10] < lows[20]
    append_of(lean_kernel, quiet, 5)
    hints = [lows.get(lane) for lane in range(LANES)]
    hinted, _ = pages_of(lean_kernel, lambda session: session.claim(limit=50, lease=LEASE, low=hints))
    blind, _ = pages_of(lean_kernel, lambda session: session.claim(limit=50, lease=LEASE))
    old.rollback()
    assert hinted <= fresh * 1.1 + 50, (fresh, hinted, blind)
    assert blind >= hinted + 300, (fresh, hinted, blind)
