"""The receipt of the metering consumer: which input was accepted, and how its lane stood then (RCP-12, RCP-22)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oceanway.contracts.receipts.metering import MeteringInputProcessorConsumerReceipt
from oceanway.metering.documents import ATTEMPT, QUAD, QUINT, Document, part, seal
from oceanway.metering.lanes import COST, ELIGIBILITY_SOURCE, Outcome, Source, lane_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_EXECUTION = (
    *ATTEMPT,
    *(f"attemptExecutionManifest{name}" for name in QUAD),
    *(f"executionEligibilityFact{name}" for name in QUAD),
)
_GATEWAY = (
    "executionAttemptId",
    "gatewayDeploymentId",
    *(f"attemptExecutionManifest{name}" for name in QUAD),
    "providerEvidenceKind",
    "evidenceDimensionKey",
    *(f"currentAvailability{name}" for name in QUINT),
)


def receipt_of(
    common: Mapping[str, str],
    envelope: Mapping[str, Any],
    source: Source,
    outcome: Outcome,
    lane: Document,
) -> MeteringInputProcessorConsumerReceipt:
    """The receipt of one event.

    Args:
        common: what the inbox says about every receipt, by Python names.
        lane: see `frozen_lane`.
    """
    kind = MeteringInputProcessorConsumerReceipt
    wire = {python: name for name, python in kind.addressing.python.items()}
    is_execution = source.kind == ELIGIBILITY_SOURCE
    fields = {
        **{wire[name]: value for name, value in common.items() if name in wire},  # the source says the rest
        "source": {
            "kind": "execution_eligibility" if is_execution else "gateway_availability",
            "eventType": envelope["eventType"],
            "eventSchemaVersion": envelope["eventSchemaVersion"],
            **part(envelope["payload"], _EXECUTION if is_execution else _GATEWAY),
        },
        "outcome": outcome,
        "lane": lane,
    }
    return kind.decode(seal(kind, fields).document)


def frozen_lane(source: Source, revision: int, generation: int, digest: tuple[str, str], state: Document) -> Document:
    """A lane as a receipt freezes it; `digest` is algorithm and digest of its trigger."""
    place = lane_of(source)
    if place["kind"] == COST:
        return {
            **place,
            "providerCostFenceRevision": revision,
            "latestProviderCostWorkGeneration": generation,
            "providerCostTriggerDigestAlgorithmVersion": digest[0],
            "providerCostTriggerDigest": digest[1],
            "coordinationState": state,
        }
    return {
        **place,
        "eligibilityFenceRevision": revision,
        "latestEligibilityWorkGeneration": generation,
        "eligibilityTriggerDigestAlgorithmVersion": digest[0],
        "eligibilityTriggerDigest": digest[1],
        "coordinationState": state,
    }
