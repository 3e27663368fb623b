"""Finalization cases, their resolution, and what billing books afterwards (sections 13.1, 13.2 and 13.4)."""

from __future__ import annotations

from typing import Any

import pytest

from oceanway.contracts import events
from oceanway.contracts.facts import cases, execution, finalization, resolution, transitions
from oceanway.contracts.identity import ALGORITHM, det
from oceanway.contracts.reads_billing import ExposureChainFound, StepTransition
from oceanway.contracts.reads_operations import RESERVE_FINALIZATION_RECONCILIATION_CASE_IDENTITY
from seapost.model.errors import ContractError
from tests.kit.oceanway.documents import valid, variants
from tests.oceanway.unit.test_contract_works import refuse

IDENTITY = cases.FinalizationReconciliationCaseIdentityReservation
CHAIN = [
    resolution.FinalizationReconciliationRequest,
    resolution.FinalizationReconciliationCandidate,
    resolution.FinalizationReconciliationDecision,
    resolution.FinalizationReconciliationResolutionApplied,
]


@pytest.mark.req("CASE-02", "REF-39")
def test_an_identity_binds_subject_fence_generation_and_predecessor() -> None:
    """Case, operation and fence follow from the rest, and the predecessor is the generation before."""
    first = valid(IDENTITY)
    fence = det("finalization_fence", first.billing_reservation_id, first.run_id)
    assert first.reconciliation_case_ref == det("finalization_case", fence, 1)
    assert first.case_request_operation_id == det("case_request", fence, 1)
    for name in ("tenantId", "billingAccountId", "runId", "billingFinalizationFenceId", "predecessor"):
        refuse(first, (name,), None)
    for name in ("billingFinalizationFenceId", "reconciliationCaseRef", "caseRequestOperationId", "runId"):
        refuse(first, (name,), "another")
    refuse(first, ("reconciliationGeneration",), 2)
    refuse(first, ("expectedResolutionRevision",), 2)
    second = valid(IDENTITY, predecessor=valid(cases.CasePredecessorDirect))
    assert second.reconciliation_generation == 2
    refuse(second, ("predecessor", "reconciliationCaseRef"), "another")
    refuse(second, ("predecessor",), {"state": "none"})


@pytest.mark.req("CASE-03", "SEC-12", "NEG-29", "CASE-12")
@pytest.mark.parametrize(
    "name",
    [
        "billingFinalizationOperationId",
        "billingFinalizationWorkRef",
        "billingFinalizationWorkDigest",
        "workGeneration",
        "triggeringBillingFinalizationWorkGeneration",
    ],
)
def test_an_identity_knows_no_work(name: str) -> None:
    """Neither the digest nor the reservation's question can bind a work or a finalization operation."""
    refuse(valid(IDENTITY), (name,), "x")
    question: Any = valid(RESERVE_FINALIZATION_RECONCILIATION_CASE_IDENTITY.arguments).to_json()
    with pytest.raises(ContractError):
        _ = RESERVE_FINALIZATION_RECONCILIATION_CASE_IDENTITY.arguments.decode({**question, name: "x"})


@pytest.mark.req("CASE-05", "CASE-09")
def test_a_request_and_the_waiting_successor_are_self_contained() -> None:
    """Identity, decision, triggering work with its generation, operations and reason: each is required."""
    fields = valid(events.FinalizationReconciliationCaseRequested).to_json()
    successor = valid(cases.PendingFinalizationCaseSuccessor)
    needed = (
        "finalizationCaseIdentityReservationDigest",
        "billingFinalizationDecisionDigest",
        "triggeringBillingFinalizationWorkDigest",
        "triggeringBillingFinalizationWorkGeneration",
        "billingFinalizationOperationId",
        "caseRequestOperationId",
        "expectedResolutionRevision",
        "reason",
    )
    for name in needed:
        with pytest.raises(ContractError):
            _ = events.FinalizationReconciliationCaseRequested.decode({k: v for k, v in fields.items() if k != name})
        refuse(successor, (name,), None)
    for name in ("predecessorFinalizationCaseIdentityReservationDigest", "caseRequestedEnvelopeSha256"):
        refuse(successor, (name,), None)
    with pytest.raises(ContractError, match="no predecessor"):
        _ = valid(cases.PendingFinalizationCaseSuccessor, reconciliation_generation=1)


@pytest.mark.req("CASE-16", "CASE-18", "CASE-19", "CASE-22", "NEG-30")
@pytest.mark.parametrize("link", CHAIN)
def test_every_link_of_the_chain_has_the_same_closed_references(link: Any) -> None:  # noqa: ANN401 - a class
    """Not empty, sorted, without duplicates, of registered types only; and no amount or override anywhere."""
    document = valid(link)
    reference = document.to_json()["investigationEvidenceReferences"][0]
    earlier = {**reference, "reference": "a"}
    refuse(document, ("investigationEvidenceReferences",), [])
    refuse(document, ("investigationEvidenceReferences",), [reference, reference])
    refuse(document, ("investigationEvidenceReferences",), [reference, earlier])
    refuse(document, ("investigationEvidenceReferences",), [{**reference, "referenceType": "rumour"}])
    refuse(document, ("investigationEvidenceReferences",), [{**reference, "referenceSchemaVersion": "2"}])
    refuse(document, ("action",), "accept_provider_amount")
    refuse(document, ("resolutionRevision",), 2)
    refuse(document, ("resolutionOperationId",), "another")
    for name in ("amount", "ledgerDelta", "settlementInputSnapshotRef", "ignoreConflict", "reservationState"):
        refuse(document, (name,), "1")


@pytest.mark.req("CASE-16", "CASE-17", "CASE-22")
def test_a_resolution_event_orders_a_re_evaluation_and_nothing_else() -> None:
    """The action is a constant, the revision 1, and the case follows from fence and generation."""
    kind = events.FinalizationReconciliationResolutionAppliedEvent
    fields: dict[str, Any] = valid(kind).to_json()
    wrong: dict[str, Any] = {
        "action": "ignore_conflict",
        "resolutionRevision": 2,
        "reconciliationGeneration": 2,
        "reconciliationCaseRef": "another",
        "amount": "1",
    }
    for name, value in wrong.items():
        with pytest.raises(ContractError):
            _ = kind.decode({**fields, name: value})


@pytest.mark.req("REF-42", "SEC-14", "NEG-30")
def test_a_grant_is_for_one_audience_one_case_and_a_limited_time() -> None:
    """Issuer, audience and action are constants; it ends after it begins; the references are named by digest."""
    grant = valid(resolution.FinalizationReconciliationGrant)
    for name, value in (("aud", "operations"), ("iss", "billing"), ("action", "waive"), ("exp", 1), ("sub", None)):
        refuse(grant, (name,), value)
    refuse(valid(transitions.LateSettlementGrant), ("aud",), "operations")
    one = resolution.InvestigationEvidenceReference(
        reference_type="incident", reference_schema_version="1", reference="i-1"
    )
    other = one.model_copy(update={"reference": "i-2"})
    assert resolution.references_digest([one]) != resolution.references_digest([one, other])


@pytest.mark.req("CASE-31", "CASE-32", "NEG-32", "REF-50")
@pytest.mark.parametrize("kind", [transitions.SettlementTransition, events.SettlementTransitionCommitted])
def test_a_validation_belongs_to_one_revision_and_basis(kind: Any) -> None:  # noqa: ANN401 - a class
    """The operation follows from logical operation, dimension, revision and basis; no other revision can reuse it."""
    made = valid(kind)
    expected = det(
        "settlement_transition",
        made.logical_operation_id,
        made.billing_reservation_id,
        made.run_step_id,
        made.execution_attempt_id,
        made.charge_dimension_key,
        made.from_revision,
        ALGORITHM,
        made.basis_digest,
    )
    assert made.validation_operation_id == expected
    for changes in (
        {"from_revision": 2, "to_revision": 3},
        {"logical_operation_id": "another"},
        {"basis_digest": "0" * 64},
    ):
        with pytest.raises(ContractError):
            _ = valid(kind, **{"validation_operation_id": expected, **changes})


@pytest.mark.req("CASE-31", "NEG-32")
@pytest.mark.parametrize(
    "kind",
    [
        events.SettlementTransitionCommitted,
        events.LateSettlementCommandResultCommitted,
        events.LateSettlementCaseRequested,
        events.CaseResolutionApplied,
    ],
)
def test_a_step_has_no_gap(kind: Any) -> None:  # noqa: ANN401 - a class
    """The new revision is exactly one above the old one."""
    for revision in (1, 3):
        with pytest.raises(ContractError):
            _ = valid(kind, from_revision=1, to_revision=revision)


@pytest.mark.req("CASE-29", "CASE-31", "NEG-32")
def test_a_chain_of_steps_has_no_gap() -> None:
    """Each step begins where the one before ended."""
    basis = valid(transitions.SettlementTransition).basis
    steps = [
        StepTransition(
            transition=valid(
                transitions.SettlementTransition,
                from_revision=revision,
                basis=basis.model_copy(update={"dimension_state_revision": revision}),
            )
        )
        for revision in (1, 2, 3)
    ]
    assert ExposureChainFound(chain_count=3, chain=list(steps))
    for chain in ([steps[0], steps[2]], [steps[1], steps[0]]):
        with pytest.raises(ContractError, match="A step is missing"):
            _ = ExposureChainFound(chain_count=2, chain=list(chain))
    with pytest.raises(ContractError):
        _ = ExposureChainFound(chain_count=2, chain=list(steps))


@pytest.mark.req("CASE-27", "REF-50")
def test_an_exposure_fits_the_kind_of_its_transition() -> None:
    """An opening books nothing and makes the case of its own revision; a resolution ends one; an adjustment may not."""
    found = {(one.kind, one.exposure.state) for one in variants(transitions.SettlementTransition)}
    assert found <= {("adjust", "none"), ("adjust", "open"), ("request_open", "open"), ("resolve", "resolved")}
    opening = valid(transitions.SettlementTransition, kind="request_open")
    refuse(opening, ("ledgerDelta",), "1")
    refuse(opening, ("exposure", "caseRef"), "another")
    refuse(opening, ("exposure",), {"state": "none"})
    refuse(opening, ("kind",), "resolve")
    with pytest.raises(ContractError):
        _ = valid(events.LateSettlementCaseRequested, case_ref="another")
    refuse(valid(transitions.LateSettlementExposure), ("openingRevision",), 1)
    refuse(valid(transitions.LateSettlementCommandResult), ("waivedDelta",), "1")
    refuse(valid(transitions.LateSettlementCommandResult, action="waive"), ("ledgerDelta",), "1")


@pytest.mark.req("REF-37", "FIN-05")
def test_a_finalization_balances() -> None:
    """What is settled is the sum of the dimensions; what is released is the rest, even below zero."""
    fact = valid(finalization.BillingFinalizationFact)
    refuse(fact, ("settledAmount",), "0.6")
    refuse(fact, ("releasedAmount",), "1.4")
    refuse(fact, ("dimensions",), [])
    overshoot = valid(finalization.BillingFinalizationFact, reserved_amount="0.25")
    assert overshoot.released_amount == "-0.25"
    for name in ("closureEventId", "closureEventEnvelopeSha256", "billingFinalizationCoordinatorConsumerReceiptDigest"):
        refuse(fact, (name,), None)


@pytest.mark.req("FIN-06", "FIN-07", "SEC-16")
def test_a_conflict_never_names_a_case() -> None:
    """The reasons of a decision are conflict facts of owners; no case can be smuggled in."""
    for decision in variants(finalization.BillingFinalizationDecision):
        if isinstance(decision.outcome, finalization.DecisionReconciliationRequired):
            refuse(decision, ("outcome", "reason", "reconciliationCaseRef"), "case")
            refuse(decision, ("outcome", "dimensions"), [])


@pytest.mark.req("REF-20", "APP-20")
def test_a_closure_counts_its_attempts_and_has_one_operation() -> None:
    """The count is that of the list, the list is sorted, and the operation follows from the run."""
    manifest = valid(execution.RunAttemptSetManifest)
    item = manifest.to_json()["attempts"]
    assert isinstance(item, list)
    refuse(manifest, ("attemptCount",), 2)
    refuse(manifest, ("attempts",), [])
    refuse(valid(execution.RunAttemptSetManifest, attempt_count=1), ("attempts",), [*item, *item])
    refuse(valid(execution.RunExecutionFinalizationFact), ("closureOperationId",), "another")
    refuse(valid(execution.RunExecutionFinalizationFact), ("runExecutionFinalizationStateVersion",), 2)
