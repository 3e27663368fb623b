"""`delivery_claim_v1`: due deliveries of one destination, oldest first, leased and started in one statement."""

from __future__ import annotations

from datetime import timedelta
from typing import LiteralString

import pytest

from tests.kit import builders
from tests.kit.builders import BILLING, PLACED, SEARCH, SHIPPED
from tests.kit.clock import START, Clock
from tests.kit.database import TestDatabase
from tests.kit.kernel import Kernel, refused


@pytest.mark.req("CLM-01", "CLM-03", "STO-09", "STO-20", "AMB-24")
def test_a_claim_leases_and_starts_an_attempt_at_once(kernel: Kernel, clock: Clock) -> None:
    """Owner, token, deadline, attempt and count are set, and the immutable start carries the same attempt and token."""
    (event_id,) = kernel.append_new()
    claim = kernel.claim_one(lease=timedelta(seconds=20))
    assert kernel.row(
        "select status, lease_owner, lease_token, lease_expires_at, current_attempt_id, attempt_count, last_attempt_at,"
        " available_at, delivered_at from seapost.outbox_deliveries where event_id = %s",
        event_id,
    ) == (
        "leased",
        "worker",
        claim.fence.token,
        START + timedelta(seconds=20),
        claim.fence.attempt_id,
        1,
        clock.now,
        None,
        None,
    )
    assert kernel.rows(
        "select attempt_id, destination, event_id, lease_token, started_at, attempt_number, lease_owner"
        " from seapost.outbox_delivery_attempt_starts"
    ) == [(claim.fence.attempt_id, BILLING, event_id, claim.fence.token, START, 1, "worker")]


@pytest.mark.req("CLM-01", "STO-18", "SET-19")
def test_a_claim_brings_the_exact_bytes_their_digest_and_the_frozen_member(kernel: Kernel) -> None:
    """One round trip holds all that a delivery needs: envelope as appended, digest, member with the definition quad."""
    text = builders.envelope(SHIPPED)
    kernel.append(text)
    claim = kernel.claim_one(SEARCH)
    assert (claim.envelope, claim.event_digest) == (text, builders.digest(text))
    assert (claim.member.destination, claim.member.consumer_name) == (SEARCH, "search_consumer")
    assert claim.member.definition.digest == builders.digest(builders.definition()).hex()
    assert (claim.attempt_number, claim.failure_count, claim.lost_count, claim.company) == (1, 0, 0, 1)


@pytest.mark.req("CLM-02")
def test_claims_are_ordered_by_due_time_then_creation_then_id_and_bounded(kernel: Kernel, clock: Clock) -> None:
    """The oldest due time comes first whatever the order of appends; the limit is exact and the rest stays."""
    first, second = kernel.append_new(PLACED, 2)
    clock.advance(1)
    (third,) = kernel.append_new()
    kernel.retry(kernel.claim(limit=1)[0], delay=timedelta(seconds=5))
    clock.advance(10)
    assert [claim.fence.event_id for claim in kernel.claim(limit=2)] == [second, third]
    assert [claim.fence.event_id for claim in kernel.claim(limit=2)] == [first]


@pytest.mark.req("STO-25", "STO-27", "NEG-44", "AMB-25")
def test_only_a_due_pending_delivery_is_claimable(kernel: Kernel, clock: Clock) -> None:
    """Leased, expired but not recovered, postponed, acknowledged and quarantined deliveries are never handed out."""
    kernel.append_new(PLACED, 4)
    expired, postponed, done, isolated = kernel.claim()
    kernel.retry(postponed, delay=timedelta(seconds=1))
    kernel.acknowledge(done)
    kernel.quarantine(isolated)
    assert kernel.claim() == []
    clock.advance(0.999)
    assert kernel.claim() == []
    clock.advance(0.001)
    assert [c.fence.event_id for c in kernel.claim()] == [postponed.fence.event_id]
    clock.advance(3600)
    assert kernel.claim() == kernel.claim(suspects=True) == []
    assert kernel.recover() == {BILLING: 2}
    assert {c.fence.event_id for c in kernel.claim(suspects=True)} == {expired.fence.event_id, postponed.fence.event_id}


@pytest.mark.req("STO-14", "SET-35", "F23")
def test_a_destination_claims_only_its_own_deliveries(kernel: Kernel) -> None:
    """A queue of one destination never stands in the way of another; an unknown destination has nothing."""
    kernel.append_new(PLACED, 50)
    kernel.append_new(SHIPPED)
    assert [claim.member.destination for claim in kernel.claim(SEARCH, limit=10)] == [SEARCH]
    assert len(kernel.claim(BILLING)) == 51
    assert kernel.claim("nowhere") == []


@pytest.mark.req("CLM-08", "AMB-24", "F15")
def test_every_claim_has_a_new_attempt_and_a_new_token(kernel: Kernel) -> None:
    """Attempts are numbered from 1 without a gap, and neither attempt nor token ever comes back, even for one owner."""
    kernel.append_new()
    seen: set[object] = set()
    for number in range(1, 6):
        claim = kernel.claim_one()
        assert claim.attempt_number == number
        assert not seen & {claim.fence.attempt_id, claim.fence.token}
        seen |= {claim.fence.attempt_id, claim.fence.token}
        kernel.retry(claim)
    assert kernel.value("select attempt_count from seapost.outbox_deliveries") == 5


@pytest.mark.req("AMB-48", "STO-26")
def test_the_low_water_hint_only_skips_and_the_sweep_finds_everything(kernel: Kernel, clock: Clock) -> None:
    """A row that commits late with an old due time is invisible to a hinted claim and found by the next one without."""
    (late,) = kernel.append_new()
    clock.advance(10)
    (new,) = kernel.append_new()
    assert [c.fence.event_id for c in kernel.claim(low=clock.now)] == [new]
    assert kernel.claim(low=clock.now) == []
    assert [c.fence.event_id for c in kernel.claim()] == [late]


@pytest.mark.req("CLM-02", "F20")
def test_company_is_the_size_of_the_claim(kernel: Kernel) -> None:
    """Each claimed delivery knows how many were claimed with it, which decides whether a lost attempt counts."""
    kernel.append_new(PLACED, 5)
    assert [claim.company for claim in kernel.claim(limit=3)] == [3, 3, 3]
    assert [claim.company for claim in kernel.claim(limit=3)] == [2, 2]


@pytest.mark.req("CLM-04")
def test_an_uncommitted_claim_is_nobodys(kernel: Kernel, each_guard_database: TestDatabase) -> None:
    """A claim that rolls back leaves no start and no lease; the delivery is pending with no attempt counted."""
    kernel.append_new()
    worker = Kernel(each_guard_database.connect("dispatcher"))
    worker.claim_one()
    worker.connection.rollback()
    assert kernel.count("outbox_delivery_attempt_starts") == 0
    assert kernel.claim_one().attempt_number == 1


@pytest.mark.parametrize(
    "arguments",
    [
        "null, 1, 'w', interval '1 s'",
        "'billing', 0, 'w', interval '1 s'",
        "'billing', 10001, 'w', interval '1 s'",
        "'billing', null, 'w', interval '1 s'",
        "'billing', 1, null, interval '1 s'",
        "'billing', 1, 'w', interval '99 ms'",
        "'billing', 1, 'w', interval '25 hours'",
        "'billing', 1, 'w', null",
        "'billing', 1, 'w', interval 'infinity'",
    ],
)
def test_arguments_are_bounded(shared_lean: Kernel, arguments: LiteralString) -> None:
    """No destination, owner or lease is missing; batch and lease stay inside their limits."""
    if "infinity" in arguments and shared_lean.connection.info.server_version < 170000:
        pytest.skip("infinite intervals came with PostgreSQL 17")
    query = "select seapost.delivery_claim_v1(" + arguments + ")"
    with refused("SP013"):
        shared_lean.run(query)
