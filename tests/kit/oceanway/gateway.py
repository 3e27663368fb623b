"""Routes and reports of the gateway: each attempt is one that no other test knows."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from oceanway.contracts.facts.gateway import CostDimension
from oceanway.gateway.documents import Statement, evidence, route_binding, route_snapshot
from tests.kit.oceanway.core import NOW, new_manifest
from tests.kit.oceanway.execution import attempt_of

if TYPE_CHECKING:
    from oceanway.contracts.facts.admission import RunAdmissionManifest
    from oceanway.contracts.facts.execution import AttemptExecutionManifest
    from oceanway.contracts.facts.gateway import (
        AttemptRouteBinding,
        GatewayEvidence,
        GatewayRouteSnapshot,
        ProviderEvidenceKind,
    )
    from oceanway.gateway.documents import Report

DEPLOYMENT: Final = "deployment-1"


def new_route(route_id: str = "route-1", mapping: str = "1") -> GatewayRouteSnapshot:
    """Make a route with one cost dimension."""
    cost = CostDimension(source_evidence_dimension_key="cost", currency="EUR", cost_mapping_version=mapping)
    return route_snapshot(route_id, "provider-1", [cost], captured_at=NOW)


def new_binding(route: GatewayRouteSnapshot | None = None, attempt: str | None = None) -> AttemptRouteBinding:
    """Make the binding of a new attempt."""
    return route_binding(
        route or new_route(),
        execution_attempt_id=attempt or f"attempt-{uuid4().hex}",
        gateway_deployment_id=DEPLOYMENT,
        bound_at=NOW,
    )


def bound_attempt(
    admission: RunAdmissionManifest | None = None, step: str = "step-1"
) -> tuple[GatewayRouteSnapshot, AttemptRouteBinding, AttemptExecutionManifest]:
    """Make an attempt with its route: what the gateway binds and what execution registers."""
    route = new_route()
    binding = new_binding(route)
    return route, binding, attempt_of(admission or new_manifest(), step, binding)


def used(binding: AttemptRouteBinding, value: str, *, record: str = "", dimension: str = "tokens") -> GatewayEvidence:
    """Make a reported usage."""
    return _reported(binding, "provider_usage", dimension, value, record)


def cost(binding: AttemptRouteBinding, value: str, *, record: str = "") -> GatewayEvidence:
    """Make a reported cost."""
    return _reported(binding, "provider_cost", "cost", value, record)


def stating(
    manifest: AttemptExecutionManifest,
    binding: AttemptRouteBinding,
    report: Report,
    *,
    kind: ProviderEvidenceKind = "provider_usage",
    dimension: str = "tokens",
) -> Statement:
    """Make a statement about a chain of an attempt."""
    return Statement(manifest, binding, kind, dimension, report)


def _reported(
    binding: AttemptRouteBinding, kind: ProviderEvidenceKind, dimension: str, value: str, record: str
) -> GatewayEvidence:
    return evidence(
        binding,
        kind,
        dimension,
        value=value,
        measure="token" if kind == "provider_usage" else "EUR",
        provider_record_digest=sha256(f"{value} {record}".encode()).hexdigest(),
        observed_at=NOW,
    )
