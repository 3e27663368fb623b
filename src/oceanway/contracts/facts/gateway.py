"""What the gateway knows about routes and about the evidence that providers report (REF-22 to REF-24)."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from oceanway.contracts.base import Contract
from oceanway.contracts.conflicts import ConflictFields
from oceanway.contracts.fields import Amount, Currency
from oceanway.contracts.order import ascending, require
from oceanway.contracts.quads import (
    AttemptExecutionManifestQuad,
    AttemptRouteBindingQuad,
    GatewayBindingConflictFactQuad,
    GatewayEvidenceAvailabilitySnapshotQuad,
    GatewayEvidenceConflictFactQuad,
    GatewayEvidenceQuad,
    GatewayRouteSnapshotQuad,
)
from oceanway.contracts.quints import Absent
from oceanway.contracts.reasons import AvailabilityReason
from seapost.contracts.content_addressed import ContentAddressed
from seapost.contracts.fields import Digest, Identifier, Revision, Timestamp

ProviderEvidenceKind = Literal["provider_usage", "provider_cost"]


class CostDimension(Contract):
    """How one cost dimension of a provider is read: the Route Cost Binding (REF-23)."""

    source_evidence_dimension_key: Identifier
    currency: Currency
    cost_mapping_version: Identifier


class GatewayRouteSnapshot(
    GatewayRouteSnapshotQuad, ContentAddressed, prefix="gatewayRouteSnapshot", outside=("capturedAt",)
):
    """A route as it was when an attempt was bound to it."""

    route_id: Identifier
    provider_key: Identifier
    cost_dimensions: Annotated[list[CostDimension], ascending("source_evidence_dimension_key")]
    captured_at: Timestamp


class AttemptRouteBinding(
    AttemptRouteBindingQuad,
    GatewayRouteSnapshotQuad,
    ContentAddressed,
    prefix="attemptRouteBinding",
    outside=("boundAt",),
):
    """Which route an attempt took on which deployment."""

    execution_attempt_id: Identifier
    gateway_deployment_id: Identifier
    route_id: Identifier
    bound_at: Timestamp


class GatewayEvidence(GatewayEvidenceQuad, ContentAddressed, prefix="gatewayEvidence", outside=("observedAt",)):
    """One reported number: a usage has a unit, a cost has a currency."""

    kind: ProviderEvidenceKind
    dimension: Identifier
    value: Amount
    unit: Identifier | None = None
    currency: Currency | None = None
    provider_record_digest: Digest
    observed_at: Timestamp

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        is_usage = self.kind == "provider_usage"
        fits = (self.unit is not None, self.currency is not None) == (is_usage, not is_usage)
        require(fits, "A usage has a unit, a cost a currency", "/kind", "mixed_branches")
        require(not (is_usage and self.value.startswith("-")), "A usage is not negative", "/value", "range")
        return self


class GatewayEvidenceAvailabilityPresent(GatewayEvidenceAvailabilitySnapshotQuad):
    """The snapshot before, with its state version."""

    state: Literal["present"] = "present"
    gateway_evidence_availability_snapshot_state_version: Revision


class AvailabilityAvailable(GatewayEvidenceQuad):
    """The evidence is there."""

    state: Literal["available"] = "available"


class AvailabilityPending(Contract):
    """The provider will report later."""

    state: Literal["pending"] = "pending"


class AvailabilityNotReported(Contract):
    """The provider reports nothing for this dimension."""

    state: Literal["not_reported"] = "not_reported"


class AvailabilityUnavailable(Contract):
    """The evidence will not come."""

    state: Literal["unavailable"] = "unavailable"
    state_reason_code: AvailabilityReason


class AvailabilityConflicting(GatewayEvidenceConflictFactQuad):
    """The provider reported numbers that exclude each other."""

    state: Literal["conflicting"] = "conflicting"
    state_reason_code: AvailabilityReason


Availability = Annotated[
    AvailabilityAvailable
    | AvailabilityPending
    | AvailabilityNotReported
    | AvailabilityUnavailable
    | AvailabilityConflicting,
    Field(discriminator="state"),
]


class EvidenceChain(Contract):
    """Which chain of snapshots: attempt, deployment, kind and dimension."""

    execution_attempt_id: Identifier
    gateway_deployment_id: Identifier
    provider_evidence_kind: ProviderEvidenceKind
    evidence_dimension_key: Identifier


class GatewayEvidenceAvailabilitySnapshot(
    GatewayEvidenceAvailabilitySnapshotQuad,
    EvidenceChain,
    AttemptExecutionManifestQuad,
    AttemptRouteBindingQuad,
    GatewayRouteSnapshotQuad,
    ContentAddressed,
    prefix="gatewayEvidenceAvailabilitySnapshot",
    outside=("recordedAt",),
):
    """Whether the evidence of one chain is there, at one state version."""

    gateway_evidence_availability_snapshot_state_version: Revision
    predecessor: Annotated[Absent | GatewayEvidenceAvailabilityPresent, Field(discriminator="state")]
    availability: Availability
    recorded_at: Timestamp

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        before = self.predecessor
        version = before.gateway_evidence_availability_snapshot_state_version if before.state == "present" else 0
        is_next = self.gateway_evidence_availability_snapshot_state_version == version + 1
        require(is_next, "The predecessor is exactly one version lower", "/predecessor", "predecessor")
        return self


class GatewayEvidenceConflictFact(
    GatewayEvidenceConflictFactQuad,
    EvidenceChain,
    ConflictFields,
    ContentAddressed,
    prefix="gatewayEvidenceConflictFact",
    outside=("detectedAt",),
):
    """Two claims about the evidence of one chain exclude each other."""


class GatewayBindingConflictFact(
    GatewayBindingConflictFactQuad,
    ConflictFields,
    ContentAddressed,
    prefix="gatewayBindingConflictFact",
    outside=("detectedAt",),
):
    """Two claims about the route of one attempt exclude each other."""

    execution_attempt_id: Identifier
    gateway_deployment_id: Identifier
