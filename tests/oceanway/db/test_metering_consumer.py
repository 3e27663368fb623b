"""What the consumer of metering accepts, what it puts off, and what it refuses for good."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from oceanway.contracts.errors import OwnerConflict
from oceanway.metering import store
from seapost.contracts.canonical import encode
from tests.kit.database import TestDatabase
from tests.kit.oceanway.metering import Metering, running_metering
from tests.kit.oceanway.metering_consumer import codes
from tests.kit.oceanway.metering_facts import COST, USAGE, Told, new_attempt

MANIFEST = "readAttemptExecutionManifest"


@pytest.fixture(scope="module")
def metering(metering_database: TestDatabase) -> Iterator[Metering]:
    """Give one metering to all tests here; every test has attempts of its own."""
    with running_metering(metering_database) as bench:
        yield bench


def receipts_of(metering: Metering, told: Told) -> int:
    """How many receipts an event has."""
    row = metering.admin.execute(
        "select count(*) from seapost.inbox_receipt where event_id = %s", (told.event_id,)
    ).fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.req("RCP-12", "RCP-13", "RCP-15", "RCP-22", "RCP-23", "MTR-01", "MTR-02")
def test_an_eligibility_event_is_accepted_with_a_receipt_that_freezes_its_lane(metering: Metering) -> None:
    """The source repeats the event, the lane names the work of the first generation."""
    attempt = metering.new_attempt()
    told = attempt.end()
    receipt = metering.receipt(told)
    payload = json.loads(told.envelope)["payload"]
    source = {name: value for name, value in receipt["source"].items() if name in payload}
    assert source == payload
    assert receipt["source"]["kind"] == "execution_eligibility"
    [work] = metering.documents("work", attempt)
    lane = receipt["lane"]
    assert (lane["eligibilityFenceRevision"], lane["latestEligibilityWorkGeneration"]) == (1, 1)
    assert lane["eligibilityTriggerDigest"] == work["laneTriggerDigest"]
    assert lane["coordinationState"]["activeWork"]["meteringInputWorkDigest"] == work["meteringInputWorkDigest"]
    assert receipt["outcome"] == "advanced"


@pytest.mark.req("RCP-16", "RCP-17", "RCP-31", "MTR-04")
def test_usage_and_cost_have_receipts_of_their_own_lanes(metering: Metering) -> None:
    """Revisions and generations of the two are never mixed."""
    attempt = metering.new_attempt()
    metering.accept(attempt.end())
    usage = metering.receipt(attempt.report(USAGE, "tokens", "available"))
    cost = metering.receipt(attempt.report(COST, "spend", "not_reported"))
    assert (usage["lane"]["kind"], usage["lane"]["eligibilityFenceRevision"]) == ("eligibility_and_settlement_input", 2)
    assert (cost["lane"]["kind"], cost["lane"]["providerCostFenceRevision"]) == ("provider_cost", 1)
    assert (cost["lane"]["gatewayDeploymentId"], cost["lane"]["sourceEvidenceDimensionKey"]) == (
        "deployment-1",
        "spend",
    )
    metering.work()


@pytest.mark.req("RCP-22", "RCP-24", "RCP-25", "RCP-26", "RCP-27", "RCP-29", "RCP-33", "AMB-08", "TST-17")
@pytest.mark.parametrize(
    ("state", "usage", "cost"),
    [
        ("pending", "waiting_for_gateway_usage", "waiting_for_evidence"),
        ("available", "applied", "availability_processed"),
        ("conflicting", "blocked_on_owner_conflict", "reconciliation_required"),
        ("unavailable", "applied", "no_cost_evidence"),
    ],
)
def test_an_old_revision_is_observed_already_with_the_lane_as_it_stands(
    metering: Metering, state: str, usage: str, cost: str
) -> None:
    """Every state of a lane can stand in a receipt, and the receipt binds what it rests on."""
    attempt = metering.new_attempt()
    old = [attempt.report(USAGE, "tokens", "pending"), attempt.report(COST, "spend", "pending")]
    new = [attempt.report(USAGE, "tokens", state), attempt.report(COST, "spend", state)]
    metering.accept(attempt.end(), *new)
    metering.work()
    lanes: list[dict[str, Any]] = []
    for told, dimension in zip(old, (None, "spend"), strict=True):
        receipt = metering.receipt(told)
        assert receipt["outcome"] == "already_observed"
        lanes.append(receipt["lane"]["coordinationState"])
        assert receipt["lane"]["coordinationState"] == metering.lane(attempt, dimension)["coordination_state"]
    assert [lane["state"] for lane in lanes] == [usage, cost]
    metering.retire(attempt)
    metering.check()


@pytest.mark.req("MTR-06", "NEG-17", "NEG-46", "AMB-35")
def test_an_unreadable_owner_or_a_missing_manifest_is_retryable_and_leaves_nothing(metering: Metering) -> None:
    """Neither receipt nor fence; the redelivery is accepted."""
    attempt = new_attempt()
    told = [attempt.end(), attempt.report(USAGE, "tokens", "pending")]
    before = metering.facts_digest()
    assert codes(metering.consumer.deliver(*told)) == [("retryable", "owner_unreadable")] * 2
    metering.peers.add(attempt)
    metering.peers.unreadable.add("execution")
    assert codes(metering.consumer.deliver(*told)) == [("retryable", "owner_unreadable")] * 2
    assert metering.facts_digest() == before
    metering.peers.unreadable.clear()
    assert codes(metering.consumer.deliver(*told)) == ["acknowledged"] * 2
    metering.work()


@pytest.mark.req("MTR-07", "RCP-34", "TST-18")
def test_the_same_revision_with_another_digest_is_refused_for_good(metering: Metering) -> None:
    """Also another event of the same eligibility; nothing is written."""
    attempt = metering.new_attempt()
    metering.accept(attempt.end(), attempt.report(USAGE, "tokens", "pending"), attempt.report(COST, "spend", "pending"))
    before = metering.facts_digest()
    others = [
        attempt.eligibility_event(),
        attempt.availability_event(attempt.chains[USAGE, "tokens"][0], currentAvailabilityDigest="d" * 64),
        attempt.availability_event(attempt.chains[COST, "spend"][0], currentAvailabilityRef="another"),
    ]
    assert codes(metering.consumer.deliver(*others)) == [("rejected", "identity_conflict")] * 3
    assert metering.facts_digest() == before
    assert [receipts_of(metering, told) for told in others] == [0, 0, 0]
    metering.work()


@pytest.mark.req("NEG-47", "RCP-34", "RCP-14")
def test_the_same_event_id_with_another_envelope_is_refused_for_good(metering: Metering) -> None:
    """The first receipt stays."""
    attempt = metering.new_attempt()
    told = attempt.end()
    first = metering.consumer.accept(told)
    document = json.loads(told.envelope)
    document["correlation"]["correlationId"] = "another"
    other = Told(told.event_id, encode(document))
    assert codes(metering.consumer.deliver(other)) == [("rejected", "digest_conflict")]
    assert metering.consumer.accept(told) == first
    assert receipts_of(metering, told) == 1
    metering.work()


@pytest.mark.req("RCP-34", "RCP-15", "RCP-18", "MTR-01", "MTR-07")
def test_events_that_cross_manifest_binding_or_dimension_are_refused_for_good(metering: Metering) -> None:
    """Each field of the event is compared with the manifest that execution holds."""
    attempt = metering.new_attempt()
    _ = attempt.end()
    _ = attempt.report(USAGE, "tokens", "pending")
    snapshot = attempt.chains[USAGE, "tokens"][0]
    wrong = [
        attempt.eligibility_event(runStepId="another"),
        attempt.eligibility_event(billingAccountId="another"),
        attempt.eligibility_event(attemptExecutionManifestDigest="e" * 64),
        attempt.availability_event(snapshot, gatewayDeploymentId="another"),
        attempt.availability_event(snapshot, attemptRouteBindingDigest="e" * 64),
        attempt.availability_event(snapshot, attemptExecutionManifestRef="another"),
        attempt.availability_event(snapshot, evidenceDimensionKey="another"),
        attempt.availability_event(snapshot, providerEvidenceKind=COST),
    ]
    before = metering.facts_digest()
    assert codes(metering.consumer.deliver(*wrong)) == [("rejected", "identity_conflict")] * len(wrong)
    assert metering.facts_digest() == before


@pytest.mark.req("RCP-34", "MTR-07")
def test_an_attempt_keeps_the_manifest_of_its_first_event(metering: Metering) -> None:
    """Should execution ever answer with another one, the database refuses."""
    attempt = metering.new_attempt()
    metering.accept(attempt.end())
    told = attempt.report(USAGE, "tokens", "pending")
    manifest = json.loads(metering.manifest(attempt))
    manifest["createdAt"] = "2027-01-01T00:00:00.000000Z"
    with metering.database.connect("oceanway_metering_consumer") as connection, pytest.raises(OwnerConflict):
        store.lock(connection, envelope=told.envelope, manifest=encode(manifest))
    metering.work()


@pytest.mark.req("MTR-07")
def test_a_manifest_that_execution_holds_otherwise_is_refused_for_good(metering: Metering) -> None:
    """The read answers `conflicting`."""
    attempt = metering.new_attempt()
    metering.peers.conflicting[attempt.ref, MANIFEST] = {}
    assert codes(metering.consumer.deliver(attempt.end())) == [("rejected", "identity_conflict")]
    del metering.peers.conflicting[attempt.ref, MANIFEST]


@pytest.mark.req("MTR-08", "RCP-14", "RCP-33")
def test_a_crash_after_the_commit_is_healed_by_the_redelivery(metering: Metering) -> None:
    """The answer was lost: the receipt is the same and there is no second work."""
    attempt = metering.new_attempt()
    told = attempt.report(COST, "spend", "available")
    first = metering.consumer.accept(told)
    metering.work()
    assert metering.consumer.accept(told) == first
    assert len(metering.documents("work", attempt)) == 1
    metering.check()
