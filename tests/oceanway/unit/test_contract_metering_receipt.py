"""Metering's receipt: which source, lane and state belong together (section 9.2)."""

from __future__ import annotations

from typing import Any

import pytest

from oceanway.contracts.receipts import metering_states as states
from oceanway.contracts.receipts.metering import (
    MeteringInputProcessorConsumerReceipt,
    SourceExecutionEligibility,
    SourceGatewayAvailability,
)
from seapost.contracts.canonical import encode
from seapost.contracts.digest import sha256_hex
from seapost.model.errors import ContractError, DigestMismatch
from tests.kit.oceanway.documents import valid
from tests.kit.oceanway.lanes import COST_STATES, ELIGIBILITY_STATES, cost_lane, cost_source, eligibility_lane

LANES = [eligibility_lane(kind) for kind in ELIGIBILITY_STATES] + [cost_lane(kind) for kind in COST_STATES]


def receipt(**changes: object) -> MeteringInputProcessorConsumerReceipt:
    """Build a receipt that froze a lane after a later event."""
    return valid(MeteringInputProcessorConsumerReceipt, **{"outcome": "already_observed", **changes})


def changed(document: MeteringInputProcessorConsumerReceipt, path: str, value: object) -> dict[str, Any]:
    """Return the document with one value replaced, or removed if None, and with the digest that fits."""
    fields: dict[str, Any] = document.to_json()
    *parents, last = path.split("/")
    here = fields
    for name in parents:
        here = here[name]
    if value is None:
        del here[last]
    else:
        here[last] = value
    outside = MeteringInputProcessorConsumerReceipt.addressing.outside
    covered = {name: item for name, item in fields.items() if name not in outside}
    fields["meteringInputProcessorConsumerReceiptDigest"] = sha256_hex(encode(covered))
    return fields


@pytest.mark.req("RCP-12", "RCP-22", "RCP-33", "RCP-36", "AMB-08")
@pytest.mark.parametrize("lane", LANES, ids=lambda lane: f"{lane.kind}-{type(lane.coordination_state).__name__}")
def test_every_state_of_both_lanes_can_be_frozen(lane: Any) -> None:  # noqa: ANN401 - a lane of either kind
    """Each state reads back; the event type is that of the source and of nothing else."""
    made = receipt(lane=lane)
    assert MeteringInputProcessorConsumerReceipt.decode(made.canonical()) == made
    assert made.event_type == made.source.event_type
    assert "eventType" not in made.to_json()


@pytest.mark.req("RCP-15", "RCP-16", "RCP-17", "RCP-34", "NEG-12")
def test_a_source_enters_its_own_lane_only() -> None:
    """Execution and usage enter the eligibility lane, cost its own cost lane; every other pairing is refused."""
    usage = valid(SourceGatewayAvailability)
    assert receipt(source=usage, lane=eligibility_lane()).lane.kind == "eligibility_and_settlement_input"
    assert receipt(source=cost_source(), lane=cost_lane()).lane.kind == "provider_cost"
    for source in (valid(SourceExecutionEligibility), usage):
        with pytest.raises(ContractError, match="does not enter this lane"):
            _ = receipt(source=source, lane=cost_lane())
    with pytest.raises(ContractError, match="does not enter this lane"):
        _ = receipt(source=cost_source(), lane=eligibility_lane())
    for name in ("evidence_dimension_key", "gateway_deployment_id"):
        with pytest.raises(ContractError):
            _ = receipt(source=cost_source(**{name: "another"}), lane=cost_lane())


@pytest.mark.req("RCP-23", "RCP-24", "RCP-25", "RCP-26", "RCP-27", "RCP-28", "RCP-32", "RCP-36", "NEG-12")
@pytest.mark.parametrize(
    ("lane", "path", "value"),
    [
        (eligibility_lane(), "lane/coordinationState/activeWork", None),
        (eligibility_lane(), "lane/coordinationState/activeWork", {"state": "none"}),
        (eligibility_lane(), "lane/coordinationState/activeWork/workGeneration", 2),
        (eligibility_lane(), "lane/coordinationState/meteringInputWorkAttemptFinishedRef", "finish"),
        (eligibility_lane(), "lane/coordinationState/state", "availability_processed"),
        (eligibility_lane(), "lane/coordinationState/state", "no_cost_evidence"),
        (eligibility_lane(states.EligibilityWaiting), "lane/coordinationState/activeWork", {"state": "pending"}),
        (eligibility_lane(states.EligibilityWaiting), "lane/coordinationState/lastFinishedWork", None),
        (
            eligibility_lane(states.EligibilityApplied),
            "lane/coordinationState/meteringInputWorkAttemptFinishedRef",
            None,
        ),
        (eligibility_lane(states.EligibilityApplied), "lane/coordinationState/settlementInputSnapshotCount", 2),
        (eligibility_lane(states.EligibilityApplied), "lane/coordinationState/appliedWorkGeneration", 2),
        (eligibility_lane(states.EligibilityBlocked), "lane/coordinationState/activeWork", {"state": "none"}),
        (
            eligibility_lane(states.EligibilityBlocked),
            "lane/coordinationState/meteringInputWorkAttemptBlockedDigest",
            None,
        ),
        (eligibility_lane(states.EligibilityBlocked), "lane/coordinationState/reconciliationCaseRef", "case"),
        (cost_lane(states.ProviderCostBlocked), "lane/coordinationState/providerCostAvailabilityProcessingRef", "fact"),
        (cost_lane(states.ProviderCostBlocked), "lane/coordinationState/meteringInputWorkAttemptFinishedRef", "finish"),
        (
            cost_lane(states.ProviderCostReconciliationRequired),
            "lane/coordinationState/providerCostAvailabilityProcessingRef",
            None,
        ),
        (
            cost_lane(states.ProviderCostReconciliationRequired),
            "lane/coordinationState/meteringInputWorkAttemptFinishedDigest",
            None,
        ),
        (cost_lane(states.ProviderCostReconciliationRequired), "lane/coordinationState/availabilityState", "pending"),
        (cost_lane(states.ProviderCostReconciliationRequired), "lane/coordinationState/reconciliationCaseRef", "case"),
        (cost_lane(states.ProviderCostReconciliationRequired), "lane/coordinationState/stateReasonCode", "unheard_of"),
        (cost_lane(states.ProviderCostNoCostEvidence), "lane/coordinationState/processingOutcome", "available_applied"),
        (
            cost_lane(states.ProviderCostNoCostEvidence),
            "lane/coordinationState/stateReasonCode",
            "provider_unreachable",
        ),
        (cost_lane(states.ProviderCostWaitingForEvidence), "lane/coordinationState/state", "waiting_for_execution"),
        (cost_lane(states.ProviderCostWaitingForEvidence), "lane/coordinationState/state", "applied"),
        (cost_lane(), "lane/coordinationState/state", "blocked_on_owner_conflict"),
        (cost_lane(), "lane/sourceEvidenceDimensionKey", None),
        (cost_lane(), "lane/eligibilityFenceRevision", 1),
        (eligibility_lane(), "lane/providerCostFenceRevision", 1),
        (eligibility_lane(), "source/kind", "gateway_availability"),
        (eligibility_lane(), "source/eventType", "gateway.evidence-availability.current-changed@1"),
        (eligibility_lane(), "source/currentAvailabilityRef", "snapshot"),
        (eligibility_lane(), "source/runStepId", None),
        (eligibility_lane(), "reconciliationCaseRef", "case"),
        (eligibility_lane(), "outcome", "blocked"),
    ],
)
def test_a_mixed_or_incomplete_state_is_refused(lane: Any, path: str, value: object) -> None:  # noqa: ANN401 - a lane
    """What another branch has, or what this branch lacks, refuses the document even with the right digest."""
    source = cost_source() if lane.kind == "provider_cost" else valid(SourceExecutionEligibility)
    document = changed(receipt(lane=lane, source=source), path, value)
    with pytest.raises(ContractError) as refused:
        _ = MeteringInputProcessorConsumerReceipt.decode(document)
    assert not isinstance(refused.value, DigestMismatch)


@pytest.mark.req("RCP-25", "NEG-12")
def test_applied_snapshots_are_sorted_and_counted() -> None:
    """Two snapshots in the wrong order, or one twice, are refused."""
    state = eligibility_lane(states.EligibilityApplied).coordination_state
    assert isinstance(state, states.EligibilityApplied)
    first = state.settlement_input_snapshots[0]
    later = first.model_copy(update={"charge_dimension_key": "zeta"})
    fields: dict[str, Any] = dict(state) | {"settlement_input_snapshot_count": 2}
    kind: Any = states.EligibilityApplied
    assert kind(**fields | {"settlement_input_snapshots": [first, later]})
    for wrong, rule in (([later, first], "not_sorted"), ([first, first], "duplicate")):
        with pytest.raises(ContractError) as refused:
            _ = kind(**fields | {"settlement_input_snapshots": wrong})
        assert refused.value.rule == rule


@pytest.mark.req("RCP-23", "RCP-29", "RCP-31", "RCP-42")
@pytest.mark.parametrize(
    "lane", [lane for lane in LANES if type(lane.coordination_state) is not states.EligibilityWaiting]
)
def test_the_work_is_that_of_the_latest_generation_and_trigger(lane: Any) -> None:  # noqa: ANN401 - a lane of either kind
    """A receipt links to the work by its deterministic operation: another trigger or generation breaks the link."""
    source = cost_source() if lane.kind == "provider_cost" else valid(SourceExecutionEligibility)
    prefix = "providerCost" if lane.kind == "provider_cost" else "eligibility"
    latest = "latestProviderCostWorkGeneration" if lane.kind == "provider_cost" else "latestEligibilityWorkGeneration"
    made = receipt(lane=lane, source=source)
    for path, value in ((f"lane/{prefix}TriggerDigest", "0" * 64), (f"lane/{latest}", 2)):
        with pytest.raises(ContractError):
            _ = MeteringInputProcessorConsumerReceipt.decode(changed(made, path, value))


@pytest.mark.req("RCP-24")
def test_a_waiting_lane_cannot_have_finished_a_later_generation() -> None:
    """The last finished work is of the latest generation or an earlier one."""
    last = valid(states.LastFinishedWorkAvailable, work_generation=2)
    state = valid(states.EligibilityWaiting, last_finished_work=last)
    assert receipt(lane=eligibility_lane(coordination_state=state, latest_eligibility_work_generation=2))
    with pytest.raises(ContractError, match="No such generation"):
        _ = receipt(lane=eligibility_lane(coordination_state=state))
