"""Who is charged, and how a cost work ends: the decisions of the workers over documents alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from oceanway.metering import eligibility, lanes, provider_cost
from oceanway.metering.documents import Document, quad
from oceanway.metering.eligibility import Basis
from oceanway.metering.outcomes import LocalConflict, OwnerConflicting, Processed, Task, Waiting
from oceanway.metering.provider_cost import Candidate
from tests.kit.oceanway.metering_facts import COST, MOMENT, USAGE, Attempt, Told, new_attempt


def task_of(attempt: Attempt, *told: Told) -> Task:
    """The task of the lane's last event, when these have arrived."""
    envelopes = [json.loads(one.envelope) for one in told]
    sources = [lanes.source_of(envelope) for envelope in envelopes]
    made = lanes.advance(sources[-1], sources[:-1], None, None, manifest=attempt.manifest, moment=MOMENT)
    places = [(one.kind, one.gateway_deployment_id, one.dimension_key) for one in sources]
    return Task(made.work.document, attempt.manifest, dict(zip(places, envelopes, strict=True)), {}, 1, 7)


def body_of(attempt: Attempt, kind: str, dimension: str, **changes: Any) -> Document:
    """What the gateway answers about the newest snapshot of a chain."""
    snapshot = attempt.chains[kind, dimension][-1]
    body: Document = {"availabilitySnapshot": snapshot}
    if snapshot["availability"]["state"] == "available":
        body["evidence"] = attempt.evidence[snapshot["availability"]["gatewayEvidenceRef"]]
    if kind == COST:
        body["routeCostBinding"] = attempt.route["costDimensions"][0]
    return {**body, **changes}


def fact_of(attempt: Attempt) -> Document:
    """The eligibility fact of an attempt that has ended."""
    assert attempt.fact is not None
    return attempt.fact


@pytest.mark.req("MTR-03", "AMB-08")
def test_usage_alone_waits_for_execution() -> None:
    """There is nothing to read."""
    attempt = new_attempt()
    assert not eligibility.is_known(task_of(attempt, attempt.report(USAGE, "tokens", "available")))


@pytest.mark.req("RCP-32", "MTR-03")
@pytest.mark.parametrize(("result", "reason"), [("not_dispatched", "not_dispatched"), ("failed", "attempt_failed")])
def test_an_attempt_that_was_not_dispatched_or_failed_waits_for_no_usage(result: str, reason: str) -> None:
    """It is not billable, without a question to the gateway."""
    attempt = new_attempt()
    basis = eligibility.judge_fact(task_of(attempt, attempt.end(result)), fact_of(attempt))
    assert isinstance(basis, Basis)
    assert basis.decision == {"state": "not_billable", "reasonCode": reason}
    assert (basis.document["usage"], list(basis.validations)) == ([], [])


@pytest.mark.req("RCP-32", "MTR-03")
def test_a_success_waits_until_every_usage_dimension_has_been_told() -> None:
    """Two charges from one usage need it once; a charge from another usage needs that one too."""
    attempt = new_attempt(charges={"a": "one", "b": "one", "c": "two"})
    assert [place[2] for place in eligibility.needed(task_of(attempt, attempt.end()))] == ["one", "two"]
    partly = task_of(attempt, attempt.end(), attempt.report(USAGE, "one", "available"))
    assert eligibility.judge_fact(partly, fact_of(attempt)) == Waiting("gateway_usage")
    told = (attempt.end(), attempt.report(USAGE, "one", "available"), attempt.report(USAGE, "two", "pending"))
    assert eligibility.judge_fact(task_of(attempt, *told), fact_of(attempt)) is None


STATES: list[tuple[tuple[str, str], object]] = [
    (("available", "available"), {"state": "billable"}),
    (("available", "pending"), Waiting("gateway_usage")),
    (("not_reported", "pending"), Waiting("gateway_usage")),
    (("available", "not_reported"), {"state": "not_billable", "reasonCode": "usage_not_reported"}),
    (("unavailable", "available"), {"state": "not_billable", "reasonCode": "usage_unavailable"}),
    (("pending", "conflicting"), OwnerConflicting),
    (("conflicting", "available"), OwnerConflicting),
]


@pytest.mark.req("AMB-21", "AMB-49", "MTR-03")
@pytest.mark.parametrize(("states", "expected"), STATES)
def test_usage_states_decide_together(states: tuple[str, str], expected: object) -> None:
    """A conflict comes before waiting, and waiting before a verdict."""
    attempt = new_attempt(charges={"a": "one", "b": "two"})
    told = [
        attempt.end(),
        *(attempt.report(USAGE, key, state) for key, state in zip(("one", "two"), states, strict=True)),
    ]
    bodies = [body_of(attempt, USAGE, "one"), body_of(attempt, USAGE, "two")]
    found = eligibility.judge_usage(task_of(attempt, *told), bodies)
    match found:
        case Basis():
            assert found.decision == expected
            assert len(found.validations) == len(bodies)
        case OwnerConflicting():
            assert expected is OwnerConflicting
            assert "gatewayEvidenceConflictFactRef" in found.fact
        case _:
            assert found == expected


@pytest.mark.req("MTR-16", "MTR-28", "RCP-36")
def test_bodies_that_do_not_fit_the_event_are_a_local_conflict() -> None:
    """Another snapshot, other evidence or none: the candidate's digest is kept."""
    attempt = new_attempt()
    told = (attempt.end(), attempt.report(USAGE, "tokens", "available", "1"))
    task, good = task_of(attempt, *told), body_of(attempt, USAGE, "tokens")
    other = new_attempt()
    other.report(USAGE, "tokens", "available", "2")
    strange = body_of(other, USAGE, "tokens")
    for changes, reason in (
        ({"availabilitySnapshot": strange["availabilitySnapshot"]}, "identity_differs"),
        ({"evidence": strange["evidence"]}, "identity_differs"),
        ({"evidence": None}, "evidence_missing"),
    ):
        found = eligibility.judge_usage(task, [{**good, **changes}])
        assert isinstance(found, LocalConflict)
        assert (found.stage, found.reason) == ("eligibility_basis", reason)
        assert len(found.digest) == 64


@pytest.mark.req("MTR-16", "RCP-15")
def test_a_fact_that_does_not_fit_event_or_manifest_is_a_local_conflict() -> None:
    """Compared field by field before anything is derived from it."""
    attempt, other = new_attempt(), new_attempt()
    task = task_of(attempt, attempt.end())
    _ = other.end()
    fact = fact_of(attempt)
    bound = {**fact["disposition"], "gatewayDeploymentId": "deployment-2"}
    for wrong, reason in (
        (fact_of(other), "digest_differs"),
        ({**fact, "billingAccountId": "another"}, "identity_differs"),
        ({**fact, "disposition": bound}, "manifest_differs"),
    ):
        found = eligibility.judge_fact(task, wrong)
        assert isinstance(found, LocalConflict)
        assert (found.stage, found.reason) == ("eligibility_basis", reason)


@pytest.mark.req("MTR-27", "MTR-28", "REF-30")
def test_a_validation_is_bound_to_purpose_subject_and_basis() -> None:
    """Other evidence makes another basis, and so another operation."""
    attempt = new_attempt()
    told = attempt.end()
    operations: set[str] = set()
    for value in ("1", "2"):
        task = task_of(attempt, told, attempt.report(USAGE, "tokens", "available", value))
        basis = eligibility.judge_usage(task, [body_of(attempt, USAGE, "tokens")])
        assert isinstance(basis, Basis)
        operations.update(one.operation_id for one in basis.validations)
    assert len(operations) == 2


@pytest.mark.req("MTR-30", "MTR-32", "MTR-33", "MTR-34", "AMB-10", "AMB-22")
@pytest.mark.parametrize(
    ("state", "outcome"),
    [
        ("pending", {"state": "waiting_for_evidence", "availabilityState": "pending"}),
        ("not_reported", {"state": "no_cost_evidence", "availabilityState": "not_reported"}),
        ("unavailable", {"state": "no_cost_evidence", "availabilityState": "unavailable"}),
        (
            "conflicting",
            {
                "state": "reconciliation_required",
                "availabilityState": "conflicting",
                "stateReasonCode": "provider_records_differ",
            },
        ),
    ],
)
def test_without_available_evidence_there_is_a_processing_and_no_cost(state: str, outcome: Document) -> None:
    """Missing evidence is never a cost of zero."""
    attempt = new_attempt()
    task = task_of(attempt, attempt.report(COST, "spend", state))
    found = provider_cost.judge(task, body_of(attempt, COST, "spend"), MOMENT)
    assert isinstance(found, Processed)
    assert (found.fact, found.receipts, found.processing.document["outcome"]) == (None, [], outcome)


@pytest.mark.req("MTR-31", "MTR-28", "REF-31")
def test_available_evidence_is_a_candidate_that_needs_two_validations() -> None:
    """Availability and route, bound to the digest of the candidate."""
    attempt = new_attempt()
    task = task_of(attempt, attempt.report(COST, "spend", "available", "0.25"))
    found = provider_cost.judge(task, body_of(attempt, COST, "spend"), MOMENT)
    assert isinstance(found, Candidate)
    assert [one.purpose for one in found.validations] == [provider_cost.AVAILABILITY, provider_cost.ROUTE]
    assert (found.fields["amount"], found.fields["currency"]) == ("0.25", "EUR")


@pytest.mark.req("MTR-17", "MTR-36", "RCP-28", "RCP-36")
@pytest.mark.parametrize(
    ("changes", "stage", "reason"),
    [
        ({"evidence": None}, "source_identity", "evidence_missing"),
        ({"routeCostBinding": None}, "provider_cost_mapping", "mapping_missing"),
        (
            {"routeCostBinding": {"sourceEvidenceDimensionKey": "spend", "currency": "USD", "costMappingVersion": "1"}},
            "provider_cost_normalization",
            "currency_differs",
        ),
        (
            {"routeCostBinding": {"sourceEvidenceDimensionKey": "x", "currency": "EUR", "costMappingVersion": "1"}},
            "provider_cost_mapping",
            "mapping_missing",
        ),
    ],
)
def test_a_proven_contradiction_on_the_available_path_names_its_stage(
    changes: Document, stage: str, reason: str
) -> None:
    """It never becomes a processing."""
    attempt = new_attempt()
    task = task_of(attempt, attempt.report(COST, "spend", "available"))
    found = provider_cost.judge(task, body_of(attempt, COST, "spend", **changes), MOMENT)
    assert isinstance(found, LocalConflict)
    assert (found.stage, found.reason) == (stage, reason)


def test_a_snapshot_of_another_event_is_no_cost_source() -> None:
    """Identity first, whatever the state says."""
    attempt = new_attempt()
    task = task_of(attempt, attempt.report(COST, "spend", "pending"))
    _ = attempt.report(COST, "spend", "available")
    found = provider_cost.judge(task, body_of(attempt, COST, "spend"), MOMENT)
    assert isinstance(found, LocalConflict)
    assert (found.stage, found.reason) == ("source_identity", "identity_differs")
    assert quad("attemptExecutionManifest", found.candidate)
