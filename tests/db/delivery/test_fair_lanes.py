"""Fair lanes: one tenant's backlog postpones the others by a bounded number of claims (F23)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta

import pytest

from seapost.model.delivery import Claim
from tests.kit.builders import BILLING, SEARCH, SHIPPED
from tests.kit.clock import Clock
from tests.kit.database import TestDatabase
from tests.kit.kernel import Kernel, opened
from tests.kit.tenants import append_of, fair, of_tenant, tenant_in

pytestmark = pytest.mark.req("CLM-01", "F23")

SECOND = timedelta(seconds=1)


def _lanes(claims: Sequence[Claim]) -> Counter[int]:
    """How many claims came from each lane."""
    return Counter(claim.lane for claim in claims)


def _backlogs(kernel: Kernel, lanes: int, backlogs: dict[int, int]) -> None:
    """Events of one tenant per lane."""
    for lane, count in backlogs.items():
        append_of(kernel, tenant_in(kernel, lane, lanes), count)


def test_one_event_behind_a_long_backlog_comes_with_the_first_claim(database: TestDatabase) -> None:
    """Tenant A has 20,000 events waiting when tenant B appends one: the next claim brings it, in a full batch."""
    with opened(database) as kernel:
        fair(kernel, 64)
        append_of(kernel, tenant_in(kernel, 7, 64), 20_000)
        (lone,) = append_of(kernel, tenant_in(kernel, 40, 64))
        claims = kernel.claim(limit=500)
        assert len(claims) == 500
        assert lone in {claim.fence.event_id for claim in claims}


def test_without_lanes_it_waits_for_its_turn(kernel: Kernel) -> None:
    """One queue is first in, first out: what fair lanes are for."""
    append_of(kernel, "loud", 1_000)
    (lone,) = append_of(kernel, "quiet")
    for _ in range(10):
        assert lone not in {claim.fence.event_id for claim in kernel.claim(limit=100)}
    assert [claim.fence.event_id for claim in kernel.claim(limit=100)] == [lone]


def test_each_lane_gets_its_share_and_the_rest_goes_to_who_has_more(kernel: Kernel) -> None:
    """Of sixty, the lane with three gives three, the two that have more share the other fifty-seven."""
    fair(kernel, 4)
    _backlogs(kernel, 4, {0: 100, 1: 3, 3: 50})
    assert _lanes(kernel.claim(limit=60)) == {0: 29, 1: 3, 3: 28}
    assert _lanes(kernel.claim(limit=60)) == {0: 38, 3: 22}
    assert _lanes(kernel.claim(limit=60)) == {0: 33}
    assert kernel.claim(limit=60) == []


def test_a_claim_smaller_than_the_lanes_goes_round(kernel: Kernel) -> None:
    """With batches of two and five lanes waiting, three claims serve them all when each begins where the last ended."""
    fair(kernel, 8)
    _backlogs(kernel, 8, dict.fromkeys((0, 2, 3, 5, 7), 4))
    assert _lanes(kernel.claim(limit=2, first_lane=0)) == {0: 1, 2: 1}
    assert _lanes(kernel.claim(limit=2, first_lane=3)) == {3: 1, 5: 1}
    assert _lanes(kernel.claim(limit=2, first_lane=6)) == {7: 1, 0: 1}
    assert _lanes(kernel.claim(limit=1, first_lane=8)) == {0: 1}


def test_within_a_lane_the_oldest_comes_first(kernel: Kernel, clock: Clock) -> None:
    """Shares are taken from the head of each lane, and a claim lists what it took from old to new."""
    fair(kernel, 2)
    tenants = [tenant_in(kernel, lane, 2) for lane in (0, 1)]
    ids: list[list[object]] = [[], []]
    for _ in range(3):
        for lane, tenant in enumerate(tenants):
            ids[lane] += append_of(kernel, tenant)
            clock.advance(1)
    claims = kernel.claim(limit=4)
    assert [claim.available_at for claim in claims] == sorted(claim.available_at for claim in claims)
    for lane in (0, 1):
        assert [claim.fence.event_id for claim in claims if claim.lane == lane] == ids[lane][:2]


def test_a_hint_holds_for_its_lane_only(kernel: Kernel, clock: Clock) -> None:
    """What lies below the hint of another lane is found; a lane without a hint is looked at from its start."""
    fair(kernel, 3)
    start = clock.now
    _backlogs(kernel, 3, {0: 1, 1: 1, 2: 1})
    clock.advance(10)
    _backlogs(kernel, 3, {0: 1})
    assert _lanes(kernel.claim(low=[clock.now, start])) == {0: 1, 1: 1, 2: 1}
    assert _lanes(kernel.claim(low=[clock.now, clock.now, clock.now])) == {}
    assert _lanes(kernel.claim(low=[clock.now, None])) == {}
    assert _lanes(kernel.claim()) == {0: 1}


def test_what_comes_back_waits_in_its_lane(kernel: Kernel, clock: Clock) -> None:
    """A retried and a recovered delivery keep their tenant's lane, and suspects are shared fairly, too."""
    fair(kernel, 4)
    append_of(kernel, tenant_in(kernel, 2, 4), 40)
    retried, *lost = kernel.claim(limit=40, lease=SECOND)
    assert kernel.retry(retried) == []
    append_of(kernel, tenant_in(kernel, 3, 4), 1)
    assert _lanes(kernel.claim(limit=10, lease=SECOND)) == {2: 1, 3: 1}
    clock.advance(1)
    assert kernel.recover() == {BILLING: len(lost) + 2}
    assert _lanes(kernel.claim(limit=32, suspects=True)) == {2: 3, 3: 1}


@pytest.mark.parametrize("steps", [(64, 1), (64, 3), (1, 64), (3, 64, 5)], ids=str)
def test_changing_the_lanes_loses_nothing(kernel: Kernel, steps: tuple[int, ...]) -> None:
    """Events keep the lane they were appended to, and claims look at every lane there ever was."""
    ids: set[object] = set()
    for lanes in steps:
        fair(kernel, lanes)
        for tenant in range(20):
            ids.update(append_of(kernel, f"tenant-{tenant}"))
    found: set[object] = set()
    while claims := kernel.claim(limit=7):
        found.update(claim.fence.event_id for claim in claims)
    assert found == ids


def test_an_append_with_an_older_snapshot_is_claimed(kernel: Kernel, each_guard_database: TestDatabase) -> None:
    """A REPEATABLE READ producer that saw 64 lanes still writes into them after there is one: a claim finds it."""
    fair(kernel, 64)
    producer = Kernel(each_guard_database.connect())
    producer.run("set transaction isolation level repeatable read")
    assert producer.value("select fair_lanes from seapost.destination_settings") == 64
    fair(kernel, 1)
    (event_id,) = append_of(producer, tenant_in(kernel, 63, 64))
    producer.connection.commit()
    (claim,) = kernel.claim()
    assert (claim.fence.event_id, claim.lane) == (event_id, 63)


def test_a_tenant_has_one_lane_however_it_appends(kernel: Kernel) -> None:
    """One event at a time or many, a tenant's events wait in the same lane; its kind tells two of a name apart."""
    fair(kernel, 256)
    for tenant in ("one", "two", "three"):
        append_of(kernel, tenant)
        append_of(kernel, tenant, 2)
        assert len({claim.lane for claim in kernel.claim()}) == 1
    hashes = {
        kernel.value("select seapost.delivery_tenant_hash(%s)", of_tenant("one").replace(b'"organization"', kind))
        for kind in (b'"organization"', b'"user"')
    }
    assert len(hashes) == 2


def test_lanes_belong_to_one_destination(kernel: Kernel) -> None:
    """The other destination of the same event keeps its single queue."""
    fair(kernel, 64)
    tenant = tenant_in(kernel, 9, 64)
    append_of(kernel, tenant, 2, event_type=SHIPPED)
    append_of(kernel, tenant, 1, event_type=SHIPPED)
    assert _lanes(kernel.claim()) == {9: 3}
    assert _lanes(kernel.claim(SEARCH)) == {0: 3}
