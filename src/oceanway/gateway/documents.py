"""The facts of the gateway as values: routes, what providers reported, and statements about what is available.

References follow from the business key, so that the same fact has the same name wherever it is made (REF-02).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from oceanway.contracts.facts.gateway import (
    AttemptRouteBinding,
    AvailabilityAvailable,
    AvailabilityConflicting,
    AvailabilityNotReported,
    AvailabilityPending,
    AvailabilityUnavailable,
    CostDimension,
    EvidenceChain,
    GatewayBindingConflictFact,
    GatewayEvidence,
    GatewayEvidenceAvailabilityPresent,
    GatewayEvidenceAvailabilitySnapshot,
    GatewayEvidenceConflictFact,
    GatewayRouteSnapshot,
    ProviderEvidenceKind,
)
from oceanway.contracts.identity import ALGORITHM, Quint, det, digest_of, quad_fields, quad_of
from oceanway.contracts.quints import Absent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from oceanway.contracts.facts.execution import AttemptExecutionManifest
    from oceanway.contracts.reasons import AvailabilityReason, ConflictKind, ConflictReason

Report = (
    GatewayEvidence
    | GatewayEvidenceConflictFact
    | AvailabilityPending
    | AvailabilityNotReported
    | AvailabilityUnavailable
)
"""What there is to say about a chain: a number, two numbers that exclude each other, or why there is none."""

DIFFERING: Final[AvailabilityReason] = "provider_records_differ"


@dataclass(frozen=True, slots=True)
class Statement:
    """The next statement about a chain of a bound attempt.

    Attributes:
        manifest: of the attempt, as execution registered it.
        binding: the route it took.
        dimension: evidence dimension key.
    """

    manifest: AttemptExecutionManifest
    binding: AttemptRouteBinding
    kind: ProviderEvidenceKind
    dimension: str
    report: Report

    @property
    def chain(self) -> tuple[str, str, str, str]:
        """Attempt, deployment, kind and dimension."""
        return (self.binding.execution_attempt_id, self.binding.gateway_deployment_id, self.kind, self.dimension)


def route_snapshot(
    route_id: str, provider_key: str, cost_dimensions: Iterable[CostDimension], *, captured_at: str
) -> GatewayRouteSnapshot:
    """A route as it is now; its cost dimensions in any order (REF-23)."""
    dimensions = sorted(cost_dimensions, key=lambda one: one.source_evidence_dimension_key)
    content = digest_of([one.to_json() for one in dimensions])
    return GatewayRouteSnapshot.assemble(
        gateway_route_snapshot_ref=det("gateway_route_snapshot", route_id, provider_key, content),
        route_id=route_id,
        provider_key=provider_key,
        cost_dimensions=dimensions,
        captured_at=captured_at,
    )


def route_binding(
    snapshot: GatewayRouteSnapshot, *, execution_attempt_id: str, gateway_deployment_id: str, bound_at: str
) -> AttemptRouteBinding:
    """Which route an attempt takes on a deployment (REF-23)."""
    return AttemptRouteBinding.assemble(
        attempt_route_binding_ref=det("attempt_route_binding", execution_attempt_id, gateway_deployment_id),
        **quad_fields("gateway_route_snapshot", snapshot.quad()),
        execution_attempt_id=execution_attempt_id,
        gateway_deployment_id=gateway_deployment_id,
        route_id=snapshot.route_id,
        bound_at=bound_at,
    )


def evidence(
    binding: AttemptRouteBinding,
    kind: ProviderEvidenceKind,
    dimension: str,
    *,
    value: str,
    measure: str,
    provider_record_digest: str,
    observed_at: str,
) -> GatewayEvidence:
    """One number that a provider reported (REF-22).

    Args:
        value: decimal text in canonical form.
        measure: the unit of a usage, the currency of a cost.
        provider_record_digest: of the record as the provider sent it, 64 hexadecimal digits.
    """
    return GatewayEvidence.assemble(
        gateway_evidence_ref=det(
            "gateway_evidence",
            binding.execution_attempt_id,
            binding.gateway_deployment_id,
            kind,
            dimension,
            provider_record_digest,
        ),
        kind=kind,
        dimension=dimension,
        value=value,
        unit=measure if kind == "provider_usage" else None,
        currency=measure if kind == "provider_cost" else None,
        provider_record_digest=provider_record_digest,
        observed_at=observed_at,
    )


def evidence_conflict(
    binding: AttemptRouteBinding,
    kind: ProviderEvidenceKind,
    dimension: str,
    *,
    candidate_digest: str,
    detected_at: str,
    conflict_kind: ConflictKind = "evidence",
    reason_code: ConflictReason = "evidence_differs",
) -> GatewayEvidenceConflictFact:
    """Two claims about the evidence of a chain exclude each other (REF-24); the digest is that of the refused one."""
    chain = EvidenceChain(
        execution_attempt_id=binding.execution_attempt_id,
        gateway_deployment_id=binding.gateway_deployment_id,
        provider_evidence_kind=kind,
        evidence_dimension_key=dimension,
    )
    return GatewayEvidenceConflictFact.assemble(
        gateway_evidence_conflict_fact_ref=det("gateway_evidence_conflict_fact", chain.to_json(), candidate_digest),
        **chain.model_dump(),
        conflict_kind=conflict_kind,
        conflicting_candidate_digest_algorithm_version=ALGORITHM,
        conflicting_candidate_digest=candidate_digest,
        reason_code=reason_code,
        detected_at=detected_at,
    )


def binding_conflict(
    binding: AttemptRouteBinding,
    *,
    candidate_digest: str,
    detected_at: str,
    conflict_kind: ConflictKind = "binding",
    reason_code: ConflictReason = "binding_differs",
) -> GatewayBindingConflictFact:
    """Two claims about the route of an attempt exclude each other (REF-24); the digest is that of the refused one."""
    return GatewayBindingConflictFact.assemble(
        gateway_binding_conflict_fact_ref=det(
            "gateway_binding_conflict_fact",
            binding.execution_attempt_id,
            binding.gateway_deployment_id,
            candidate_digest,
        ),
        execution_attempt_id=binding.execution_attempt_id,
        gateway_deployment_id=binding.gateway_deployment_id,
        conflict_kind=conflict_kind,
        conflicting_candidate_digest_algorithm_version=ALGORITHM,
        conflicting_candidate_digest=candidate_digest,
        reason_code=reason_code,
        detected_at=detected_at,
    )


def snapshot(statement: Statement, before: Quint | None, *, recorded_at: str) -> GatewayEvidenceAvailabilitySnapshot:
    """A statement as the successor of the current one of its chain, or as its first (REF-22)."""
    attempt, deployment, kind, dimension = statement.chain
    predecessor: Absent | GatewayEvidenceAvailabilityPresent = Absent()
    version = 1
    if before is not None:
        version = before.state_version + 1
        predecessor = GatewayEvidenceAvailabilityPresent(
            **quad_fields("gateway_evidence_availability_snapshot", before.quad),
            gateway_evidence_availability_snapshot_state_version=before.state_version,
        )
    return GatewayEvidenceAvailabilitySnapshot.assemble(
        gateway_evidence_availability_snapshot_ref=det(
            "gateway_evidence_availability_snapshot", attempt, deployment, kind, dimension, version
        ),
        gateway_evidence_availability_snapshot_state_version=version,
        execution_attempt_id=attempt,
        gateway_deployment_id=deployment,
        provider_evidence_kind=kind,
        evidence_dimension_key=dimension,
        **quad_fields("attempt_execution_manifest", statement.manifest.quad()),
        **quad_fields("attempt_route_binding", statement.binding.quad()),
        **quad_fields("gateway_route_snapshot", quad_of(statement.binding, "gateway_route_snapshot")),
        predecessor=predecessor,
        availability=_availability(statement.report),
        recorded_at=recorded_at,
    )


def _availability(
    report: Report,
) -> (
    AvailabilityAvailable
    | AvailabilityConflicting
    | AvailabilityPending
    | AvailabilityNotReported
    | AvailabilityUnavailable
):
    if isinstance(report, GatewayEvidence):
        return AvailabilityAvailable(**quad_fields("gateway_evidence", report.quad()))
    if isinstance(report, GatewayEvidenceConflictFact):
        return AvailabilityConflicting(
            **quad_fields("gateway_evidence_conflict_fact", report.quad()), state_reason_code=DIFFERING
        )
    return report
