"""The chain of decisions that resolves a finalization case (ADR-031; CASE-25, REF-41, REF-42).

request → preview → approval by somebody else → candidate → decision → signed grant. Nothing in it carries an amount, a
ledger entry or a wish to ignore the conflict: the only action is to evaluate the owners' state again (CASE-22). Billing
applies the grant; operations ends the case when billing's event says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal
from uuid import uuid4

from oceanway.contracts.errors import Incomplete, InvalidArgument, NotFound, Stale
from oceanway.contracts.events import FinalizationReconciliationCaseRequested
from oceanway.contracts.facts.resolution import (
    CommandFields,
    FinalizationReconciliationApproval,
    FinalizationReconciliationCandidate,
    FinalizationReconciliationDecision,
    FinalizationReconciliationGrant,
    FinalizationReconciliationRequest,
    InvestigationEvidenceReference,
    references_digest,
    resolution_operation_id,
)
from oceanway.contracts.identity import Quad, det, quad_fields, quad_of
from oceanway.contracts.release import PROJECTION
from oceanway.operations import chain as chains
from oceanway.operations import store_decisions, store_queries
from oceanway.operations.chain import Chain, moment_of
from seapost.contracts.canonical import check_canonical
from seapost.contracts.identifiers import write_timestamp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from psycopg import Connection

APPROVAL_LIFETIME: Final = timedelta(hours=1)
GRANT_LIFETIME_SECONDS_MAX: Final = 300
GRANT_LIFETIME_SECONDS: Final = 60

_COMMAND: Final = tuple(CommandFields.model_fields)
_REQUEST: Final = "finalization_reconciliation_request"
_CANDIDATE: Final = "finalization_reconciliation_candidate"
_DECISION: Final = "finalization_reconciliation_decision"
_BILLING_DECISION: Final = "billing_finalization_decision"


@dataclass(frozen=True, slots=True)
class Preview:
    """What a resolution of a case would set in motion: one evaluation of the owners' current state, nothing else.

    Attributes:
        decision: the decision of billing that requested the case, and that would be taken anew.
        reason: why it could not settle the run.
        work_generation: of the work that decided so; a resolution schedules a later one.
    """

    case_ref: str
    state: str
    run_id: str
    billing_reservation_id: str
    billing_finalization_fence_id: str
    generation: int
    decision: Quad
    reason: str
    work_generation: int
    action: Literal["reevaluate_current_owner_state"] = "reevaluate_current_owner_state"


def preview(connection: Connection[Any], case_ref: str, *, version: str = PROJECTION[1]) -> Preview:
    """Show what a resolution of this case would set in motion.

    Raises:
        NotFound: there is no such case.
    """
    state, event = _case(connection, case_ref, version)
    return Preview(
        case_ref=case_ref,
        state=state,
        run_id=event.run_id,
        billing_reservation_id=event.billing_reservation_id,
        billing_finalization_fence_id=event.billing_finalization_fence_id,
        generation=event.reconciliation_generation,
        decision=quad_of(event, _BILLING_DECISION),
        reason=event.reason,
        work_generation=event.triggering_billing_finalization_work_generation,
    )


def request_resolution(
    connection: Connection[Any],
    case_ref: str,
    *,
    actor: str,
    references: Sequence[InvestigationEvidenceReference],
    version: str = PROJECTION[1],
    now: datetime | None = None,
) -> FinalizationReconciliationRequest:
    """Ask for an open case to be re-evaluated.

    Raises:
        NotFound: there is no such case.
        Stale: it is not open any more.
        OwnerConflict: somebody asked otherwise, and that chain still goes on.
        ContractError: the references are empty, unsorted, repeated or of an unknown type.
    """
    _, event = _open_case(connection, case_ref, version)
    moment = moment_of(now)
    operation_id = resolution_operation_id(case_ref, event.reconciliation_generation)
    chain = _chain(connection, operation_id, moment)
    identity = "finalization_case_identity_reservation"
    names = set(_COMMAND) & FinalizationReconciliationCaseRequested.model_fields.keys()
    request = FinalizationReconciliationRequest.assemble(
        finalization_reconciliation_request_ref=det(_REQUEST, chain.chain_id),
        **{name: getattr(event, name) for name in names - quad_fields(identity, quad_of(event, identity)).keys()},
        **quad_fields(identity, quad_of(event, identity)),
        resolution_revision=1,
        resolution_operation_id=operation_id,
        action="reevaluate_current_owner_state",
        actor_workforce_principal_id=actor,
        investigation_evidence_references=list(references),
        requested_at=write_timestamp(moment),
    )
    return chains.record(connection, chain, (1, "request"), request, after=None, actor=actor)


def approve(
    connection: Connection[Any],
    case_ref: str,
    *,
    approver: str,
    seen: Quad,
    version: str = PROJECTION[1],
    now: datetime | None = None,
) -> FinalizationReconciliationApproval:
    """Approve the request of a case for a limited time, after its preview.

    Args:
        approver: anybody but who asked.
        seen: the decision that the preview showed.

    Raises:
        InvalidArgument: the requester approves.
        Stale: the case is not open, or the preview showed another decision.
        Incomplete: nobody asked.
    """
    moment = moment_of(now)
    chain, event = _running(connection, case_ref, version, moment)
    request = chain.step("request", FinalizationReconciliationRequest)
    if approver == request.actor_workforce_principal_id:
        raise InvalidArgument("A request is approved by somebody else than who asked.")
    if seen != quad_of(event, _BILLING_DECISION):
        raise Stale("The approval is about another decision than the case's.")
    approval = FinalizationReconciliationApproval.assemble(
        finalization_reconciliation_approval_ref=det("finalization_reconciliation_approval", chain.chain_id),
        **quad_fields(_REQUEST, request.quad()),
        **quad_fields(_BILLING_DECISION, seen),
        approver_workforce_principal_id=approver,
        approved_at=write_timestamp(moment),
        expires_at=write_timestamp(moment + APPROVAL_LIFETIME),
    )
    if chain.has("approval"):
        first = chain.step("approval", FinalizationReconciliationApproval)
        if first.approver_workforce_principal_id == approver:
            return first
    return chains.record(connection, chain, (2, "approval"), approval, after=request, actor=approver)


def prepare_candidate(
    connection: Connection[Any], case_ref: str, *, version: str = PROJECTION[1], now: datetime | None = None
) -> FinalizationReconciliationCandidate:
    """Write the resolution as it would be applied.

    Raises:
        Incomplete: the request or its approval is missing.
        Stale: the case is not open.
    """
    moment = moment_of(now)
    chain, _ = _running(connection, case_ref, version, moment)
    request = chain.step("request", FinalizationReconciliationRequest)
    approval = chain.step("approval", FinalizationReconciliationApproval)
    candidate = FinalizationReconciliationCandidate.assemble(
        finalization_reconciliation_candidate_ref=det(_CANDIDATE, chain.chain_id),
        **{name: getattr(request, name) for name in _COMMAND},
        **quad_fields(_REQUEST, request.quad()),
        **quad_fields("finalization_reconciliation_approval", approval.quad()),
        prepared_at=write_timestamp(moment),
    )
    actor = request.actor_workforce_principal_id
    return chains.record(connection, chain, (3, "candidate"), candidate, after=approval, actor=actor)


def decide(
    connection: Connection[Any],
    case_ref: str,
    *,
    verdict: Literal["granted", "refused"],
    version: str = PROJECTION[1],
    now: datetime | None = None,
) -> FinalizationReconciliationDecision:
    """Let the candidate go ahead, or not.

    Raises:
        Incomplete: there is no candidate.
        Stale: the case is not open.
        OwnerConflict: it was decided otherwise.
    """
    moment = moment_of(now)
    chain, _ = _running(connection, case_ref, version, moment)
    request = chain.step("request", FinalizationReconciliationRequest)
    candidate = chain.step("candidate", FinalizationReconciliationCandidate)
    decision = FinalizationReconciliationDecision.assemble(
        finalization_reconciliation_decision_ref=det(_DECISION, chain.chain_id),
        **{name: getattr(candidate, name) for name in _COMMAND},
        **quad_fields(_REQUEST, request.quad()),
        **quad_fields(_CANDIDATE, candidate.quad()),
        verdict=verdict,
        decided_at=write_timestamp(moment),
    )
    actor = candidate.actor_workforce_principal_id
    return chains.record(connection, chain, (4, "decision"), decision, after=candidate, actor=actor)


@dataclass(frozen=True, slots=True)
class Granted:
    """Everything that the admin command gateway presents to billing; the token is in no representation."""

    request: FinalizationReconciliationRequest
    candidate: FinalizationReconciliationCandidate
    decision: FinalizationReconciliationDecision
    grant: FinalizationReconciliationGrant
    token: str

    def __repr__(self) -> str:
        return f"Granted(grant={self.grant.finalization_reconciliation_grant_ref!r})"


def mint_grant(
    connection: Connection[Any],
    case_ref: str,
    *,
    key: Ed25519PrivateKey,
    bound_workload: str,
    lifetime_seconds: int = GRANT_LIFETIME_SECONDS,
    version: str = PROJECTION[1],
    now: datetime | None = None,
) -> Granted:
    """Sign the one grant of a granted decision; asked again while it lasts, the same one.

    Args:
        key: of operations.
        bound_workload: the workload that will present the command to billing, `sub` of its own token (SEC-14).
        lifetime_seconds: 1 to 300.

    Raises:
        Incomplete: there is no decision, or it refused.
        InvalidArgument: the lifetime is out of range.
        Stale: the case is not open.
        OwnerConflict: the grant is bound to another workload.
    """
    if not 1 <= lifetime_seconds <= GRANT_LIFETIME_SECONDS_MAX:
        raise InvalidArgument(f"A grant lives 1 to {GRANT_LIFETIME_SECONDS_MAX} seconds.")
    moment = moment_of(now)
    chain, event = _running(connection, case_ref, version, moment)
    request = chain.step("request", FinalizationReconciliationRequest)
    candidate = chain.step("candidate", FinalizationReconciliationCandidate)
    decision = chain.step("decision", FinalizationReconciliationDecision)
    if decision.verdict != "granted":
        raise Incomplete("The decision refused the candidate.")
    first = chain.step("grant", FinalizationReconciliationGrant) if chain.has("grant") else None
    issued_at = int(moment.timestamp()) if first is None else first.iat
    grant = FinalizationReconciliationGrant.assemble(
        finalization_reconciliation_grant_ref=det("finalization_reconciliation_grant", chain.chain_id),
        jti=uuid4().hex if first is None else first.jti,
        iss="operations",
        aud="billing",
        sub=bound_workload,
        actor_workforce_principal_id=candidate.actor_workforce_principal_id,
        action=candidate.action,
        request_digest=request.quad().digest,
        candidate_digest=candidate.quad().digest,
        decision_digest=decision.quad().digest,
        case_ref=case_ref,
        generation=event.reconciliation_generation,
        resolution_revision=1,
        investigation_evidence_references_digest=references_digest(candidate.investigation_evidence_references),
        iat=issued_at,
        exp=issued_at + lifetime_seconds if first is None else first.exp,
    )
    actor = candidate.actor_workforce_principal_id
    stored = chains.record(connection, chain, (5, "grant"), grant, after=decision, actor=actor)
    store_decisions.issue_grant(
        connection,
        chain_id=chain.chain_id,
        grant_jti=stored.jti,
        grant_digest=stored.quad().digest,
        expires_at=datetime.fromtimestamp(stored.exp, tz=moment.tzinfo),
    )
    return Granted(request, candidate, decision, stored, chains.sign_grant(stored, key))


def _case(
    connection: Connection[Any], case_ref: str, version: str
) -> tuple[str, FinalizationReconciliationCaseRequested]:
    stored = store_queries.case(connection, version=version, case_ref=case_ref)
    if stored is None:
        raise NotFound("There is no such case.")
    envelope: Any = check_canonical(stored.request_envelope)
    return stored.state, FinalizationReconciliationCaseRequested.decode(envelope["payload"])


def _open_case(
    connection: Connection[Any], case_ref: str, version: str
) -> tuple[str, FinalizationReconciliationCaseRequested]:
    state, event = _case(connection, case_ref, version)
    if state != "open":
        raise Stale("The case is not open any more.")
    return state, event


def _running(
    connection: Connection[Any], case_ref: str, version: str, moment: datetime
) -> tuple[Chain, FinalizationReconciliationCaseRequested]:
    _, event = _open_case(connection, case_ref, version)
    operation_id = resolution_operation_id(case_ref, event.reconciliation_generation)
    return _chain(connection, operation_id, moment), event


def _chain(connection: Connection[Any], operation_id: str, moment: datetime) -> Chain:
    def is_over(chain: Chain) -> bool:
        if chain.has("grant"):
            return chain.step("grant", FinalizationReconciliationGrant).exp <= moment.timestamp()
        if chain.has("decision") and _is_refused(chain):
            return True
        if chain.has("approval"):
            approval = chain.step("approval", FinalizationReconciliationApproval)
            return datetime.fromisoformat(approval.expires_at) <= moment
        return False

    return chains.current(connection, operation_id, is_over)


def _is_refused(chain: Chain) -> bool:
    return chain.step("decision", FinalizationReconciliationDecision).verdict == "refused"
