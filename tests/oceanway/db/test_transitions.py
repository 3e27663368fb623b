"""What a newer input changes after the finalization: bookings, exposures, cases, and the chain of their events."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING

import psycopg
import pytest

from tests.kit.oceanway.billing_settlement import Billing, running_billing

if TYPE_CHECKING:
    from seapost.testing.databases import TestDatabase
    from tests.kit.oceanway.billing_settlement_facts import Run

TRANSITION = "billing.settlement-transition.committed@1"
REQUESTED = "billing.late-settlement-exposure.case-requested@1"
RESOLVED = "billing.case-resolution.applied@1"


@pytest.fixture(scope="module")
def billing(billing_database: TestDatabase) -> Iterator[Billing]:
    """Give billing over a database of this module."""
    with running_billing(billing_database) as running:
        yield running


def finalized(billing: Billing, quantity: str = "3", **options: str) -> Run:
    """A run whose first input is settled and caught up."""
    run = billing.new_run(**options)
    billing.accept(run.measure(quantity))
    billing.finalize(run)
    billing.work()
    billing.require_settled(run)
    return run


@pytest.mark.req("APP-08", "CASE-31", "CASE-32", "CASE-28", "AMB-29")
def test_transitions_follow_each_other_without_a_gap(billing: Billing) -> None:
    """The first is caused by the finalization, each later one by the one before; revisions count from 1."""
    run = finalized(billing)
    for quantity in ("5", "2", "6"):
        billing.accept(run.measure(quantity))
        billing.work()
    events = [body for _, body in billing.events(run)]
    for before, after in pairwise(events):
        assert after["correlation"]["causationId"] == before["eventId"]
        assert after["payload"]["causationEventId"] == before["eventId"]
        assert after["payload"]["runStepId"] == "step-1"
    assert [body["aggregate"]["revision"] for body in events[1:]] == [1, 2, 3]
    assert [(body["payload"]["fromRevision"], body["payload"]["toRevision"]) for body in events[1:]] == [
        (0, 1),
        (1, 2),
        (2, 3),
    ]
    assert len({body["payload"]["validationOperationId"] for body in events[1:]}) == 3
    assert billing.available(run) == Decimal(94)


@pytest.mark.req("APP-09", "APP-12", "CASE-28")
def test_a_charge_that_the_account_does_not_cover_opens_a_case(billing: Billing) -> None:
    """Nothing is booked, the exposure is in the ledger, and the case is requested in the same transaction."""
    run = finalized(billing, funds="10", reserved="10")
    billing.accept(run.measure("12"))
    billing.work()
    billing.require_settled(run)
    state = billing.dimension(run)
    assert (state["exposure_state"], state["exposure_amount"], state["settled_amount"]) == ("open", 9, 3)
    assert billing.available(run) == Decimal(7)
    (_, _), (first, transition), (second, requested) = billing.events(run)
    assert (first, second) == (TRANSITION, REQUESTED)
    assert transition["payload"]["kind"] == "request_open"
    assert requested["payload"]["caseRef"] == state["exposure_case_ref"]
    assert requested["payload"]["exposureAmount"] == "9"
    assert requested["correlation"]["causationId"] == transition["eventId"]
    deliveries = billing.row(
        "select count(*) from seapost.delivery where event_id in (%s, %s)", transition["eventId"], requested["eventId"]
    )
    assert deliveries["count"] == 2


@pytest.mark.req("APP-10", "CASE-28")
@pytest.mark.parametrize(
    ("quantity", "funds", "kind", "settled", "exposure"),
    [
        ("14", "0", "adjust", 3, 11),
        ("11", "0", "adjust", 3, 8),
        ("12", "0", None, 3, 9),
        ("12", "50", "resolve", 12, 0),
        ("8", "0", "resolve", 8, 0),
        ("3", "0", "resolve", 3, 0),
        ("1", "0", "resolve", 1, 0),
    ],
)
def test_a_later_input_changes_or_ends_an_open_exposure(
    billing: Billing, quantity: str, funds: str, kind: str | None, settled: int, exposure: int
) -> None:
    """The exposure of 9 grows, shrinks, stays, is covered, disappears, or is even refunded."""
    run = finalized(billing, funds="10", reserved="10")
    billing.accept(run.measure("12"))
    billing.work()
    if funds != "0":
        billing.pay(run, funds)
    billing.accept(run.measure(quantity))
    billing.work()
    billing.require_settled(run)
    state = billing.dimension(run)
    assert (state["settled_amount"], state["exposure_amount"]) == (settled, exposure)
    assert billing.available(run) == 10 + Decimal(funds) - settled
    after = [(name, body["payload"].get("kind")) for name, body in billing.events(run)][3:]
    expected: list[tuple[str, str | None]] = [] if kind is None else [(TRANSITION, kind)]
    if kind == "resolve":
        expected.append((RESOLVED, None))
        assert state["exposure_state"] == "resolved"
    assert after == expected


@pytest.mark.req("NEG-27", "CAT-18", "CAT-17", "RCP-56")
def test_a_receipt_for_the_fence_books_nothing(billing: Billing) -> None:
    """Metering answers with the purpose of the fence: the worker refuses it, and so does the table."""
    run = finalized(billing)
    billing.accept(run.measure("5"))
    billing.peers.purpose = "billing_catch_up_fence"
    assert billing.catcher.step(1) == 1
    billing.peers.purpose = None
    assert billing.dimension(run)["state_revision"] == 0
    assert billing.catcher.waiting["receipt_differs"] >= 1
    billing.work()
    billing.require_settled(run)
    receipt = billing.row(
        "select current_validation_receipt_ref as ref from billing.validation_receipt"
        " where purpose = 'billing_catch_up_fence' and settlement_dimension_id = %s limit 1",
        run.dimension(),
    )
    billing.admin.execute("alter table billing.transition disable trigger transition_immutable")
    try:
        with pytest.raises(psycopg.errors.ForeignKeyViolation):
            billing.admin.execute(
                "update billing.transition set validation_receipt_ref = %s where settlement_dimension_id = %s",
                (receipt["ref"], run.dimension()),
            )
    finally:
        billing.admin.execute("alter table billing.transition enable trigger transition_immutable")
