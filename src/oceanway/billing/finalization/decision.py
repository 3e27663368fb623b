"""What a finalization work decides, from what the owners say: pure (REF-37).

Finalization Input: the closure fact, its attempt set, and one settlement input for every attempt of it and every charge
dimension of its step. One missing input ends the work; one owner's conflict asks for reconciliation; else the amounts
follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from oceanway.billing.ledger import price_of, text
from oceanway.billing.store_finalization import PriceKey
from oceanway.contracts.events.billing import BillingFinalizationCommitted, FinalizationReconciliationCaseRequested
from oceanway.contracts.facts.cases import (
    CasePredecessorDirect,
    FinalizationReconciliationCaseIdentityReservation,
    case_request_operation_id,
    finalization_case_ref,
)
from oceanway.contracts.facts.finalization import (
    BillingFinalizationDecision,
    BillingFinalizationFact,
    DecisionFinalize,
    DecisionReconciliationRequired,
    FinalizedDimension,
    ReasonExecutionConflict,
    ReasonSettlementConflict,
)
from oceanway.contracts.identity import det, quad_fields, quint_fields, quint_of
from oceanway.contracts.quints import Absent, DimensionKey
from seapost.contracts.digest import ALGORITHM

if TYPE_CHECKING:
    from oceanway.billing.finalization.claimed import ClaimedWork
    from oceanway.contracts.facts.execution import RunAttemptSetManifest
    from oceanway.contracts.facts.settlement import SettlementInputSnapshot

Place = tuple[str, str, str]
"""Run step, attempt and charge dimension: what dimensions of a reservation are sorted by."""

Prices = Mapping[PriceKey, Decimal]


class Undecidable(Exception):
    """The owners' answers do not permit a decision now; nothing is written and the work is tried again.

    Attributes:
        reason: a closed, low-sensitivity word for logs and counters.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


def required_places(work: ClaimedWork, attempts: RunAttemptSetManifest) -> list[Place]:
    """Every dimension that must have a settlement input, sorted.

    Raises:
        Undecidable: an attempt belongs to a step that was not admitted.
    """
    found: list[Place] = []
    for attempt in attempts.attempts:
        keys = work.steps.get(attempt.run_step_id)
        if keys is None:
            raise Undecidable("step_not_admitted")
        found += [(attempt.run_step_id, attempt.execution_attempt_id, key) for key in keys]
    return sorted(found)


def watermarks(work: ClaimedWork) -> dict[Place, Mapping[str, Any]]:
    """The settlement inputs that the trigger froze, by place."""
    return {
        (item["runStepId"], item["executionAttemptId"], item["chargeDimensionKey"]): item
        for item in work.trigger["settlementWatermarks"]
    }


def missing_keys(required: Iterable[Place], there: Mapping[Place, object]) -> list[DimensionKey]:
    """The dimensions without a settlement input, sorted."""
    return [
        DimensionKey(run_step_id=step, execution_attempt_id=attempt, charge_dimension_key=key)
        for step, attempt, key in required
        if (step, attempt, key) not in there
    ]


def price_key(snapshot: SettlementInputSnapshot) -> PriceKey:
    """What the price of one input is found by."""
    identity = snapshot.settlement_economic_identity
    return PriceKey(identity.price_book_ref, identity.price_book_version, identity.quantity_unit, identity.currency)


def finalized_dimensions(
    work: ClaimedWork, snapshots: Sequence[SettlementInputSnapshot], price: Callable[[PriceKey], Decimal | None]
) -> list[FinalizedDimension]:
    """What each dimension costs, sorted: quantity × unit price, rounded half to even to the minor unit.

    Raises:
        Undecidable: an input is in another currency than the reservation, or has no price.
    """
    return [_finalized(work, snapshot, price(price_key(snapshot))) for snapshot in snapshots]


def _finalized(work: ClaimedWork, snapshot: SettlementInputSnapshot, unit_price: Decimal | None) -> FinalizedDimension:
    currency = snapshot.settlement_economic_identity.currency
    if currency != work.currency:
        raise Undecidable("currency_differs")
    if unit_price is None:
        raise Undecidable("price_unknown")
    quint = quint_of(snapshot, "settlement_input_snapshot", state_version="settlement_input_state_version")
    return FinalizedDimension(
        run_step_id=snapshot.run_step_id,
        execution_attempt_id=snapshot.execution_attempt_id,
        charge_dimension_key=snapshot.charge_dimension_key,
        settlement_dimension_id=snapshot.settlement_dimension_id,
        amount=text(price_of(Decimal(snapshot.quantity), unit_price, currency)),
        **quint_fields("settlement_input_snapshot", quint, state_version="settlement_input_state_version"),
    )


def decide(
    work: ClaimedWork,
    outcome: list[FinalizedDimension] | ReasonExecutionConflict | ReasonSettlementConflict,
    decided_at: str,
) -> BillingFinalizationDecision:
    """The decision of one work: amounts, or the conflict that forbids them."""
    return BillingFinalizationDecision.assemble(
        billing_finalization_decision_ref=det("billing_finalization_decision", work.operation_id),
        **quad_fields("billing_finalization_work", work.quad),
        **quad_fields("billing_finalization_trigger_snapshot", work.trigger_quad),
        billing_finalization_operation_id=work.operation_id,
        work_generation=work.work_generation,
        outcome=DecisionFinalize(dimensions=outcome)
        if isinstance(outcome, list)
        else DecisionReconciliationRequired(reason=outcome),
        decided_at=decided_at,
    )


def fact_of(work: ClaimedWork, decision: BillingFinalizationDecision, finalized_at: str) -> BillingFinalizationFact:
    """The owner fact of a finalization (FIN-05): fence revision, closure event, coordinator receipt and money."""
    closure = work.closure
    if closure is None or not isinstance(decision.outcome, DecisionFinalize):
        raise ValueError("A finalization rests on a closure event and on amounts.")
    dimensions = decision.outcome.dimensions
    settled = sum((Decimal(one.amount) for one in dimensions), Decimal(0))
    return BillingFinalizationFact.assemble(
        billing_finalization_fact_ref=det("billing_finalization_fact", work.fence_id),
        **work.subject_fields(),
        billing_finalization_fence_id=work.fence_id,
        finalization_fence_revision=work.fence_revision,
        **quad_fields("billing_finalization_work", work.quad),
        billing_finalization_operation_id=work.operation_id,
        work_generation=work.work_generation,
        **quad_fields("billing_finalization_decision", decision.quad()),
        closure_event_id=closure["closureEventId"],
        closure_event_envelope_digest_algorithm_version=ALGORITHM,
        closure_event_envelope_sha256=closure["eventEnvelopeSha256"],
        **work.coordinator_receipt,
        currency=work.currency,
        reserved_amount=work.reserved_amount,
        settled_amount=text(settled),
        released_amount=text(Decimal(work.reserved_amount) - settled),
        dimensions=dimensions,
        finalized_at=finalized_at,
    )


def committed_event(fact: BillingFinalizationFact) -> BillingFinalizationCommitted:
    """The event of a finalization: everything the fact says, without the time of the commit."""
    fields = {name: getattr(fact, name) for name in type(fact).model_fields if name != "finalized_at"}
    return BillingFinalizationCommitted(**fields)


def case_identity(work: ClaimedWork, reserved_at: str) -> FinalizationReconciliationCaseIdentityReservation:
    """The identity of the next case of this fence (CASE-02); it knows no work and no operation of one (CASE-03)."""
    generation = work.generation + 1
    case_ref = finalization_case_ref(work.fence_id, generation)
    return FinalizationReconciliationCaseIdentityReservation.assemble(
        finalization_case_identity_reservation_ref=det("finalization_case_identity", work.fence_id, generation),
        **work.subject_fields(),
        billing_finalization_fence_id=work.fence_id,
        reconciliation_case_ref=case_ref,
        reconciliation_generation=generation,
        expected_resolution_revision=1,
        case_request_operation_id=case_request_operation_id(work.fence_id, generation),
        predecessor=_predecessor(work),
        reserved_at=reserved_at,
    )


def _predecessor(work: ClaimedWork) -> Absent | CasePredecessorDirect:
    if work.previous_identity is None:
        return Absent()
    before = FinalizationReconciliationCaseIdentityReservation.decode(work.previous_identity)
    return CasePredecessorDirect(
        reconciliation_case_ref=before.reconciliation_case_ref,
        reconciliation_generation=before.reconciliation_generation,
        **quad_fields("finalization_case_identity_reservation", before.quad()),
    )


def case_requested_event(
    work: ClaimedWork,
    decision: BillingFinalizationDecision,
    identity: FinalizationReconciliationCaseIdentityReservation,
) -> FinalizationReconciliationCaseRequested:
    """The event that asks operations for a case; it is complete in itself (CASE-05)."""
    if not isinstance(decision.outcome, DecisionReconciliationRequired):
        raise TypeError("Only a decision for reconciliation requests a case.")
    names = ("reconciliation_case_ref", "reconciliation_generation", "expected_resolution_revision")
    return FinalizationReconciliationCaseRequested(
        **work.subject_fields(),
        billing_finalization_fence_id=work.fence_id,
        **{name: getattr(identity, name) for name in names},
        case_request_operation_id=identity.case_request_operation_id,
        **quad_fields("finalization_case_identity_reservation", identity.quad()),
        **quad_fields("billing_finalization_decision", decision.quad()),
        **quad_fields("triggering_billing_finalization_work", work.quad),
        triggering_billing_finalization_work_generation=work.work_generation,
        billing_finalization_operation_id=work.operation_id,
        reason=decision.outcome.reason.kind,
    )
