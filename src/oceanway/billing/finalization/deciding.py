"""From leased works to what is written about each: owner reads in batches, then the pure decision (REF-37, REF-38).

A question that one work alone asks wrongly must not stop the others, but an owner that cannot be read stops all that
need it: they are given back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from oceanway.billing.catch_up.works import OpenedDimension, Opening, opening_works
from oceanway.billing.finalization.decision import (
    Place,
    Undecidable,
    case_identity,
    case_requested_event,
    committed_event,
    decide,
    fact_of,
    finalized_dimensions,
    missing_keys,
    price_key,
    required_places,
    watermarks,
)
from oceanway.billing.finalization.schedule import dimension, watermark_item
from oceanway.contracts.envelopes import envelope_of
from oceanway.contracts.facts.finalization import (
    BillingFinalizationDecision,
    BillingFinalizationFact,
    ReasonExecutionConflict,
    ReasonSettlementConflict,
)
from oceanway.contracts.facts.settlement import settlement_dimension_id
from oceanway.contracts.identity import Quad, quad_fields, quad_of
from oceanway.contracts.reads_execution import (
    READ_RUN_EXECUTION_FINALIZATION_FOR_BILLING,
    RunFinalizationConflicting,
    RunFinalizationFound,
    RunFinalizationQuestion,
)
from oceanway.contracts.reads_metering import READ_SETTLEMENT_INPUT_FOR_BILLING, SettlementInputQuestion
from oceanway.contracts.reads_operations import (
    RESERVE_FINALIZATION_RECONCILIATION_CASE_IDENTITY,
    CaseIdentityReservationQuestion,
)
from oceanway.contracts.works.finalization import (
    BillingFinalizationWorkAttemptFinished,
    OutcomeClosureEventNotApplied,
    OutcomeFinalized,
    OutcomeReconciliationRequired,
    OutcomeSettlementInputNotApplied,
)
from oceanway.reads.errors import OwnerUnreadable

if TYPE_CHECKING:
    from oceanway.billing.finalization.claimed import ClaimedWork
    from oceanway.billing.store_finalization import PriceKey
    from oceanway.contracts.facts.cases import FinalizationReconciliationCaseIdentityReservation
    from oceanway.contracts.facts.settlement import SettlementInputSnapshot
    from oceanway.reads.client import Reader

CONFLICT_GATE_CLOSED: Final = "conflict_gate_closed"

Conflict = ReasonExecutionConflict | ReasonSettlementConflict


@dataclass(frozen=True, slots=True)
class Finishing:
    """The work cannot go on before another event arrives (TX-24)."""

    work: ClaimedWork
    finish: BillingFinalizationWorkAttemptFinished


@dataclass(frozen=True, slots=True)
class Closing:
    """The reservation is finalized (TX-10)."""

    work: ClaimedWork
    decision: BillingFinalizationDecision
    fact: BillingFinalizationFact
    finish: BillingFinalizationWorkAttemptFinished
    envelope: bytes
    opening: Opening


@dataclass(frozen=True, slots=True)
class Requiring:
    """The fence enters a case (TX-26)."""

    work: ClaimedWork
    decision: BillingFinalizationDecision
    identity: FinalizationReconciliationCaseIdentityReservation
    finish: BillingFinalizationWorkAttemptFinished
    envelope: bytes


@dataclass(frozen=True, slots=True)
class Later:
    """Nothing is written; the work is tried again after a pause."""

    work: ClaimedWork
    reason: str


Ending = Finishing | Closing | Requiring | Later

PricesOf = Callable[[Sequence["PriceKey"]], Mapping["PriceKey", Decimal]]


class Decider:
    """Decides about works; it never writes.

    Args:
        prices: gives the unit prices that exist for some keys, from billing's own price books.
        gate: whether a conflict may become a case (REF-43).
    """

    def __init__(self, reader: Reader, prices: PricesOf, *, gate: bool) -> None:
        self._reader = reader
        self._prices = prices
        self._gate = gate

    def decide(self, works: Sequence[ClaimedWork], now: str) -> list[Ending]:
        """What becomes of each work; the order is not kept."""
        endings: list[Ending] = []
        closed: list[ClaimedWork] = []
        for work in works:
            if work.closure is None:  # nobody is asked about a run that is not known to be closed (FIN-03)
                endings.append(Finishing(work, work.finish(OutcomeClosureEventNotApplied(), now)))
            else:
                closed.append(work)
        try:
            return [*endings, *self._decide_closed(closed, now)]
        except OwnerUnreadable:
            return [*endings, *(Later(work, "owner_unreadable") for work in closed)]

    def _decide_closed(self, works: Sequence[ClaimedWork], now: str) -> list[Ending]:
        endings: list[Ending] = []
        conflicts: list[tuple[ClaimedWork, Conflict]] = []
        complete: list[tuple[ClaimedWork, list[Place]]] = []
        answers = self._reader.call(READ_RUN_EXECUTION_FINALIZATION_FOR_BILLING, list(map(_run_question, works)))
        for work, one in zip(works, answers, strict=True):
            match one.answer:
                case RunFinalizationFound() as found:
                    endings += _require_inputs(work, found, complete, now)
                case RunFinalizationConflicting() as conflicting:
                    quad = quad_of(conflicting, "run_execution_finalization_conflict_fact")
                    fields = quad_fields("run_execution_finalization_conflict_fact", quad)
                    conflicts.append((work, ReasonExecutionConflict(**fields)))
                case _:
                    endings.append(Later(work, "execution_not_found"))
        endings += self._settle(complete, conflicts, now)
        return [*endings, *self._reconcile(conflicts, now)]

    def _settle(
        self,
        works: Sequence[tuple[ClaimedWork, list[Place]]],
        conflicts: list[tuple[ClaimedWork, Conflict]],
        now: str,
    ) -> list[Ending]:
        """Read every settlement input of complete works and finalize them; conflicts are added to the list."""
        questions = [_input_question(work, watermarks(work)[place]) for work, places in works for place in places]
        answers = iter(self._reader.call(READ_SETTLEMENT_INPUT_FOR_BILLING, questions))
        endings: list[Ending] = []
        inputs: list[tuple[ClaimedWork, list[SettlementInputSnapshot]]] = []
        for work, places in works:
            snapshots = _snapshots(work, places, [next(answers).answer for _ in places])
            match snapshots:
                case list():
                    inputs.append((work, snapshots))
                case Later():
                    endings.append(snapshots)
                case _:
                    conflicts.append((work, snapshots))
        prices = self._prices([price_key(one) for _, snapshots in inputs for one in snapshots])
        return [*endings, *(_finalize(work, snapshots, prices.get, now) for work, snapshots in inputs)]

    def _reconcile(self, conflicts: Sequence[tuple[ClaimedWork, Conflict]], now: str) -> list[Ending]:
        """Reserve the identities of the cases, then ask for them; with a closed gate nothing happens (AMB-51)."""
        if not self._gate:
            return [Later(work, CONFLICT_GATE_CLOSED) for work, _ in conflicts]
        if not conflicts:
            return []
        candidates = [case_identity(work, now) for work, _ in conflicts]
        questions = [CaseIdentityReservationQuestion(candidate=one) for one in candidates]
        answers = self._reader.call(RESERVE_FINALIZATION_RECONCILIATION_CASE_IDENTITY, questions)
        endings: list[Ending] = []
        for (work, conflict), one in zip(conflicts, answers, strict=True):
            if one.answer.result == "conflicting":
                endings.append(Later(work, "case_identity_conflict"))
            else:
                endings.append(_require(work, conflict, one.answer.reservation, now))
        return endings


def _run_question(work: ClaimedWork) -> RunFinalizationQuestion:
    closure = work.closure or {}
    prefix = "runExecutionFinalization"
    return RunFinalizationQuestion(
        **work.subject_fields(),
        run_execution_finalization_ref=closure[f"{prefix}Ref"],
        run_execution_finalization_schema_version=closure[f"{prefix}SchemaVersion"],
        run_execution_finalization_digest_algorithm_version=closure[f"{prefix}DigestAlgorithmVersion"],
        run_execution_finalization_digest=closure[f"{prefix}Digest"],
        operation_id=work.operation_id,
    )


def _input_question(work: ClaimedWork, mark: Mapping[str, Any]) -> SettlementInputQuestion:
    place = (mark["runStepId"], mark["executionAttemptId"], mark["chargeDimensionKey"])
    return SettlementInputQuestion(
        **work.subject_fields(),
        run_step_id=place[0],
        execution_attempt_id=place[1],
        charge_dimension_key=place[2],
        settlement_dimension_id=settlement_dimension_id(work.subject["billingReservationId"], *place),
        settlement_input_snapshot_ref=mark["ref"],
        settlement_input_snapshot_schema_version=mark["schemaVersion"],
        settlement_input_snapshot_digest_algorithm_version=mark["digestAlgorithmVersion"],
        settlement_input_snapshot_digest=mark["digest"],
        settlement_input_state_version=mark["stateVersion"],
        operation_id=work.operation_id,
    )


def _require_inputs(
    work: ClaimedWork,
    found: RunFinalizationFound,
    complete: list[tuple[ClaimedWork, list[Place]]],
    now: str,
) -> list[Ending]:
    """Sort a work into the complete ones, or end it because inputs are missing."""
    fact, attempts = found.fact, found.attempt_set_manifest
    question = _run_question(work)
    if (
        fact.quad() != quad_of(question, "run_execution_finalization")
        or quad_of(fact, "run_admission_manifest") != work.admission
        or attempts.quad() != quad_of(fact, "attempt_set_manifest")
        or attempts.run_id != fact.run_id
        or any(getattr(fact, name) != value for name, value in work.subject_fields().items())
    ):
        return [Later(work, "closure_differs")]
    try:
        required = required_places(work, attempts)
    except Undecidable as error:
        return [Later(work, error.reason)]
    missing = missing_keys(required, watermarks(work))
    if missing:
        return [Finishing(work, work.finish(OutcomeSettlementInputNotApplied(missing=missing), now))]
    complete.append((work, required))
    return []


def _snapshots(
    work: ClaimedWork, places: Sequence[Place], answers: Sequence[Any]
) -> list[SettlementInputSnapshot] | Later | Conflict:
    """The settlement inputs of one work, or the first reason why there are not all of them."""
    for one in answers:
        if one.result == "conflicting":
            quad = quad_of(one, "settlement_input_conflict_fact")
            return ReasonSettlementConflict(**quad_fields("settlement_input_conflict_fact", quad))
    if any(one.result != "found" for one in answers):
        return Later(work, "settlement_input_not_found")
    marks = watermarks(work)
    snapshots: list[SettlementInputSnapshot] = [one.snapshot for one in answers]
    for place, snapshot in zip(places, snapshots, strict=True):
        version = snapshot.settlement_input_state_version
        stated = (snapshot.billing_reservation_id, dimension(snapshot), snapshot.quad(), version)
        mark = watermark_item(marks[place])
        asked = Quad(mark.ref, mark.schema_version, mark.digest_algorithm_version, mark.digest)
        if stated != (work.subject["billingReservationId"], place, asked, mark.state_version):
            return Later(work, "settlement_input_differs")
    return snapshots


def _finalize(
    work: ClaimedWork,
    snapshots: Sequence[SettlementInputSnapshot],
    price: Callable[[PriceKey], Decimal | None],
    now: str,
) -> Closing | Later:
    try:
        dimensions = finalized_dimensions(work, snapshots, price)
    except Undecidable as error:
        return Later(work, error.reason)
    decision = decide(work, dimensions, now)
    fact = fact_of(work, decision, now)
    event = envelope_of(
        committed_event(fact),
        causation_id=fact.closure_event_id,
        operation_id=work.operation_id,
        correlation_id=fact.run_id,
    )
    costs = {
        (one.run_step_id, one.execution_attempt_id, one.charge_dimension_key): Decimal(one.amount) for one in dimensions
    }
    opened = [
        OpenedDimension(
            run_step_id=place[0],
            execution_attempt_id=place[1],
            charge_dimension_key=place[2],
            input=watermark_item(mark),
            amount=costs.get(place),
        )
        for place, mark in watermarks(work).items()
    ]
    return Closing(
        work=work,
        decision=decision,
        fact=fact,
        finish=work.finish(OutcomeFinalized(**quad_fields("billing_finalization_decision", decision.quad())), now),
        envelope=event.envelope,
        opening=opening_works(work.subject, opened, created_at=now),
    )


def _require(
    work: ClaimedWork,
    conflict: Conflict,
    identity: FinalizationReconciliationCaseIdentityReservation,
    now: str,
) -> Requiring:
    decision = decide(work, conflict, now)
    event = envelope_of(
        case_requested_event(work, decision, identity),
        causation_id=(work.closure or {}).get("closureEventId"),
        operation_id=identity.case_request_operation_id,
        correlation_id=identity.run_id,
    )
    outcome = OutcomeReconciliationRequired(**quad_fields("billing_finalization_decision", decision.quad()))
    return Requiring(work, decision, identity, work.finish(outcome, now), event.envelope)
