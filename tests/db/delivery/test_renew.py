"""`delivery_renew_v1`: what still runs keeps its lease; equality of attempt and token decides."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.kit.builders import BILLING, PLACED
from tests.kit.clock import Clock
from tests.kit.kernel import Kernel, refused

SECOND = timedelta(seconds=1)


@pytest.mark.req("CLM-05", "F14", "F19")
def test_a_renewal_counts_from_the_databases_now(kernel: Kernel, clock: Clock) -> None:
    """The new deadline is the clock's now plus the lease; attempt, token and count stay as they were."""
    kernel.append_new()
    claim = kernel.claim_one(lease=SECOND)
    before = kernel.row("select lease_token, current_attempt_id, attempt_count from seapost.outbox_deliveries")
    clock.advance(0.5)
    assert kernel.renew(claim, lease=timedelta(seconds=9)) == {claim.fence.event_id}
    assert kernel.value("select lease_expires_at from seapost.outbox_deliveries") == clock.now + timedelta(seconds=9)
    assert kernel.row("select lease_token, current_attempt_id, attempt_count from seapost.outbox_deliveries") == before


@pytest.mark.req("F14")
def test_a_renewed_lease_is_not_recovered(kernel: Kernel, clock: Clock) -> None:
    """Work longer than its lease stays with its worker as long as that renews."""
    kernel.append_new()
    claim = kernel.claim_one(lease=SECOND)
    for _ in range(5):
        clock.advance(0.9)
        assert kernel.renew(claim, lease=SECOND) == {claim.fence.event_id}
        assert kernel.recover() == {}
    assert kernel.acknowledge(claim) == []


@pytest.mark.req("AMB-06")
def test_an_expired_lease_may_be_renewed_until_it_is_recovered(kernel: Kernel, clock: Clock) -> None:
    """Only recovery reads the clock: before it a late renewal holds, after it the lease is lost."""
    kernel.append_new()
    claim = kernel.claim_one(lease=SECOND)
    clock.advance(60)
    assert kernel.renew(claim, lease=SECOND) == {claim.fence.event_id}
    clock.advance(60)
    kernel.recover()
    assert kernel.renew(claim, lease=SECOND) == set()


@pytest.mark.req("CLM-05")
def test_a_batch_renews_what_is_held_and_leaves_out_the_rest(kernel: Kernel) -> None:
    """Finished deliveries are missing from the answer, which is how the worker learns that they are lost."""
    kernel.append_new(PLACED, 4)
    claims = kernel.claim()
    kernel.acknowledge(claims[0])
    kernel.retry(claims[1])
    assert kernel.renew(*claims) == {claims[2].fence.event_id, claims[3].fence.event_id}


@pytest.mark.parametrize("lease", ["99 ms", "25 hours", "-1 s"])
def test_leases_are_bounded(kernel: Kernel, lease: str) -> None:
    """A lease is 100 milliseconds to one day."""
    with refused("SP013", "p_lease"):
        kernel.rows("select seapost.delivery_renew_v1(%s, '{}', '{}', '{}', %s::interval)", BILLING, lease)
    with refused("SP013", "parallel"):
        kernel.rows("select seapost.delivery_renew_v1(%s, '{}', '{1}', '{}', interval '1 s')", BILLING)
