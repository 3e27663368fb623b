"""What billing books for one dimension after the finalization: transitions, exposures and late commands (REF-50)."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from oceanway.contracts.base import Contract
from oceanway.contracts.facts.settlement import EconomicFields
from oceanway.contracts.fields import Amount, Quantity, StateVersion
from oceanway.contracts.identity import ALGORITHM, det
from oceanway.contracts.order import require, require_equal
from oceanway.contracts.quads_billing import (
    LateSettlementCommandQuad,
    LateSettlementCommandResultQuad,
    LateSettlementExposureQuad,
    LateSettlementGrantQuad,
    SettlementTransitionQuad,
)
from oceanway.contracts.quints import Absent
from oceanway.contracts.works.catch_up import CatchUpBasis
from seapost.contracts.content_addressed import ContentAddressed
from seapost.contracts.fields import Algorithm, Count, Digest, EventId, Identifier, Revision, Timestamp

LateAction = Literal["charge", "waive"]


def settlement_transition_operation_id(
    logical_operation_id: str,
    billing_reservation_id: str,
    run_step_id: str,
    execution_attempt_id: str,
    charge_dimension_key: str,
    *,
    from_revision: int,
    basis_digest: str,
) -> str:
    """The operation of the one validation that may precede this transition (CASE-32, REF-50)."""
    return det(
        "settlement_transition",
        logical_operation_id,
        billing_reservation_id,
        run_step_id,
        execution_attempt_id,
        charge_dimension_key,
        from_revision,
        ALGORITHM,
        basis_digest,
    )


def late_settlement_case_ref(settlement_dimension_id: str, to_revision: int) -> str:
    """The case that an opening transition to this revision requests (REF-50)."""
    return det("late_settlement_case", settlement_dimension_id, to_revision)


class RevisionStep(EconomicFields):
    """One step of a dimension's state: revisions follow each other without a gap (CASE-31)."""

    from_revision: StateVersion
    to_revision: Revision

    @model_validator(mode="after")
    def _one_step(self) -> Self:
        require_equal(self.to_revision, self.from_revision + 1, "/toRevision", "revision")
        return self


class ExposureOpen(Contract):
    """This amount is claimed, but the account does not cover it; nothing of it is booked."""

    state: Literal["open"] = "open"
    case_ref: Identifier
    amount: Quantity


class ExposureResolved(Contract):
    """The exposure ended with this step."""

    state: Literal["resolved"] = "resolved"
    case_ref: Identifier


Exposure = Annotated[Absent | ExposureOpen | ExposureResolved, Field(discriminator="state")]
"""The exposure of a dimension after a step; `resolved` only in the step that ended it."""


class TransitionFields(RevisionStep):
    """What a transition and its event both say."""

    logical_operation_id: Identifier
    validation_operation_id: Identifier
    kind: Literal["adjust", "request_open", "resolve"]
    basis_digest_algorithm_version: Algorithm
    basis_digest: Digest
    ledger_delta: Amount
    waived_delta: Amount
    exposure: Exposure
    causation_event_id: EventId

    @model_validator(mode="after")
    def _one_transition(self) -> Self:
        expected = settlement_transition_operation_id(
            self.logical_operation_id,
            self.billing_reservation_id,
            self.run_step_id,
            self.execution_attempt_id,
            self.charge_dimension_key,
            from_revision=self.from_revision,
            basis_digest=self.basis_digest,
        )
        require_equal(self.validation_operation_id, expected, "/validationOperationId", "deterministic_id")
        state = self.exposure.state
        fits = {
            "request_open": state == "open",
            "resolve": state == "resolved",
            "adjust": state != "resolved",
        }[self.kind]
        require(fits, "The exposure does not fit the kind of transition", "/exposure", "mixed_branches")
        if self.kind == "request_open":
            require(self.ledger_delta == "0", "An opening books nothing", "/ledgerDelta", "mixed_branches")
            case = late_settlement_case_ref(self.dimension_id, self.to_revision)
            require_equal(getattr(self.exposure, "case_ref", None), case, "/exposure/caseRef", "deterministic_id")
        return self


class SettlementTransition(
    SettlementTransitionQuad,
    TransitionFields,
    ContentAddressed,
    prefix="settlementTransition",
    outside=("committedAt",),
):
    """One step of a dimension after its finalization, caused by a newer settlement input."""

    basis: CatchUpBasis
    committed_at: Timestamp

    @model_validator(mode="after")
    def _one_basis(self) -> Self:
        place = "/basis/dimensionStateRevision"
        require_equal(self.basis.dimension_state_revision, self.from_revision, place, "revision")
        require_equal(
            self.basis.settlement_dimension_id, self.dimension_id, "/basis/settlementDimensionId", "dimension"
        )
        return self


class LateSettlementExposure(
    LateSettlementExposureQuad,
    EconomicFields,
    ContentAddressed,
    prefix="lateSettlementExposure",
    outside=("recordedAt",),
):
    """The exposure of a case as one step of its dimension left it."""

    case_ref: Identifier
    opening_revision: Revision
    state_revision: Revision
    exposure: Annotated[ExposureOpen | ExposureResolved, Field(discriminator="state")]
    recorded_at: Timestamp

    @model_validator(mode="after")
    def _one_case(self) -> Self:
        expected = late_settlement_case_ref(self.dimension_id, self.opening_revision)
        require_equal(self.case_ref, expected, "/caseRef", "deterministic_id")
        require_equal(self.exposure.case_ref, expected, "/exposure/caseRef", "deterministic_id")
        is_later = self.state_revision >= self.opening_revision
        require(is_later, "A case is not older than its opening", "/stateRevision", "range")
        return self


def late_settlement_operation_id(case_ref: str, from_revision: int) -> str:
    """The one operation by which a case may be closed by hand at a revision."""
    return det("late_settlement_command", case_ref, from_revision)


class LateCommandFields(EconomicFields):
    """What a late command and its result both say."""

    logical_operation_id: Identifier
    case_ref: Identifier
    action: LateAction
    actor_workforce_principal_id: Identifier


class LateSettlementCommand(
    LateSettlementCommandQuad,
    LateCommandFields,
    ContentAddressed,
    prefix="lateSettlementCommand",
    outside=("requestedAt",),
):
    """The wish to close an open exposure by hand: to charge it, or to waive it."""

    expected_state_revision: Revision
    exposure_amount: Quantity
    requested_at: Timestamp

    @model_validator(mode="after")
    def _one_operation(self) -> Self:
        expected = late_settlement_operation_id(self.case_ref, self.expected_state_revision)
        require_equal(self.logical_operation_id, expected, "/logicalOperationId", "deterministic_id")
        return self


class LateSettlementGrant(LateSettlementGrantQuad, ContentAddressed, prefix="lateSettlementGrant", outside=("iat",)):
    """The claims of a signed permission to carry out one late command, once (REF-42). `iat`, `exp`: Unix seconds."""

    jti: Identifier
    iss: Literal["operations"]
    aud: Literal["billing"]
    sub: Identifier
    actor_workforce_principal_id: Identifier
    action: LateAction
    command_digest: Digest
    case_ref: Identifier
    expected_state_revision: Revision
    iat: Count
    exp: Count

    @model_validator(mode="after")
    def _lasting(self) -> Self:
        require(self.iat < self.exp, "A grant ends after it begins", "/exp", "range")
        return self


class LateSettlementCommandResult(
    LateSettlementCommandResultQuad,
    LateCommandFields,
    RevisionStep,
    LateSettlementCommandQuad,
    LateSettlementGrantQuad,
    ContentAddressed,
    prefix="lateSettlementCommandResult",
    outside=("committedAt",),
):
    """One step of a dimension that a late command made: the exposure is charged or waived."""

    grant_jti: Identifier
    ledger_delta: Amount
    waived_delta: Amount
    causation_event_id: EventId
    committed_at: Timestamp

    @model_validator(mode="after")
    def _one_command(self) -> Self:
        expected = late_settlement_operation_id(self.case_ref, self.from_revision)
        require_equal(self.logical_operation_id, expected, "/logicalOperationId", "deterministic_id")
        untouched = self.waived_delta if self.action == "charge" else self.ledger_delta
        require(untouched == "0", "A charge waives nothing, a waiver books nothing", "/action", "mixed_branches")
        return self
