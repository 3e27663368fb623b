"""The questions, checks and documents of finalization cases, from their events (CASE-06, CASE-09, CASE-22)."""

from __future__ import annotations

from typing import Any, Final

from oceanway.contracts.events import (
    FinalizationReconciliationCaseRequested,
    FinalizationReconciliationResolutionAppliedEvent,
)
from oceanway.contracts.facts.cases import CaseCauseFields, CaseRequestFields, PendingFinalizationCaseSuccessor
from oceanway.contracts.facts.finalization import BillingFinalizationDecision, DecisionReconciliationRequired
from oceanway.contracts.facts.resolution import FinalizationReconciliationResolutionApplied
from oceanway.contracts.identity import ALGORITHM, Quad, det, quad_fields, quad_of
from oceanway.contracts.reads_billing import DecisionForOperations, ResolutionForOperations
from oceanway.operations.cases import Case, Request, Resolution
from oceanway.operations.refusals import refuse
from oceanway.operations.store_projection import KnownGeneration

_REQUEST: Final = tuple(CaseRequestFields.model_fields)
_CAUSE: Final = tuple(CaseCauseFields.model_fields)
_IDENTITY: Final = "finalization_case_identity_reservation"
_RESOLUTION: Final = "finalization_reconciliation_resolution_applied"


def decision_question(event: FinalizationReconciliationCaseRequested) -> DecisionForOperations:
    """Every identity that a request states."""
    return DecisionForOperations(**{name: getattr(event, name) for name in DecisionForOperations.model_fields})


def verify_decision(event: FinalizationReconciliationCaseRequested, decision: BillingFinalizationDecision) -> None:
    """Require the owner's decision to be the one that requests this case, item by item (CASE-06).

    Raises:
        Reject: an identity, the work, the operation or the reason differs.
    """
    outcome = decision.outcome
    fits = (
        decision.quad() == quad_of(event, "billing_finalization_decision")
        and decision.billing_finalization_operation_id == event.billing_finalization_operation_id
        and quad_of(decision, "billing_finalization_work") == quad_of(event, "triggering_billing_finalization_work")
        and decision.work_generation == event.triggering_billing_finalization_work_generation
        and isinstance(outcome, DecisionReconciliationRequired)
        and outcome.reason.kind == event.reason
    )
    if not fits:
        raise refuse("the owner's decision does not request this case")


def resolution_question(event: FinalizationReconciliationResolutionAppliedEvent) -> ResolutionForOperations:
    """Every identity that a resolution event states."""
    return ResolutionForOperations(**{name: getattr(event, name) for name in ResolutionForOperations.model_fields})


def verify_resolution(
    event: FinalizationReconciliationResolutionAppliedEvent, fact: FinalizationReconciliationResolutionApplied
) -> None:
    """Require the owner's fact to be the one that the event announces, item by item.

    Raises:
        Reject: anything differs.
    """
    stated = ResolutionForOperations.model_fields.keys() - quad_fields(_RESOLUTION, fact.quad()).keys()
    fits = fact.quad() == quad_of(event, _RESOLUTION) and all(
        getattr(fact, name) == getattr(event, name) for name in stated
    )
    if not fits:
        raise refuse("the owner's fact is not the resolution of this event")


def known_requests(known: list[KnownGeneration]) -> dict[int, Request]:
    """The requests of a fence by generation."""
    return {
        one.generation: Request(one.request_event_id, one.case_ref)
        for one in known
        if one.request_event_id is not None and one.case_ref is not None
    }


def known_resolutions(known: list[KnownGeneration]) -> dict[int, Resolution]:
    """The resolutions of a fence by generation."""
    return {
        one.generation: Resolution(one.resolution_event_id, one.fact_ref, one.fact_digest)
        for one in known
        if one.resolution_event_id is not None and one.fact_ref is not None and one.fact_digest is not None
    }


def pending_successor(
    event: FinalizationReconciliationCaseRequested,
    predecessor: Quad,
    *,
    event_id: str,
    envelope: bytes,
    envelope_sha256: str,
    recorded_at: str,
) -> PendingFinalizationCaseSuccessor:
    """The successor that this request is until its predecessor has ended (CASE-09)."""
    return PendingFinalizationCaseSuccessor.assemble(
        pending_finalization_case_successor_ref=det("pending_finalization_case_successor", event_id),
        **{name: getattr(event, name) for name in (*_REQUEST, *_CAUSE)},
        **quad_fields(_IDENTITY, quad_of(event, _IDENTITY)),
        **quad_fields("predecessor_finalization_case_identity_reservation", predecessor),
        case_requested_event_id=event_id,
        case_requested_envelope_digest_algorithm_version=ALGORITHM,
        case_requested_envelope_sha256=envelope_sha256,
        case_requested_envelope=envelope.decode(),
        recorded_at=recorded_at,
    )


def row_of(case: Case) -> dict[str, Any]:
    """A decided case as `case_materialise` reads it."""
    ended, follows = case.ended_by, case.follows
    return {
        "generation": case.generation,
        "state": case.state,
        "case_ref": case.request.case_ref,
        "request_event_id": str(case.request.event_id),
        "resolution_event_id": None if ended is None else str(ended.event_id),
        "fact_ref": None if ended is None else ended.fact_ref,
        "fact_digest": None if ended is None else ended.fact_digest,
        "consumed_by_event_id": None if follows is None else str(follows.event_id),
        "consumed_by_fact_ref": None if follows is None else follows.fact_ref,
        "consumed_by_fact_digest": None if follows is None else follows.fact_digest,
    }
