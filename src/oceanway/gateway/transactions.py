"""What the gateway does in one transaction each (TX-15). The caller owns the transaction; nothing here commits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from oceanway.contracts.envelopes import envelope_of
from oceanway.contracts.events.gateway import GatewayEvidenceAvailabilityCurrentChanged
from oceanway.contracts.facts.gateway import GatewayEvidence, GatewayEvidenceConflictFact
from oceanway.contracts.identity import Quint, quad_fields, quad_of
from oceanway.gateway import documents, store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psycopg import Connection

    from oceanway.contracts.facts.gateway import (
        AttemptRouteBinding,
        GatewayBindingConflictFact,
        GatewayEvidenceAvailabilitySnapshot,
        GatewayRouteSnapshot,
        ProviderEvidenceKind,
    )
    from oceanway.gateway.documents import Statement
    from seapost.contracts.envelope import PreparedEvent

    Chain = tuple[str, str, str, str]


def bind_routes(connection: Connection[Any], routes: Sequence[tuple[GatewayRouteSnapshot, AttemptRouteBinding]]) -> int:
    """Bind attempts to routes as they are now; how many bindings are new (REF-23).

    Raises:
        OwnerConflict: an attempt is bound to another route of the deployment.
        InvalidArgument: a binding does not name its snapshot.
    """
    return store.bind_routes(
        connection,
        snapshots=[snapshot.canonical() for snapshot, _ in routes],
        bindings=[binding.canonical() for _, binding in routes],
    )


def record_pre_binding(
    connection: Connection[Any],
    *,
    snapshot_id: str,
    gateway_deployment_id: str,
    route_id: str,
    kind: ProviderEvidenceKind,
    dimension: str,
    state: Literal["available", "pending", "not_reported", "unavailable"],
) -> None:
    """Keep what a deployment can report on a route before any attempt is bound; there is no event (APP-17).

    Raises:
        OwnerConflict: the snapshot is known with other content.
    """
    store.record_pre_binding(
        connection,
        snapshot=snapshot_id,
        deployment=gateway_deployment_id,
        route=route_id,
        kind=kind,
        dimension=dimension,
        state=state,
    )


def current_availability(connection: Connection[Any], chains: Sequence[Chain]) -> list[Quint | None]:
    """The current statement of chains of attempt, deployment, kind and dimension, in order; None without one."""
    return store.current(connection, chains=chains)


def advance_availability(
    connection: Connection[Any], statements: Sequence[Statement], *, recorded_at: str
) -> list[GatewayEvidenceAvailabilitySnapshot]:
    """Say what is available now: each chain advances by one, with its only event, all or none (TX-15, APP-16).

    Args:
        statements: several about one chain follow each other.
        recorded_at: RFC 3339 in UTC with microseconds.

    Raises:
        Stale: somebody else advanced one of the chains at this moment; redo the transaction.
        NotFound: an attempt is not bound.
        InvalidArgument: the manifest of an attempt is not that of its chain.
    """
    chains = list({statement.chain: None for statement in statements})
    current = dict(zip(chains, store.current(connection, chains=chains), strict=True))
    snapshots: list[GatewayEvidenceAvailabilitySnapshot] = []
    for statement in statements:
        snapshot = documents.snapshot(statement, current[statement.chain], recorded_at=recorded_at)
        current[statement.chain] = quint(snapshot)
        snapshots.append(snapshot)
    reports = [statement.report for statement in statements]
    store.advance(
        connection,
        snapshots=[snapshot.canonical() for snapshot in snapshots],
        evidence=[one.canonical() if isinstance(one, GatewayEvidence) else store.NOTHING for one in reports],
        conflicts=[
            one.canonical() if isinstance(one, GatewayEvidenceConflictFact) else store.NOTHING for one in reports
        ],
        events=[
            _current_changed(statement, snapshot).envelope
            for statement, snapshot in zip(statements, snapshots, strict=True)
        ],
    )
    return snapshots


def quint(snapshot: GatewayEvidenceAvailabilitySnapshot) -> Quint:
    """The complete identity of a statement."""
    quad = snapshot.quad()
    version = snapshot.gateway_evidence_availability_snapshot_state_version
    return Quint(quad.ref, quad.schema_version, quad.digest_algorithm_version, quad.digest, version)


def declare_evidence_conflict(connection: Connection[Any], fact: GatewayEvidenceConflictFact) -> None:
    """Answer reads about this chain with `conflicting` until the repair (REF-24).

    Raises:
        OwnerConflict: another conflict of the chain is open, or this one was repaired.
        NotFound: the chain has no statement.
    """
    store.declare_evidence_conflict(connection, document=fact.canonical())


def repair_evidence(connection: Connection[Any], chain: Chain) -> bool:
    """End the open conflict of a chain; whether there was one."""
    return store.repair_evidence(connection, chain=chain)


def declare_binding_conflict(connection: Connection[Any], fact: GatewayBindingConflictFact) -> None:
    """Answer reads about the route of this attempt with `conflicting` until the repair (REF-24).

    Raises:
        OwnerConflict: another conflict of the binding is open, or this one was repaired.
        NotFound: the attempt is not bound.
    """
    store.declare_binding_conflict(connection, document=fact.canonical())


def repair_binding(connection: Connection[Any], *, execution_attempt_id: str, gateway_deployment_id: str) -> bool:
    """End the open conflict of a binding; whether there was one."""
    return store.repair_binding(connection, attempt=execution_attempt_id, deployment=gateway_deployment_id)


def _current_changed(statement: Statement, snapshot: GatewayEvidenceAvailabilitySnapshot) -> PreparedEvent:
    event = GatewayEvidenceAvailabilityCurrentChanged(
        execution_attempt_id=snapshot.execution_attempt_id,
        gateway_deployment_id=snapshot.gateway_deployment_id,
        provider_evidence_kind=snapshot.provider_evidence_kind,
        evidence_dimension_key=snapshot.evidence_dimension_key,
        **quad_fields("attempt_execution_manifest", statement.manifest.quad()),
        **quad_fields("attempt_route_binding", statement.binding.quad()),
        **quad_fields("gateway_route_snapshot", quad_of(statement.binding, "gateway_route_snapshot")),
        **quad_fields("current_availability", snapshot.quad()),
        current_availability_state_version=snapshot.gateway_evidence_availability_snapshot_state_version,
    )
    return envelope_of(event, correlation_id=statement.manifest.run_id, tenant=statement.manifest.tenant())
