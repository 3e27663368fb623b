"""The works of a dimension's catch-up, and how they end: documents, made from nothing but their basis (REF-46, REF-47).

A work's identifier follows from dimension and generation, its operation from the basis too. Whoever makes the same
generation from the same basis makes the same work, so a lost response cannot make a second one (CAT-22).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from oceanway.billing.ledger import text
from oceanway.contracts.facts.settlement import settlement_dimension_id
from oceanway.contracts.identity import ALGORITHM, Quad, det, quad_fields
from oceanway.contracts.quints import Absent, SettlementInputPresent, SettlementInputQuint, SettlementInputSnapshotItem
from oceanway.contracts.works.catch_up import (
    BillingSettlementCatchUpWork,
    BillingSettlementCatchUpWorkAttemptFinished,
    CatchUpBasis,
    OutcomeCaughtUp,
    OutcomeRebased,
    OutcomeSuperseded,
    billing_catch_up_validation_operation_id,
)

if TYPE_CHECKING:
    from oceanway.contracts.quints import OptionalSettlementInput

Json = Mapping[str, Any]

SUBJECT: Final = {
    "tenantKind": "tenant_kind",
    "tenantId": "tenant_id",
    "workspaceId": "workspace_id",
    "projectId": "project_id",
    "billingAccountId": "billing_account_id",
    "billingReservationId": "billing_reservation_id",
    "runId": "run_id",
}
"""Whose dimension it is: wire name and Python name."""

PLACE: Final = {
    "runStepId": "run_step_id",
    "executionAttemptId": "execution_attempt_id",
    "chargeDimensionKey": "charge_dimension_key",
}
"""Which dimension of a reservation it is."""


@dataclass(frozen=True, slots=True)
class OpenedDimension:
    """One dimension of a reservation that is being finalized.

    Attributes:
        input: the watermark.
        amount: what was settled for it; None when only the watermark knows it, and nothing was.
    """

    run_step_id: str
    execution_attempt_id: str
    charge_dimension_key: str
    input: SettlementInputSnapshotItem
    amount: Decimal | None


@dataclass(frozen=True, slots=True)
class Opening:
    """What a finalization writes for the catch-up of its dimensions, as `billing.catch_up_open_v1` takes it."""

    works: list[bytes]
    dimension_states: list[dict[str, Any]]


def opening_works(subject: Json, dimensions: Sequence[OpenedDimension], *, created_at: str) -> Opening:
    """One pending work and one state for every dimension that the finalization or a watermark knows (CAT-08, AMB-28).

    Where the watermark is what was finalized, the work is the one that verifies it (CAT-20).

    Args:
        subject: tenant, account, reservation and run by wire name.
        created_at: moment of the finalization.
    """
    opening = Opening([], [])
    owner = {python: subject.get(wire) for wire, python in SUBJECT.items()}
    for one in dimensions:
        place = {name: getattr(one, name) for name in PLACE.values()}
        target = quint_of_item(one.input)
        evaluated = Absent() if one.amount is None else present(target)
        work = _work(
            {**owner, **place}, generation=1, evaluated=evaluated, target=target, revision=0, created_at=created_at
        )
        opening.works.append(work.canonical())
        opening.dimension_states.append(
            {
                "settlementDimensionId": work.settlement_dimension_id,
                **{wire: place[python] for wire, python in PLACE.items()},
                "settledAmount": text(one.amount or Decimal(0)),
                "lastEvaluatedInput": evaluated.to_json(),
            }
        )
    return opening


def reopening_work(
    identity: Mapping[str, Any],
    *,
    generation: int,
    evaluated: OptionalSettlementInput,
    target: SettlementInputQuint,
    revision: int,
    created_at: str,
) -> BillingSettlementCatchUpWork:
    """The work of a newer input after the finalization (CAT-05).

    Args:
        identity: tenant to dimension key, by Python name.
        revision: of the dimension's state.
    """
    return _work(
        identity, generation=generation, evaluated=evaluated, target=target, revision=revision, created_at=created_at
    )


def successor_work(
    work: BillingSettlementCatchUpWork, *, state_revision: int, created_at: str
) -> BillingSettlementCatchUpWork:
    """The work that verifies what was just evaluated (CAT-19).

    Args:
        state_revision: of the dimension after the evaluation.
    """
    target = work.basis.target_input
    identity = {name: getattr(work, name) for name in (*SUBJECT.values(), *PLACE.values())}
    return _work(
        identity,
        generation=work.work_generation + 1,
        evaluated=present(target),
        target=target,
        revision=state_revision,
        created_at=created_at,
    )


def _work(
    identity: Mapping[str, Any],
    *,
    generation: int,
    evaluated: OptionalSettlementInput,
    target: SettlementInputQuint,
    revision: int,
    created_at: str,
) -> BillingSettlementCatchUpWork:
    dimension_id = settlement_dimension_id(
        identity["billing_reservation_id"],
        identity["run_step_id"],
        identity["execution_attempt_id"],
        identity["charge_dimension_key"],
    )
    basis = CatchUpBasis(
        settlement_dimension_id=dimension_id,
        last_evaluated_input=evaluated,
        target_input=target,
        dimension_state_revision=revision,
    )
    digest = basis.basis_digest()
    return BillingSettlementCatchUpWork.assemble(
        billing_settlement_catch_up_work_ref=det("billing_settlement_catch_up_work", dimension_id, generation),
        **identity,
        settlement_dimension_id=dimension_id,
        billing_catch_up_validation_operation_id=billing_catch_up_validation_operation_id(
            dimension_id, generation, digest
        ),
        work_generation=generation,
        basis=basis,
        basis_digest_algorithm_version=ALGORITHM,
        basis_digest=digest,
        created_at=created_at,
    )


@dataclass(frozen=True, slots=True)
class Attempt:
    """One lease of a work."""

    work: BillingSettlementCatchUpWork
    attempt_number: int
    fencing_token: int

    def fields(self) -> dict[str, Any]:
        """What every document about this lease repeats, by Python name."""
        work = self.work
        return {
            **quad_fields("billing_settlement_catch_up_work", work.quad()),
            "billing_catch_up_validation_operation_id": work.billing_catch_up_validation_operation_id,
            "billing_reservation_id": work.billing_reservation_id,
            "billing_account_id": work.billing_account_id,
            "run_id": work.run_id,
            "run_step_id": work.run_step_id,
            "execution_attempt_id": work.execution_attempt_id,
            "charge_dimension_key": work.charge_dimension_key,
            "work_generation": work.work_generation,
            "attempt_number": self.attempt_number,
            "fencing_token": str(self.fencing_token),
        }


def started(document: Json | None) -> Attempt | None:
    """The latest lease of an unfinished work, as PostgreSQL put it together."""
    if document is None:
        return None
    work = BillingSettlementCatchUpWork.decode(document["work"])
    return Attempt(work, document["attemptNumber"], int(document["fencingToken"]))


def superseded_finish(
    attempt: Attempt, by_generation: int, finished_at: str
) -> BillingSettlementCatchUpWorkAttemptFinished:
    """The Finish of a started work that a newer generation replaces."""
    return _finish(attempt, OutcomeSuperseded(superseded_by_work_generation=by_generation), finished_at)


def caught_up_finish(attempt: Attempt, receipt: Quad, finished_at: str) -> BillingSettlementCatchUpWorkAttemptFinished:
    """The Finish of a work that metering's receipt verified (CAT-20)."""
    return _finish(attempt, OutcomeCaughtUp(**quad_fields("current_validation_receipt", receipt)), finished_at)


def rebased_finish(
    attempt: Attempt, successor: BillingSettlementCatchUpWork, finished_at: str, *, is_changed: bool
) -> BillingSettlementCatchUpWorkAttemptFinished:
    """The Finish of an evaluated work, which freezes its successor (CAT-19)."""
    outcome = OutcomeRebased(
        state="transition_applied" if is_changed else "already_evaluated",
        result_pointer=attempt.work.basis.target_input,
        successor_work_generation=successor.work_generation,
        successor_billing_catch_up_validation_operation_id=successor.billing_catch_up_validation_operation_id,
        **quad_fields("successor_billing_settlement_catch_up_work", successor.quad()),
    )
    return _finish(attempt, outcome, finished_at)


def _finish(
    attempt: Attempt, outcome: OutcomeCaughtUp | OutcomeRebased | OutcomeSuperseded, finished_at: str
) -> BillingSettlementCatchUpWorkAttemptFinished:
    """A work has one Finish, whatever its outcome."""
    work_ref = attempt.work.billing_settlement_catch_up_work_ref
    return BillingSettlementCatchUpWorkAttemptFinished.assemble(
        billing_settlement_catch_up_work_attempt_finished_ref=det(
            "billing_settlement_catch_up_work_attempt_finished", work_ref
        ),
        **attempt.fields(),
        outcome=outcome,
        finished_at=finished_at,
    )


def quint_of_item(item: SettlementInputSnapshotItem) -> SettlementInputQuint:
    """A watermark under the names by which a basis carries it."""
    return SettlementInputQuint(
        settlement_input_snapshot_ref=item.ref,
        settlement_input_snapshot_schema_version=item.schema_version,
        settlement_input_snapshot_digest_algorithm_version=item.digest_algorithm_version,
        settlement_input_snapshot_digest=item.digest,
        settlement_input_state_version=item.state_version,
    )


def present(quint: SettlementInputQuint) -> SettlementInputPresent:
    """The same input where there might be none."""
    return SettlementInputPresent(**quint.model_dump())


def optional(document: Json) -> OptionalSettlementInput:
    """An input that may not exist, as PostgreSQL keeps it."""
    return Absent() if document["state"] == "none" else SettlementInputPresent.decode(dict(document))
