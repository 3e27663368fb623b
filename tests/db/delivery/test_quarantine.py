"""`delivery_quarantine_v1`: what cannot be processed is isolated in sight, for good, and never passed off as done."""

from __future__ import annotations

from datetime import timedelta

import pytest

from seapost.model.outcome import NON_RETRYABLE_CODES, ErrorCode
from tests.kit.builders import BILLING, PLACED, SHIPPED
from tests.kit.clock import Clock
from tests.kit.kernel import Kernel, refused

ACCEPTED = {*NON_RETRYABLE_CODES, ErrorCode.POLICY_MAX_ATTEMPTS}


@pytest.mark.req("DLV-05", "DLV-13", "STO-11", "STO-16", "STO-23", "REF-08")
def test_quarantine_is_a_state_with_reason_and_digest(kernel: Kernel, clock: Clock) -> None:
    """Finish, state and quarantine row appear together; the event and its bytes stay untouched."""
    (event_id,) = kernel.append_new()
    claim = kernel.claim_one()
    assert kernel.quarantine(claim, code="schema_unknown", reference="log-9") == []
    assert kernel.rows("select * from seapost.outbox_quarantine") == [
        (
            BILLING,
            event_id,
            "schema_unknown",
            "log-9",
            "jcs-sha256-v1",
            claim.event_digest.hex(),
            clock.now,
            None,
            None,
            claim.fence.attempt_id,
        )
    ]
    assert kernel.row(
        "select status, last_error_code, last_error_ref, current_attempt_id, delivered_at, ack_receipt_key"
        " from seapost.outbox_deliveries"
    ) == ("quarantined", "schema_unknown", "log-9", claim.fence.attempt_id, None, None)
    assert kernel.row(
        "select outcome, retry_disposition, normalized_error_code from seapost.outbox_delivery_attempt_finishes"
    ) == ("non_retryable", "quarantined", "schema_unknown")


@pytest.mark.req("STO-23", "STO-27", "RTY-06")
def test_quarantine_is_terminal(kernel: Kernel, clock: Clock) -> None:
    """No time, no recovery and no claim brings an isolated delivery back; its neighbours go on."""
    kernel.append_new(PLACED, 2)
    bad, good = kernel.claim()
    kernel.quarantine(bad)
    clock.advance(10**7)
    assert kernel.recover() == {BILLING: 1}
    assert [c.fence.event_id for c in kernel.claim(suspects=True)] == [good.fence.event_id]
    assert kernel.status(bad.fence.event_id) == "quarantined"


@pytest.mark.req("STO-14", "SET-35")
def test_each_destination_isolates_for_itself(kernel: Kernel) -> None:
    """The other destination of the same event still gets it."""
    (event_id,) = kernel.append_new(SHIPPED)
    kernel.quarantine(kernel.claim_one(BILLING))
    assert kernel.acknowledge(kernel.claim_one("search")) == []
    assert (kernel.status(event_id, BILLING), kernel.status(event_id, "search")) == ("quarantined", "acknowledged")


@pytest.mark.req("DLV-05", "REF-07", "STO-24", "AMB-18")
@pytest.mark.parametrize("code", [*ErrorCode, "dead_letter", ""])
def test_only_closed_reasons_are_accepted(kernel: Kernel, code: str) -> None:
    """The non-retryable codes and the configured maximum are reasons; everything else is refused and the lease
    stays.
    """
    kernel.append_new()
    claim = kernel.claim_one(lease=timedelta(seconds=1))
    if code in ACCEPTED:
        assert kernel.quarantine(claim, code=str(code)) == []
    else:
        with refused("SP013", "p_codes"):
            kernel.quarantine(claim, code=str(code))
        assert kernel.status(claim.fence.event_id) == "leased"


@pytest.mark.req("CLM-05", "DLV-13")
def test_a_batch_isolates_the_held_ones_and_names_the_stale(kernel: Kernel) -> None:
    """A stale claim in the batch is named and changes nothing; the rest is isolated."""
    kernel.append_new(PLACED, 3)
    claims = kernel.claim()
    kernel.retry(claims[0])
    assert kernel.quarantine(*claims) == [(claims[0].fence.event_id, claims[0].fence.attempt_id, "stale")]
    assert [kernel.status(c.fence.event_id) for c in claims] == ["pending", "quarantined", "quarantined"]
