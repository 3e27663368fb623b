"""Billing's catch-up works for one dimension, and how they end or are blocked (CAT-13 to CAT-20, REF-46, REF-47)."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from oceanway.contracts.base import Contract
from oceanway.contracts.facts.settlement import SettlementDimensionFields, settlement_dimension_id
from oceanway.contracts.fields import AttemptNumber, FencingToken, StateVersion
from oceanway.contracts.identity import det, digest_of
from oceanway.contracts.order import require, require_equal
from oceanway.contracts.quads import CurrentValidationReceiptQuad, SettlementInputConflictFactQuad
from oceanway.contracts.quads_billing import (
    BillingSettlementCatchUpWorkAttemptBlockedQuad,
    BillingSettlementCatchUpWorkAttemptFinishedQuad,
    BillingSettlementCatchUpWorkQuad,
    SuccessorBillingSettlementCatchUpWorkQuad,
)
from oceanway.contracts.quints import OptionalSettlementInput, SettlementInputQuint
from oceanway.contracts.subject import AccountFields
from seapost.contracts.content_addressed import ContentAddressed
from seapost.contracts.fields import Algorithm, Digest, Identifier, Revision, Timestamp


class CatchUpBasis(Contract):
    """What a catch-up starts from, and where it leads."""

    settlement_dimension_id: Identifier
    last_evaluated_input: OptionalSettlementInput
    target_input: SettlementInputQuint
    dimension_state_revision: StateVersion

    def basis_digest(self) -> str:
        """The digest by which work and operation name this basis."""
        return digest_of(self.to_json())


def billing_catch_up_validation_operation_id(dimension_id: str, work_generation: int, basis_digest: str) -> str:
    """The one operation of a catch-up work (REF-47)."""
    return det("billing_catch_up", dimension_id, work_generation, basis_digest)


class BillingSettlementCatchUpWork(
    BillingSettlementCatchUpWorkQuad,
    SettlementDimensionFields,
    ContentAddressed,
    prefix="billingSettlementCatchUpWork",
    outside=("createdAt",),
):
    """One immutable generation of one dimension's catch-up."""

    billing_catch_up_validation_operation_id: Identifier
    work_generation: Revision
    basis: CatchUpBasis
    basis_digest_algorithm_version: Algorithm
    basis_digest: Digest
    created_at: Timestamp

    @model_validator(mode="after")
    def _one_operation(self) -> Self:
        place = "/basis/settlementDimensionId"
        require_equal(self.basis.settlement_dimension_id, self.settlement_dimension_id, place, "dimension")
        expected = billing_catch_up_validation_operation_id(
            self.settlement_dimension_id, self.work_generation, self.basis_digest
        )
        place = "/billingCatchUpValidationOperationId"
        require_equal(self.billing_catch_up_validation_operation_id, expected, place, "deterministic_id")
        return self


class CatchUpAttempt(AccountFields, BillingSettlementCatchUpWorkQuad):
    """One started attempt at one catch-up work."""

    billing_catch_up_validation_operation_id: Identifier
    run_id: Identifier
    run_step_id: Identifier
    execution_attempt_id: Identifier
    charge_dimension_key: Identifier
    work_generation: Revision
    attempt_number: AttemptNumber
    fencing_token: FencingToken

    @property
    def dimension_id(self) -> str:
        """The settlement dimension that the work is about."""
        return settlement_dimension_id(
            self.billing_reservation_id, self.run_step_id, self.execution_attempt_id, self.charge_dimension_key
        )


class OutcomeCaughtUp(CurrentValidationReceiptQuad):
    """Nothing newer exists, as metering confirmed to this operation."""

    state: Literal["caught_up"] = "caught_up"


class OutcomeRebased(SuccessorBillingSettlementCatchUpWorkQuad):
    """The target was evaluated, with or without a transition; the successor must verify it (CAT-19)."""

    state: Literal["transition_applied", "already_evaluated"]
    result_pointer: SettlementInputQuint
    successor_work_generation: Revision
    successor_billing_catch_up_validation_operation_id: Identifier


class OutcomeSuperseded(Contract):
    """A later generation took over."""

    state: Literal["superseded"] = "superseded"
    superseded_by_work_generation: Revision


CatchUpOutcome = Annotated[OutcomeCaughtUp | OutcomeRebased | OutcomeSuperseded, Field(discriminator="state")]


class BillingSettlementCatchUpWorkAttemptFinished(
    BillingSettlementCatchUpWorkAttemptFinishedQuad,
    CatchUpAttempt,
    ContentAddressed,
    prefix="billingSettlementCatchUpWorkAttemptFinished",
    outside=("finishedAt",),
):
    """How a catch-up work ended; there is at most one for each work."""

    outcome: CatchUpOutcome
    finished_at: Timestamp

    @model_validator(mode="after")
    def _later_generation(self) -> Self:
        outcome = self.outcome
        if isinstance(outcome, OutcomeRebased):
            is_next = outcome.successor_work_generation == self.work_generation + 1
            require(is_next, "The successor is the next generation", "/outcome/successorWorkGeneration", "range")
        if isinstance(outcome, OutcomeSuperseded):
            is_later = outcome.superseded_by_work_generation > self.work_generation
            require(is_later, "Only a later generation supersedes", "/outcome/supersededByWorkGeneration", "range")
        return self


class CauseSettlementInputOwnerConflict(SettlementInputConflictFactQuad):
    """Metering answered `conflicting`."""

    kind: Literal["settlement_input_owner_conflict"] = "settlement_input_owner_conflict"


class BillingSettlementCatchUpWorkAttemptBlocked(
    BillingSettlementCatchUpWorkAttemptBlockedQuad,
    CatchUpAttempt,
    ContentAddressed,
    prefix="billingSettlementCatchUpWorkAttemptBlocked",
    outside=("blockedAt",),
):
    """Why an attempt could not go on; the work stays pending. It is never a Finish (CAT-16)."""

    blocking_cause: CauseSettlementInputOwnerConflict
    blocked_at: Timestamp
