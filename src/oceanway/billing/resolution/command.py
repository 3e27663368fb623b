"""The command that resolves a finalization case (TX-27, CASE-15 to CASE-22).

Order of checks, and why: an operation that was applied is answered from its fact, whatever its grant is worth today
(CASE-20); else the request, candidate and decision must be one chain; else the grant must be authentic, current, and
for this chain and this caller; then one transaction consumes the grant and writes fact, audit and event. The command
carries no amount and decides nothing: the coordinator re-evaluates through the owners' reads (CASE-22).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from oceanway.billing import store_finalization as store
from oceanway.billing.grants import read_grant, verify_grant
from oceanway.contracts.envelopes import envelope_of
from oceanway.contracts.errors import InvalidArgument, OwnerConflict
from oceanway.contracts.events.billing import FinalizationReconciliationResolutionAppliedEvent
from oceanway.contracts.facts.resolution import (
    CommandFields,
    FinalizationReconciliationCandidate,
    FinalizationReconciliationDecision,
    FinalizationReconciliationGrant,
    FinalizationReconciliationRequest,
    FinalizationReconciliationResolutionApplied,
    references_digest,
)
from oceanway.contracts.identity import det, quad_fields, quad_of
from seapost.contracts.identifiers import write_timestamp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from psycopg import Connection

    from oceanway.contracts.identity import Quad
    from oceanway.contracts.reads_billing import ResolutionByOperation

COMMAND_FIELDS = tuple(CommandFields.model_fields)
"""What request, candidate, decision and fact say alike."""


@dataclass(frozen=True, slots=True)
class ResolutionCommand:
    """What the admin command gateway presents.

    Attributes:
        grant: the signed token; it is in no representation.
    """

    request: FinalizationReconciliationRequest
    candidate: FinalizationReconciliationCandidate
    decision: FinalizationReconciliationDecision
    grant: str = field(repr=False)


def apply_resolution(
    connection: Connection[Any],
    command: ResolutionCommand,
    *,
    caller: str,
    grant_keys: Sequence[Ed25519PublicKey],
    now: datetime | None = None,
) -> FinalizationReconciliationResolutionApplied:
    """Apply a resolution in the caller's transaction, or return the first fact of this operation.

    Args:
        caller: the workload that presents the command, `sub` of its own verified token.
        grant_keys: with which operations signs grants; two while a key is rotated.
        now: an aware moment; the clock by default.

    Raises:
        InvalidToken: the grant is not authentic, not current, or for something else.
        InvalidArgument: request, candidate and decision are not one granted chain.
        OwnerConflict: the operation was applied with another actor, chain or grant.
        GrantConsumed: another command consumed the grant.
        NotFound: billing never entered this case with this identity.
        Stale: the fence is not in this case.
    """
    moment = datetime.now(UTC) if now is None else now
    grant = read_grant(command.grant, grant_keys, contract=FinalizationReconciliationGrant)
    first = applied_by_operation(connection, command, grant)
    if first is not None:
        return first
    require_chain(command)
    _ = verify_grant(
        command.grant,
        grant_keys,
        contract=FinalizationReconciliationGrant,
        caller=caller,
        expected=_allowed(command),
        now=moment.timestamp(),
    )
    fact = _fact(command, grant, write_timestamp(moment))
    event = envelope_of(
        _event(fact),
        causation_id=store.read_case_request(connection, fact.reconciliation_case_ref),
        operation_id=fact.resolution_operation_id,
        correlation_id=fact.run_id,
    )
    stored = store.apply_resolution(connection, fact=fact.canonical(), envelope=event.envelope)
    return FinalizationReconciliationResolutionApplied.decode(stored)


def applied_by_operation(
    connection: Connection[Any], command: ResolutionCommand, grant: FinalizationReconciliationGrant
) -> FinalizationReconciliationResolutionApplied | None:
    """The first fact of this operation, if there is one and it came from this very command (CASE-20)."""
    [document] = store.read_resolutions(connection, [command.candidate.resolution_operation_id])
    if document is None:
        return None
    fact = FinalizationReconciliationResolutionApplied.decode(document)
    if origin_of(fact) != (
        command.candidate.actor_workforce_principal_id,
        command.request.quad(),
        command.candidate.quad(),
        command.decision.quad(),
        grant.quad(),
        grant.jti,
    ):
        raise OwnerConflict("The operation was applied with another actor, chain or grant.")
    return fact


def origin_of(
    fact: FinalizationReconciliationResolutionApplied | ResolutionByOperation,
) -> tuple[str, Quad, Quad, Quad, Quad, str]:
    """Actor, request, candidate, decision, grant and its identifier: what a repetition must repeat (CASE-20)."""
    return (
        fact.actor_workforce_principal_id,
        quad_of(fact, "finalization_reconciliation_request"),
        quad_of(fact, "finalization_reconciliation_candidate"),
        quad_of(fact, "finalization_reconciliation_decision"),
        quad_of(fact, "finalization_reconciliation_grant"),
        fact.grant_jti,
    )


def require_chain(command: ResolutionCommand) -> None:
    """Raise `InvalidArgument` unless the three documents are one chain and it was granted (CASE-19)."""
    request, candidate, decision = command.request, command.candidate, command.decision
    for document in (request, candidate, decision):
        document.verify()
    for name in COMMAND_FIELDS:
        if not getattr(request, name) == getattr(candidate, name) == getattr(decision, name):
            raise InvalidArgument(f"Request, candidate and decision differ in {name}.")
    if decision.verdict != "granted":
        raise InvalidArgument("The decision refused the candidate.")
    links = (
        (candidate, "finalization_reconciliation_request", request.quad()),
        (decision, "finalization_reconciliation_request", request.quad()),
        (decision, "finalization_reconciliation_candidate", candidate.quad()),
    )
    for carrier, prefix, quad in links:
        if quad_of(carrier, prefix) != quad:
            raise InvalidArgument(f"{type(carrier).__name__} builds on another {prefix}.")


def _allowed(command: ResolutionCommand) -> dict[str, object]:
    """What the grant must repeat, by Python name (REF-42)."""
    candidate = command.candidate
    return {
        "actor_workforce_principal_id": candidate.actor_workforce_principal_id,
        "action": candidate.action,
        "request_digest": command.request.quad().digest,
        "candidate_digest": candidate.quad().digest,
        "decision_digest": command.decision.quad().digest,
        "case_ref": candidate.reconciliation_case_ref,
        "generation": candidate.reconciliation_generation,
        "resolution_revision": candidate.resolution_revision,
        "investigation_evidence_references_digest": references_digest(candidate.investigation_evidence_references),
    }


def _fact(
    command: ResolutionCommand, grant: FinalizationReconciliationGrant, applied_at: str
) -> FinalizationReconciliationResolutionApplied:
    candidate = command.candidate
    return FinalizationReconciliationResolutionApplied.assemble(
        finalization_reconciliation_resolution_applied_ref=det(
            "finalization_resolution_applied", candidate.resolution_operation_id
        ),
        **{name: getattr(candidate, name) for name in COMMAND_FIELDS},
        **quad_fields("finalization_reconciliation_request", command.request.quad()),
        **quad_fields("finalization_reconciliation_candidate", candidate.quad()),
        **quad_fields("finalization_reconciliation_decision", command.decision.quad()),
        **quad_fields("finalization_reconciliation_grant", grant.quad()),
        grant_jti=grant.jti,
        applied_at=applied_at,
    )


def _event(fact: FinalizationReconciliationResolutionApplied) -> FinalizationReconciliationResolutionAppliedEvent:
    names = FinalizationReconciliationResolutionAppliedEvent.model_fields
    return FinalizationReconciliationResolutionAppliedEvent(**{name: getattr(fact, name) for name in names})
