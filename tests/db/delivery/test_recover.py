"""`delivery_recover_v1`: the only way back from an expired lease, and what becomes of suspects (F20)."""

from __future__ import annotations

from datetime import timedelta
from typing import LiteralString
from uuid import UUID

import pytest

from tests.kit.builders import BILLING, PLACED, SEARCH, SHIPPED
from tests.kit.clock import Clock
from tests.kit.kernel import Kernel, refused

SECOND = timedelta(seconds=1)


@pytest.mark.req("CLM-07", "CLM-08", "AMB-25", "AMB-24", "TST-27", "TST-28")
def test_recovery_finishes_the_old_attempt_and_makes_the_delivery_pending(kernel: Kernel, clock: Clock) -> None:
    """One call appends `lease_expired_unknown` and moves the delivery; count, error and creation time are kept."""
    (event_id,) = kernel.append_new()
    created = clock.now
    old = kernel.claim_one(lease=SECOND)
    clock.advance(1)
    assert kernel.recover(delay=timedelta(seconds=3)) == {BILLING: 1}
    assert kernel.row(
        "select status, created_at, available_at, attempt_count, last_error_code, lease_token, current_attempt_id"
        " from seapost.outbox_deliveries where event_id = %s",
        event_id,
    ) == ("pending", created, clock.now + timedelta(seconds=3), 1, "lease_expired", None, None)
    assert kernel.rows(
        "select attempt_id, finished_at, outcome, retry_disposition, normalized_error_code"
        " from seapost.outbox_delivery_attempt_finishes"
    ) == [(old.fence.attempt_id, clock.now, "lease_expired_unknown", "reclaimable", "lease_expired")]
    clock.advance(3)
    new = kernel.claim_one()
    assert new.attempt_number == 2
    assert new.fence.attempt_id != old.fence.attempt_id
    assert new.fence.token != old.fence.token


@pytest.mark.req("CLM-07", "F14", "F19")
def test_recovery_takes_exactly_what_has_expired(kernel: Kernel, clock: Clock) -> None:
    """A lease ends at its deadline, not a microsecond before; one that has time left stays."""
    kernel.append_new(PLACED, 2)
    (short,) = kernel.claim(limit=1, lease=SECOND)
    (long,) = kernel.claim(limit=1, lease=2 * SECOND)
    clock.advance(0.999999)
    assert kernel.recover() == {}
    clock.advance(0.000001)
    assert kernel.recover() == {BILLING: 1}
    assert (kernel.status(short.fence.event_id), kernel.status(long.fence.event_id)) == ("pending", "leased")


@pytest.mark.req("F15", "CLM-07")
def test_ownership_ends_by_lease_time_alone(kernel: Kernel, clock: Clock) -> None:
    """A restarted worker of the same name holds nothing of its predecessor, and no worker record decides anything."""
    kernel.append_new()
    kernel.claim(owner="pod-1", lease=SECOND)
    assert kernel.claim(owner="pod-1") == []
    clock.advance(1)
    assert kernel.recover() == {BILLING: 1}
    (claim,) = kernel.claim(owner="pod-1", suspects=True)
    assert claim.attempt_number == 2


@pytest.mark.req("CLM-07")
def test_recovery_is_bounded_and_counts_per_destination(kernel: Kernel, clock: Clock) -> None:
    """The oldest deadlines go first, at most the limit per call, over all destinations."""
    kernel.append_new(SHIPPED, 3)
    kernel.claim(BILLING, lease=SECOND)
    kernel.claim(SEARCH, lease=2 * SECOND)
    clock.advance(5)
    assert kernel.recover(limit=2) == {BILLING: 2}
    assert kernel.recover(limit=2) == {BILLING: 1, SEARCH: 1}
    assert kernel.recover(limit=2) == {SEARCH: 2}
    assert kernel.recover(limit=2) == {}


@pytest.mark.req("CLM-07", "STO-14")
def test_the_other_destination_of_the_same_event_is_left_alone(kernel: Kernel, clock: Clock) -> None:
    """Only the expired pair of event and destination moves."""
    kernel.append_new(SHIPPED)
    kernel.claim_one(BILLING, lease=SECOND)
    search = kernel.claim_one(SEARCH, lease=60 * SECOND)
    clock.advance(2)
    assert kernel.recover() == {BILLING: 1}
    assert kernel.acknowledge(search) == []


@pytest.mark.req("F20", "AMB-18")
def test_an_expired_attempt_counts_as_a_failure_only_when_the_delivery_was_alone(kernel: Kernel, clock: Clock) -> None:
    """Neighbours of a killed batch become suspects without a failure; a delivery claimed alone is charged."""
    kernel.append_new(PLACED, 3)
    kernel.claim(lease=SECOND)
    clock.advance(1)
    kernel.recover()
    rows = kernel.rows("select failure_count, lost_count from seapost.outbox_deliveries")
    assert rows == [(0, 1)] * 3
    kernel.claim(limit=8, lease=SECOND, suspects=True)
    clock.advance(1)
    kernel.recover()
    rows = kernel.rows("select failure_count, lost_count from seapost.outbox_deliveries order by available_at, 1")
    assert sorted(rows) == [(0, 1), (0, 1), (1, 2)]


@pytest.mark.req("F20")
def test_suspects_wait_apart_and_shrink_eight_fold(kernel: Kernel, clock: Clock) -> None:
    """A normal claim never takes a suspect; a suspects claim takes an eighth of the batch per lost attempt, at least
    one.
    """
    kernel.append_new(PLACED, 100)
    expected = [64, 8, 1, 1]
    for lost, size in enumerate(expected):
        claims = kernel.claim(limit=64, lease=SECOND, suspects=lost > 0)
        assert [c.lost_count for c in claims] == [lost] * size
        assert {c.company for c in claims} == {size}
        clock.advance(1)
        for claim in kernel.claim(limit=1000, suspects=True):
            assert claim.lost_count > 0
            kernel.acknowledge(claim)
        kernel.recover()
    assert len(kernel.claim(limit=1000)) == 36


@pytest.mark.req("F20", "STO-25")
def test_an_event_that_kills_its_worker_ends_up_alone_and_exhausts_nobody_else(kernel: Kernel, clock: Clock) -> None:
    """In batches of 64 a deadly event is charged five times while none of its 63 neighbours is charged once."""
    ids = kernel.append_new(PLACED, 64)
    deadly = ids[20]
    failures: dict[UUID, int] = {}
    for _ in range(200):
        claims = kernel.claim(limit=64, lease=SECOND) or kernel.claim(limit=64, lease=SECOND, suspects=True)
        failures |= {claim.fence.event_id: claim.failure_count for claim in claims}
        if claims and claims[0].failure_count == 5:
            kernel.quarantine(*claims, code="policy_max_attempts")
            break
        if deadly not in [claim.fence.event_id for claim in claims]:
            kernel.acknowledge(*claims)
        clock.advance(1)
        kernel.recover()
    statuses = dict(kernel.rows("select event_id, status from seapost.outbox_deliveries"))
    assert statuses.pop(deadly) == "quarantined"
    assert set(statuses.values()) == {"acknowledged"}
    assert failures.pop(deadly) == 5
    assert set(failures.values()) == {0}


@pytest.mark.req("F20")
def test_a_suspect_that_is_not_due_yet_is_not_claimed(kernel: Kernel, clock: Clock) -> None:
    """Suspects keep their due time like everybody else."""
    kernel.append_new()
    kernel.claim_one(lease=SECOND)
    clock.advance(1)
    kernel.recover(delay=SECOND)
    assert kernel.claim(suspects=True) == []
    clock.advance(1)
    assert len(kernel.claim(suspects=True)) == 1


@pytest.mark.parametrize("arguments", ["0", "10001", "null", "1, null", "1, interval '-1 s'", "1, interval '25 hours'"])
def test_arguments_are_bounded(shared_lean: Kernel, arguments: LiteralString) -> None:
    """The batch is 1 to 10,000 and the delay 0 to one day."""
    query = "select * from seapost.delivery_recover_v1(" + arguments + ")"  # noqa: S608 - literals
    with refused("SP013"):
        shared_lean.run(query)
