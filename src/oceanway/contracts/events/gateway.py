"""The payload of the gateway: the current availability of a chain changed (annex B, 12)."""

from __future__ import annotations

from oceanway.contracts.events.base import OwnerEvent
from oceanway.contracts.facts.gateway import EvidenceChain
from oceanway.contracts.quads import AttemptExecutionManifestQuad, AttemptRouteBindingQuad, GatewayRouteSnapshotQuad
from oceanway.contracts.quints import CurrentAvailabilityQuint


class GatewayEvidenceAvailabilityCurrentChanged(
    EvidenceChain,
    AttemptExecutionManifestQuad,
    AttemptRouteBindingQuad,
    GatewayRouteSnapshotQuad,
    CurrentAvailabilityQuint,
    OwnerEvent,
    type="gateway.evidence-availability.current-changed@1",
    producer="gateway",
    aggregate="availability_chain",
):
    """An attempt-bound chain has a new current snapshot; the payload names it and holds nothing of its body."""

    def source_fact_key(self) -> str:
        """The snapshot."""
        return self.current_availability_ref
