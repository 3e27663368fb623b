"""Works, their ends and their blocking records in metering and billing (MTR-10 to MTR-24, CAT-13 to CAT-16)."""

from __future__ import annotations

from typing import Any

import pytest

from oceanway.contracts.facts import metering as facts
from oceanway.contracts.facts.gateway import GatewayEvidence, GatewayEvidenceAvailabilitySnapshot
from oceanway.contracts.identity import det
from oceanway.contracts.works import catch_up, finalization, metering
from seapost.contracts.canonical import encode
from seapost.contracts.content_addressed import ContentAddressed
from seapost.contracts.digest import sha256_hex
from seapost.model.errors import ContractError, DigestMismatch
from tests.kit.oceanway.documents import valid, variants

CAUSES = {
    "eligibility_and_settlement_input": [
        metering.CauseExecutionEligibilityOwnerConflict,
        metering.CauseGatewayUsageOwnerConflict,
        metering.CauseGatewayBindingOwnerConflict,
        metering.CauseEligibilityProcessingConflict,
    ],
    "provider_cost": [metering.CauseProviderCostProcessingConflict],
}
LANES = {
    "eligibility_and_settlement_input": metering.LaneEligibility,
    "provider_cost": metering.LaneProviderCost,
}


def without(document: ContentAddressed, *path: str) -> dict[str, Any]:
    """Return the document without one field, with the digest that fits the rest."""
    return changed(document, path, None)


def changed(document: ContentAddressed, path: tuple[str, ...], value: object) -> dict[str, Any]:
    """Return the document with one field replaced, or removed if None, with the digest that fits."""
    fields: dict[str, Any] = document.to_json()
    here = fields
    for name in path[:-1]:
        here = here[name]
    if value is None:
        del here[path[-1]]
    else:
        here[path[-1]] = value
    covered = {name: item for name, item in fields.items() if name not in document.addressing.outside}
    return {**fields, document.addressing.digest: sha256_hex(encode(covered))}


def refuse(document: ContentAddressed, path: tuple[str, ...], value: object) -> None:
    """Require that the changed document is refused for what it says, not for its digest."""
    with pytest.raises(ContractError) as refused:
        _ = type(document).decode(changed(document, path, value))
    assert not isinstance(refused.value, DigestMismatch)


@pytest.mark.req("MTR-15", "MTR-21", "MTR-22", "RCP-26", "NEG-14")
@pytest.mark.parametrize("cause", [cause for causes in CAUSES.values() for cause in causes])
@pytest.mark.parametrize("lane", LANES)
def test_a_lane_permits_its_own_causes_only(lane: str, cause: Any) -> None:  # noqa: ANN401 - a class
    """Four causes belong to the eligibility lane and one to the cost lane; any other pair cannot be built."""
    fields = {"lane": valid(LANES[lane]), "blocking_cause": valid(cause)}
    if cause in CAUSES[lane]:
        assert valid(metering.MeteringInputWorkAttemptBlocked, **fields).lane.kind == lane
        return
    with pytest.raises(ContractError, match="does not permit this cause"):
        _ = valid(metering.MeteringInputWorkAttemptBlocked, **fields)


@pytest.mark.req("MTR-15", "MTR-25", "RCP-36", "NEG-12")
@pytest.mark.parametrize(
    "name",
    [
        "meteringInputWorkAttemptFinishedRef",
        "providerCostAvailabilityProcessingRef",
        "reconciliationCaseRef",
        "outcome",
    ],
)
def test_a_blocking_record_carries_neither_an_end_nor_a_case(name: str) -> None:
    """Blocked is an audit record, never a Finish and never a case."""
    refuse(valid(metering.MeteringInputWorkAttemptBlocked), (name,), "x")
    refuse(valid(metering.MeteringInputWorkAttemptBlocked), ("blockingCause", name), "x")


@pytest.mark.req("MTR-24", "NEG-14")
@pytest.mark.parametrize("name", ["gatewayDeploymentId", "sourceEvidenceDimensionKey"])
def test_deployment_and_dimension_are_never_dropped(name: str) -> None:
    """Neither from a lane, nor from the evidence of a conflict, nor from what became of a cost."""
    work = valid(metering.MeteringInputWork, lane=valid(metering.LaneProviderCost))
    refuse(work, ("lane", name), None)
    refuse(work, ("laneTrigger", name), None)
    refuse(valid(metering.ProviderCostProcessingConflictEvidence), (name,), None)
    refuse(valid(facts.ProviderCostAvailabilityProcessingFact), (name,), None)


@pytest.mark.req("MTR-17", "MTR-23", "NEG-14")
def test_a_local_cost_conflict_freezes_the_refused_candidate() -> None:
    """Stage, candidate with its algorithm, and reason: each is required, and the stages are closed."""
    local = valid(metering.CostCauseMeteringDeterministicValidation)
    evidence = valid(metering.ProviderCostProcessingConflictEvidence, cause=local)
    for name in (
        "validationStage",
        "conflictingCandidateDigestAlgorithmVersion",
        "conflictingCandidateDigest",
        "reasonCode",
    ):
        refuse(evidence, ("cause", name), None)
    refuse(evidence, ("cause", "validationStage"), "meter_event")
    refuse(evidence, ("cause", "reasonCode"), "because")
    owner = valid(metering.CostCauseGatewayOwnerConflict)
    refuse(valid(metering.ProviderCostProcessingConflictEvidence, cause=owner), ("cause", "validationStage"), "x")


@pytest.mark.req("MTR-16", "RCP-36", "NEG-12")
def test_the_stages_of_the_eligibility_lane_are_closed() -> None:
    """Each of the five reads back; one of the cost lane or an unknown one is refused."""
    stages = ("eligibility_basis", "availability_validation_receipt", "eligibility_decision", "meter_event")
    for stage in (*stages, "settlement_input"):
        assert valid(metering.EligibilityProcessingConflictEvidence, validation_stage=stage)
    for stage in ("provider_cost_mapping", "route_validation_receipt", "finalization"):
        with pytest.raises(ContractError):
            _ = valid(metering.EligibilityProcessingConflictEvidence, validation_stage=stage)


@pytest.mark.req("MTR-10", "AMB-10")
def test_an_end_belongs_to_its_lane_and_is_superseded_by_a_later_generation_only() -> None:
    """Both lanes can be superseded; applied and waiting end one lane, processed the other."""
    kind = metering.MeteringInputWorkAttemptFinished
    for outcome in (metering.FinishedApplied, metering.FinishedWaiting):
        with pytest.raises(ContractError, match="another lane"):
            _ = valid(kind, outcome=valid(outcome), lane=valid(metering.LaneProviderCost))
    with pytest.raises(ContractError, match="another lane"):
        _ = valid(kind, outcome=valid(metering.FinishedAvailabilityProcessed), lane=metering.LaneEligibility())
    for lane in LANES:
        ended = valid(metering.FinishedSuperseded, kind=lane)
        assert valid(kind, outcome=ended).lane.kind == lane
        with pytest.raises(ContractError, match="later generation"):
            _ = valid(kind, outcome=ended.model_copy(update={"superseded_by_work_generation": 1}))


@pytest.mark.req("MTR-13", "AMB-09")
def test_two_paths_to_one_superseded_end_agree_on_its_digest() -> None:
    """The moment and the reference differ, the digest does not."""
    ended = valid(metering.FinishedSuperseded)
    first = valid(metering.MeteringInputWorkAttemptFinished, outcome=ended)
    second = valid(metering.MeteringInputWorkAttemptFinished, outcome=ended, finished_at="2027-01-01T00:00:00.000000Z")
    assert first.quad().digest == second.quad().digest


@pytest.mark.req("RCP-23", "REF-27", "REF-36", "REF-47")
def test_an_operation_follows_from_its_work() -> None:
    """Generation, lane and trigger of a work determine its operation; another one is refused."""
    work = valid(metering.MeteringInputWork)
    digest = work.lane_trigger.trigger_digest()
    lane: dict[str, Any] = {"kind": "eligibility_and_settlement_input"}
    expected = det("metering_input_work", work.execution_attempt_id, lane, 1, digest)
    assert (work.metering_input_work_operation_id, work.lane_trigger_digest) == (expected, digest)
    refuse(work, ("workGeneration",), 2)
    refuse(valid(finalization.BillingFinalizationWork), ("workGeneration",), 2)
    refuse(valid(catch_up.BillingSettlementCatchUpWork), ("workGeneration",), 2)
    refuse(valid(catch_up.BillingSettlementCatchUpWork), ("basis", "settlementDimensionId"), "another")


@pytest.mark.req("REF-28", "RCP-31")
def test_a_trigger_belongs_to_its_lane() -> None:
    """An eligibility trigger makes no cost work, and a cost trigger none of another dimension."""
    lane = valid(metering.LaneProviderCost)
    with pytest.raises(ContractError, match="another lane"):
        _ = valid(metering.MeteringInputWork, lane=lane, lane_trigger=valid(metering.EligibilityTrigger))
    other = valid(metering.ProviderCostTrigger, source_evidence_dimension_key="another")
    with pytest.raises(ContractError, match="another lane"):
        _ = valid(metering.MeteringInputWork, lane=lane, lane_trigger=other)


@pytest.mark.req("MTR-31", "MTR-32", "MTR-33", "MTR-34", "NEG-15")
def test_what_becomes_of_a_cost_follows_from_its_availability() -> None:
    """Only an available cost has a fact and receipts; a conflict has a reason; nothing else has either."""
    states = {one.outcome.state: one.outcome for one in variants(facts.ProviderCostAvailabilityProcessingFact)}
    pairs = {state: outcome.availability_state for state, outcome in states.items()}
    assert pairs == {
        "available_applied": "available",
        "waiting_for_evidence": "pending",
        "no_cost_evidence": pairs["no_cost_evidence"],
        "reconciliation_required": "conflicting",
    }
    for state, outcome in states.items():
        document = valid(facts.ProviderCostAvailabilityProcessingFact, outcome=outcome)
        if state != "available_applied":
            refuse(document, ("outcome", "providerCostFactRef"), "fact")
            refuse(document, ("outcome", "availabilityState"), "available")
        if state != "reconciliation_required":
            refuse(document, ("outcome", "stateReasonCode"), "provider_unreachable")
    fact = valid(facts.ProviderCostFact)
    refuse(fact, ("currency",), "USD")
    refuse(fact, ("routeCostBinding", "sourceEvidenceDimensionKey"), "another")


@pytest.mark.req("REF-30", "SEC-11", "CAT-17")
def test_a_validation_is_about_the_subject_of_its_purpose() -> None:
    """Each purpose has one kind of subject, and a route alone has no state version."""
    receipt = valid(facts.CurrentValidationReceipt)
    refuse(receipt, ("purpose",), "billing_catch_up_fence")
    refuse(receipt, ("purpose",), "metering_fact_construction")
    refuse(receipt, ("validatedQuint", "stateVersion"), None)
    route = valid(facts.CurrentValidationReceipt, purpose="metering_route_validation")
    refuse(route, ("validatedQuint", "stateVersion"), 1)


@pytest.mark.req("CAT-13", "CAT-16")
def test_a_blocked_catch_up_is_no_finish() -> None:
    """The two share no outcome: each refuses what the other has."""
    blocked = valid(catch_up.BillingSettlementCatchUpWorkAttemptBlocked)
    for name in ("outcome", "finishedAt", "successorWorkGeneration", "reconciliationCaseRef"):
        refuse(blocked, (name,), "x")
    refuse(blocked, ("chargeDimensionKey",), None)
    with pytest.raises(ContractError):
        _ = catch_up.BillingSettlementCatchUpWorkAttemptFinished.decode(blocked.canonical())


@pytest.mark.req("CAT-19", "NEG-26")
def test_an_evaluated_target_names_its_successor() -> None:
    """Without the complete successor there is no such end, and the successor is the next generation."""
    rebased = valid(catch_up.OutcomeRebased, state="transition_applied")
    document = valid(catch_up.BillingSettlementCatchUpWorkAttemptFinished, outcome=rebased)
    for name in (
        "successorWorkGeneration",
        "successorBillingCatchUpValidationOperationId",
        "successorBillingSettlementCatchUpWorkDigest",
        "resultPointer",
    ):
        refuse(document, ("outcome", name), None)
    refuse(document, ("outcome", "successorWorkGeneration"), 3)
    refuse(document, ("outcome", "state"), "caught_up")


@pytest.mark.req("REF-22", "REF-24")
def test_evidence_has_the_measure_of_its_kind() -> None:
    """A usage has a unit and is not negative, a cost has a currency; a snapshot follows its predecessor."""
    usage = valid(GatewayEvidence)
    refuse(usage, ("unit",), None)
    refuse(usage, ("currency",), "EUR")
    refuse(usage, ("kind",), "provider_cost")
    refuse(usage, ("value",), "-1")
    refuse(valid(GatewayEvidenceAvailabilitySnapshot), ("gatewayEvidenceAvailabilitySnapshotStateVersion",), 2)
