"""`delivery_retry_v1`: the attempt ends as retryable, and the delivery is pending again after its delay."""

from __future__ import annotations

from datetime import timedelta

import pytest

from seapost.model.outcome import NON_RETRYABLE_CODES, RETRYABLE_CODES, ErrorCode
from tests.kit.builders import BILLING, PLACED
from tests.kit.clock import Clock
from tests.kit.kernel import Kernel, refused


@pytest.mark.req("DLV-04", "DLV-13", "STO-21", "STO-24", "STO-15", "AMB-24")
def test_a_retry_finishes_the_attempt_and_postpones_the_delivery(kernel: Kernel, clock: Clock) -> None:
    """`retryable` is an outcome, not a state: the delivery is pending, due after the delay, with the error in sight."""
    (event_id,) = kernel.append_new()
    claim = kernel.claim_one()
    clock.advance(1)
    assert kernel.retry(claim, delay=timedelta(minutes=5), code="capacity_protected", reference="log-7") == []
    assert kernel.row(
        "select status, available_at, attempt_count, failure_count, lost_count, last_error_code, last_error_ref,"
        " current_attempt_id, lease_token, lease_owner from seapost.outbox_deliveries where event_id = %s",
        event_id,
    ) == (
        "pending",
        clock.now + timedelta(minutes=5),
        1,
        1,
        0,
        "capacity_protected",
        "log-7",
        None,
        None,
        None,
    )
    assert kernel.rows(
        "select attempt_id, finished_at, outcome, retry_disposition, normalized_error_code, sanitized_error_ref"
        " from seapost.outbox_delivery_attempt_finishes"
    ) == [(claim.fence.attempt_id, clock.now, "retryable", "scheduled", "capacity_protected", "log-7")]


@pytest.mark.req("STO-15", "DLV-15")
def test_every_error_stays_on_record(kernel: Kernel, clock: Clock) -> None:
    """The view shows the last error; the finishes keep each one, so overwriting loses nothing."""
    kernel.append_new()
    for code in ("timeout", "revision_gap", "dependency_unavailable"):
        kernel.retry(kernel.claim_one(), code=code)
        clock.advance(1)
    assert kernel.rows(
        "select normalized_error_code from seapost.outbox_delivery_attempt_finishes order by attempt_id"
    ) == [("timeout",), ("revision_gap",), ("dependency_unavailable",)]
    assert kernel.value("select last_error_code from seapost.outbox_deliveries") == "dependency_unavailable"


@pytest.mark.req("AMB-18", "F20")
@pytest.mark.parametrize(
    ("counted", "lost", "company", "failures", "losses"),
    [
        (True, False, 1, 1, 0),
        (False, False, 1, 0, 0),
        (True, True, 1, 1, 1),
        (True, True, 2, 0, 1),
        (True, False, 2, 1, 0),
        (False, True, 1, 0, 1),
    ],
)
def test_what_counts_towards_a_maximum(
    kernel: Kernel, *, counted: bool, lost: bool, company: int, failures: int, losses: int
) -> None:
    """An uncounted finish never exhausts a maximum, and an end without an answer counts only for a delivery sent
    alone.
    """
    kernel.append_new(PLACED, company)
    kernel.retry(*kernel.claim(), counted=counted, lost=lost)
    rows = kernel.rows("select failure_count, lost_count from seapost.outbox_deliveries")
    assert rows == [(failures, losses)] * company


@pytest.mark.req("F20")
def test_an_answer_clears_the_suspicion(kernel: Kernel) -> None:
    """A delivery that was lost twice and then answered is no suspect any more; its failures stay counted."""
    kernel.append_new()
    kernel.retry(kernel.claim_one(), lost=True)
    kernel.retry(kernel.claim_one(), lost=True)
    assert kernel.claim() == []
    kernel.retry(kernel.claim_one())
    (claim,) = kernel.claim()
    assert (claim.attempt_number, claim.failure_count, claim.lost_count) == (4, 3, 0)


@pytest.mark.req("F26")
def test_delays_are_bounded(kernel: Kernel) -> None:
    """A negative delay and one beyond thirty days are refused; both ends are accepted."""
    kernel.append_new()
    claim = kernel.claim_one()
    for delay in (timedelta(microseconds=-1), timedelta(days=30, microseconds=1)):
        with refused("SP013", "p_delays"):
            kernel.retry(claim, delay=delay)
    assert kernel.retry(claim, delay=timedelta(days=30)) == []


@pytest.mark.req("REF-07", "STO-24")
@pytest.mark.parametrize("code", [*ErrorCode, "", "retryable", "TIMEOUT"])
def test_only_retryable_codes_are_accepted(kernel: Kernel, code: str) -> None:
    """The codes are closed: each retryable one is stored, any other is refused and the lease stays."""
    kernel.append_new()
    claim = kernel.claim_one()
    if code in RETRYABLE_CODES:
        assert kernel.retry(claim, code=str(code)) == []
    else:
        with refused("SP013", "p_codes"):
            kernel.retry(claim, code=str(code))
        assert kernel.status(claim.fence.event_id) == "leased"
    assert not RETRYABLE_CODES & NON_RETRYABLE_CODES


@pytest.mark.req("REF-07", "STO-10")
@pytest.mark.parametrize("reference", ["", "x" * 65, "two words", "<script>", "order-1\n", "straße"])
def test_a_reference_cannot_carry_text(kernel: Kernel, reference: str) -> None:
    """The sanitized reference is a short opaque key; anything that could hold data or markup is refused whole."""
    kernel.append_new()
    claim = kernel.claim_one()
    for verb in (kernel.retry, kernel.quarantine):
        with refused("23514"):
            verb(claim, reference=reference)
    assert kernel.retry(claim, reference="A-z_0" + "9" * 59) == []


@pytest.mark.req("CLM-05", "DLV-13")
def test_a_batch_moves_the_held_ones_and_names_the_stale(kernel: Kernel) -> None:
    """Each delivery has its own delay and code; a stale one falls out alone."""
    kernel.append_new(PLACED, 3)
    claims = kernel.claim()
    kernel.acknowledge(claims[1])
    rows = kernel.rows(
        "select * from seapost.delivery_retry_v1(%s, %s, %s, %s, array[interval '1 s', '2 s', '3 s'],"
        " array['timeout', 'timeout', 'owner_unreadable'], array[null, null, 'x'], array[true, true, false],"
        " array[false, false, false])",
        BILLING,
        [c.fence.event_id for c in claims],
        [c.fence.attempt_id for c in claims],
        [c.fence.token for c in claims],
    )
    assert rows == [(claims[1].fence.event_id, claims[1].fence.attempt_id, "stale")]
    assert kernel.rows(
        "select last_error_code, last_error_ref, failure_count from seapost.outbox_deliveries"
        " where status = 'pending' order by available_at"
    ) == [("timeout", None, 1), ("owner_unreadable", "x", 0)]


@pytest.mark.req("TST-31")
def test_a_delivery_twice_in_one_call_rolls_the_call_back(kernel: Kernel) -> None:
    """Two finishes for one start are impossible, even inside one call."""
    kernel.append_new()
    claim = kernel.claim_one()
    for verb in (kernel.retry, kernel.quarantine):
        with refused("23505"):
            verb(claim, claim)
    assert (kernel.status(claim.fence.event_id), kernel.count("outbox_delivery_attempt_finishes")) == ("leased", 0)
