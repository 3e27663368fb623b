"""Lanes as metering's receipt freezes them, one for each coordination state."""

from __future__ import annotations

from typing import Any, Final

from oceanway.contracts.identity import digest_of
from oceanway.contracts.receipts import metering_states as states
from oceanway.contracts.receipts.metering import (
    EligibilityLaneState,
    ProviderCostLaneState,
    SourceExecutionEligibility,
    SourceGatewayAvailability,
)
from oceanway.contracts.works.metering import (
    LaneEligibility,
    LaneProviderCost,
    metering_input_work_operation_id,
)
from tests.kit.oceanway.documents import valid

ELIGIBILITY_STATES: Final = (
    states.LanePending,
    states.EligibilityWaiting,
    states.EligibilityApplied,
    states.EligibilityBlocked,
)
COST_STATES: Final = (
    states.LanePending,
    states.ProviderCostAvailabilityProcessed,
    states.ProviderCostWaitingForEvidence,
    states.ProviderCostNoCostEvidence,
    states.ProviderCostBlocked,
    states.ProviderCostReconciliationRequired,
)
DEPLOYMENT: Final = "gateway_deployment_id-1"
DIMENSION: Final = "evidence_dimension_key-1"


def eligibility_lane(kind: Any = states.LanePending, **changes: object) -> EligibilityLaneState:  # noqa: ANN401 - a class
    """The eligibility lane in this state."""
    operation = metering_input_work_operation_id(
        "execution_attempt_id-1", LaneEligibility(), 1, digest_of("eligibility_trigger_digest")
    )
    state = _state(kind, operation)
    return valid(EligibilityLaneState, **{"coordination_state": state, **changes})


def cost_lane(kind: Any = states.LanePending, **changes: object) -> ProviderCostLaneState:  # noqa: ANN401 - a class
    """The cost lane of the usual deployment and dimension in this state."""
    lane = LaneProviderCost(gateway_deployment_id=DEPLOYMENT, source_evidence_dimension_key=DIMENSION)
    operation = metering_input_work_operation_id(
        "execution_attempt_id-1", lane, 1, digest_of("provider_cost_trigger_digest")
    )
    fields = {"source_evidence_dimension_key": DIMENSION, "coordination_state": _state(kind, operation)}
    return valid(ProviderCostLaneState, **{**fields, **changes})


def cost_source(**changes: object) -> SourceGatewayAvailability:
    """An availability of provider cost."""
    return valid(SourceGatewayAvailability, **{"provider_evidence_kind": "provider_cost", **changes})


def metering_lane(fields: dict[str, Any]) -> dict[str, Any]:
    """Source and pending lane of a receipt, as far as they are not given."""
    source, lane = fields.get("source"), fields.get("lane")
    is_cost = getattr(source, "provider_evidence_kind", "") == "provider_cost"
    if source is None and isinstance(lane, ProviderCostLaneState):
        return {"source": cost_source()}
    return {
        "source": valid(SourceExecutionEligibility),
        "lane": cost_lane() if is_cost else eligibility_lane(),
    }


def _state(kind: Any, operation: str) -> Any:  # noqa: ANN401 - one class of a union
    if "active_work" in kind.model_fields and kind.model_fields["active_work"].annotation is states.ActiveWorkPending:
        return valid(kind, active_work=valid(states.ActiveWorkPending, metering_input_work_operation_id=operation))
    if kind is states.EligibilityWaiting:
        return valid(kind)
    return valid(kind, metering_input_work_operation_id=operation)
