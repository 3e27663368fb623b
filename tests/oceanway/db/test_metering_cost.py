"""How cost works end on a real database: booked, processed without a fact, or blocked until a repair."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from oceanway.metering.provider_cost import AVAILABILITY, ROUTE
from tests.kit.database import TestDatabase
from tests.kit.oceanway.metering import Metering, running_metering
from tests.kit.oceanway.metering_facts import COST, conflict_quad

BOOTSTRAP = "readGatewaySourceEvent"


@pytest.fixture(scope="module")
def metering(metering_database: TestDatabase) -> Iterator[Metering]:
    """Give one metering to all tests here; every test has attempts of its own."""
    with running_metering(metering_database) as bench:
        yield bench


@pytest.mark.req("MTR-31", "RCP-27", "REF-31", "REF-30")
def test_available_cost_is_booked_with_both_receipts(metering: Metering) -> None:
    """Fact, receipts, processing and finish belong together."""
    attempt = metering.costly()
    metering.work()
    [fact] = metering.documents("provider_cost_fact", attempt)
    [processing] = metering.documents("cost_processing", attempt)
    outcome = processing["outcome"]
    assert (fact["amount"], fact["currency"], outcome["providerCostFactDigest"]) == (
        "1.25",
        "EUR",
        fact["providerCostFactDigest"],
    )
    rows = metering.admin.execute(
        "select purpose from metering.validation_receipt where current_validation_receipt_ref = any (%s) order by 1",
        ([outcome["availabilityValidationReceiptRef"], outcome["routeValidationReceiptRef"]],),
    ).fetchall()
    assert rows == [(AVAILABILITY,), (ROUTE,)]
    state = metering.lane(attempt, "spend")["coordination_state"]
    assert state["providerCostAvailabilityProcessingDigest"] == processing["providerCostAvailabilityProcessingDigest"]
    metering.check()


@pytest.mark.req("MTR-32", "MTR-33", "MTR-34", "MTR-35", "RCP-27", "AMB-10", "AMB-22")
@pytest.mark.parametrize(
    ("state", "lane"),
    [
        ("pending", "waiting_for_evidence"),
        ("not_reported", "no_cost_evidence"),
        ("unavailable", "no_cost_evidence"),
        ("conflicting", "reconciliation_required"),
    ],
)
def test_cost_without_evidence_is_processed_without_a_fact_and_a_later_event_resumes(
    metering: Metering, state: str, lane: str
) -> None:
    """Nothing is validated, and nothing is a cost of zero."""
    attempt = metering.new_attempt()
    metering.accept(attempt.report(COST, "spend", state))
    metering.work()
    assert metering.lane(attempt, "spend")["state"] == lane
    assert metering.documents("provider_cost_fact", attempt) == []
    subjects = [one[2].get("subject", {}) for one in metering.peers.asked]
    assert not [one for one in subjects if one.get("executionAttemptId") == attempt.ref]
    metering.accept(attempt.report(COST, "spend", "available", "2"))
    metering.work()
    assert metering.lane(attempt, "spend")["state"] == "availability_processed"
    assert [one["outcome"]["state"] for one in metering.documents("work_finish", attempt)] == [
        "availability_processed"
    ] * 2
    metering.check()


COST_CONFLICTS = [
    (BOOTSTRAP, "gatewayEvidenceConflictFact", "gateway_owner_conflict"),
    (BOOTSTRAP, "gatewayBindingConflictFact", "gateway_binding_owner_conflict"),
    ("validateGatewayRouteCurrent", "gatewayBindingConflictFact", "gateway_binding_owner_conflict"),
]


@pytest.mark.req("MTR-17", "MTR-22", "MTR-36", "MTR-38", "RCP-26")
@pytest.mark.parametrize(("read", "fact", "kind"), COST_CONFLICTS)
def test_an_owners_conflict_blocks_a_cost_lane_through_its_evidence(
    metering: Metering, read: str, fact: str, kind: str
) -> None:
    """The record knows one cause; the evidence says whose."""
    attempt = metering.costly()
    metering.peers.conflicting[attempt.ref, read] = conflict_quad(fact)
    metering.work()
    assert metering.lane(attempt, "spend")["state"] == "blocked_on_processing_conflict"
    [record] = metering.documents("work_blocked", attempt)
    [evidence] = metering.documents("cost_conflict_evidence", attempt)
    assert record["blockingCause"]["kind"] == "provider_cost_processing_conflict"
    assert evidence["cause"] == {"kind": kind, **conflict_quad(fact)}
    metering.peers.conflicting.clear()
    metering.work()
    assert metering.lane(attempt, "spend")["state"] == "availability_processed"
    metering.check()


@pytest.mark.req("MTR-36", "MTR-37", "RCP-31")
def test_other_content_for_known_evidence_is_a_conflict_of_the_repository(metering: Metering) -> None:
    """The same evidence with another mapping: the first fact stands, and the lane is blocked."""
    attempt = metering.costly("8")
    metering.work()
    metering.accept(attempt.report(COST, "spend", "available", "8"))
    mapping = {**attempt.route["costDimensions"][0], "costMappingVersion": "2"}
    metering.peers.changes = {(attempt.ref, BOOTSTRAP): {"routeCostBinding": mapping}}
    metering.work()
    [evidence] = metering.documents("cost_conflict_evidence", attempt)
    assert evidence["cause"]["validationStage"] == "provider_cost_repository"
    assert len(metering.documents("provider_cost_fact", attempt)) == 1
    metering.peers.changes.clear()
    metering.work()
    assert metering.lane(attempt, "spend")["state"] == "availability_processed"
    assert len(metering.documents("cost_processing", attempt)) == 2
    metering.check()
