"""What billing answers: its decisions, resolutions, exposure chains and receipts (REF-44, RCP-57, CASE-06, CASE-29)."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from oceanway.contracts.base import Contract
from oceanway.contracts.facts.cases import CaseCauseFields, CaseRequestFields
from oceanway.contracts.facts.finalization import BillingFinalizationDecision
from oceanway.contracts.facts.resolution import (
    FinalizationReconciliationResolutionApplied,
    ResolutionFields,
)
from oceanway.contracts.facts.settlement import EconomicFields
from oceanway.contracts.facts.transitions import (
    LateSettlementCommandResult,
    LateSettlementExposure,
    SettlementTransition,
)
from oceanway.contracts.identity import Quad
from oceanway.contracts.order import require, require_count, require_equal
from oceanway.contracts.quads_billing import (
    BillingFinalizationCoordinatorConsumerReceiptQuad,
    BillingSettlementCatchUpConsumerReceiptQuad,
    FinalizationCaseIdentityReservationQuad,
    FinalizationReconciliationCandidateQuad,
    FinalizationReconciliationDecisionQuad,
    FinalizationReconciliationGrantQuad,
    FinalizationReconciliationRequestQuad,
    FinalizationReconciliationResolutionAppliedQuad,
    LateSettlementCommandResultQuad,
    SettlementTransitionQuad,
)
from oceanway.contracts.quints import SettlementInputQuint
from oceanway.contracts.reads import Conflicting, EventBinding, NotFound, ReadOperation
from oceanway.contracts.receipts.catch_up import BillingSettlementCatchUpConsumerReceipt
from oceanway.contracts.receipts.coordinator import (
    BillingFinalizationCoordinatorConsumerReceipt,
    SourceExecutionClosure,
    SourceFinalizationReconciliationResolution,
)
from seapost.contracts.fields import Algorithm, Digest, EventId, Identifier, Revision

_OPERATIONS: Final = frozenset({"serve.operations"})
_COMMANDS: Final = frozenset({"drive.core", "drive.billing"})


class DecisionForOperations(CaseRequestFields, FinalizationCaseIdentityReservationQuad, CaseCauseFields):
    """The decision behind a case request, with every identity that the request states."""


class DecisionFound(Contract):
    """The decision."""

    result: Literal["found"] = "found"
    decision: BillingFinalizationDecision


class DecisionAnswer(Contract):
    """What is known of a decision."""

    answer: Annotated[DecisionFound | NotFound | Conflicting, Field(discriminator="result")]


READ_BILLING_FINALIZATION_DECISION_FOR_OPERATIONS: Final = ReadOperation(
    "readBillingFinalizationDecisionForOperations",
    "billing",
    "operations_case_request",
    arguments=DecisionForOperations,
    answer=DecisionAnswer,
    callers=_OPERATIONS,
)


class ResolutionByOperation(
    FinalizationReconciliationRequestQuad,
    FinalizationReconciliationCandidateQuad,
    FinalizationReconciliationDecisionQuad,
    FinalizationReconciliationGrantQuad,
):
    """The resolution of one operation, with the chain that must have led to it (CASE-20)."""

    resolution_operation_id: Identifier
    actor_workforce_principal_id: Identifier
    grant_jti: Identifier


class ResolutionForOperations(ResolutionFields, FinalizationReconciliationResolutionAppliedQuad):
    """The resolution behind an event, with every identity that the event states."""

    actor_workforce_principal_id: Identifier


class ResolutionFound(Contract):
    """The resolution."""

    result: Literal["found"] = "found"
    resolution: FinalizationReconciliationResolutionApplied


class ResolutionAnswer(Contract):
    """What is known of a resolution."""

    answer: Annotated[ResolutionFound | NotFound | Conflicting, Field(discriminator="result")]


READ_RESOLUTION_APPLIED_BY_OPERATION: Final = ReadOperation(
    "readFinalizationReconciliationResolutionAppliedByOperation",
    "billing",
    "resolution_command",
    arguments=ResolutionByOperation,
    answer=ResolutionAnswer,
    callers=_COMMANDS,
)
READ_RESOLUTION_APPLIED_FOR_OPERATIONS: Final = ReadOperation(
    "readFinalizationReconciliationResolutionAppliedForOperations",
    "billing",
    "operations_case_resolution",
    arguments=ResolutionForOperations,
    answer=ResolutionAnswer,
    callers=_OPERATIONS,
)


class OwnerFactTransition(SettlementTransitionQuad):
    """The chain ends in this transition."""

    kind: Literal["settlement_transition"] = "settlement_transition"


class OwnerFactLateCommandResult(LateSettlementCommandResultQuad):
    """The chain ends in this late result."""

    kind: Literal["late_settlement_command_result"] = "late_settlement_command_result"


class ExposureChainQuestion(EconomicFields):
    """The steps of a dimension from one revision to another, of which the last is this fact."""

    case_ref: Identifier
    owner_fact: Annotated[OwnerFactTransition | OwnerFactLateCommandResult, Field(discriminator="kind")]
    from_revision: Annotated[int, Field(ge=0)]
    to_revision: Revision


class StepTransition(Contract):
    """A transition, and the exposure it left."""

    kind: Literal["settlement_transition"] = "settlement_transition"
    transition: SettlementTransition
    exposure: LateSettlementExposure | None = None

    def step(self) -> tuple[str, int, int, Quad]:
        """Dimension, both revisions and the identity of the step."""
        one = self.transition
        return one.dimension_id, one.from_revision, one.to_revision, one.quad()


class StepLateCommandResult(Contract):
    """A late result, and the exposure it left."""

    kind: Literal["late_settlement_command_result"] = "late_settlement_command_result"
    command_result: LateSettlementCommandResult
    exposure: LateSettlementExposure

    def step(self) -> tuple[str, int, int, Quad]:
        """Dimension, both revisions and the identity of the step."""
        one = self.command_result
        return one.dimension_id, one.from_revision, one.to_revision, one.quad()


class ExposureChainFound(Contract):
    """Every step, in order, without a gap (CASE-29)."""

    result: Literal["found"] = "found"
    chain_count: Revision
    chain: Annotated[
        list[Annotated[StepTransition | StepLateCommandResult, Field(discriminator="kind")]], Field(min_length=1)
    ]

    @model_validator(mode="after")
    def _contiguous(self) -> Self:
        require_count(self.chain_count, self.chain, "/chainCount")
        dimension, _, reached, _ = self.chain[0].step()
        for position, one in enumerate(self.chain[1:], start=1):
            place = f"/chain/{position}"
            stated, before, after, _ = one.step()
            require_equal(stated, dimension, place, "dimension")
            require(before == reached, "A step is missing", place, "revision")
            reached = after
        return self


class ExposureChainAnswer(Contract):
    """What is known of a chain."""

    answer: Annotated[ExposureChainFound | NotFound | Conflicting, Field(discriminator="result")]


READ_LATE_SETTLEMENT_EXPOSURE_CHAIN_FOR_OPERATIONS: Final = ReadOperation(
    "readLateSettlementExposureChainForOperations",
    "billing",
    "operations_late_case",
    arguments=ExposureChainQuestion,
    answer=ExposureChainAnswer,
    callers=_OPERATIONS,
)


class CoordinatorReceiptQuestion(BillingFinalizationCoordinatorConsumerReceiptQuad):
    """One receipt, and the event it must be for."""

    event_id: EventId
    event_envelope_digest_algorithm_version: Algorithm
    event_envelope_sha256: Digest
    source: Annotated[SourceExecutionClosure | SourceFinalizationReconciliationResolution, Field(discriminator="kind")]


class CoordinatorReceiptFound(Contract):
    """The receipt."""

    result: Literal["found"] = "found"
    receipt: BillingFinalizationCoordinatorConsumerReceipt


class CoordinatorReceiptAnswer(Contract):
    """What is known of a receipt."""

    answer: Annotated[CoordinatorReceiptFound | NotFound | Conflicting, Field(discriminator="result")]


READ_BILLING_FINALIZATION_COORDINATOR_CONSUMER_RECEIPT: Final = ReadOperation(
    "readBillingFinalizationCoordinatorConsumerReceipt",
    "billing",
    "receipt_verification",
    arguments=CoordinatorReceiptQuestion,
    answer=CoordinatorReceiptAnswer,
    callers=frozenset({"dispatch.execution", "dispatch.billing"}),
)


class CatchUpReceiptQuestion(
    BillingSettlementCatchUpConsumerReceiptQuad, EventBinding, EconomicFields, SettlementInputQuint
):
    """One receipt, and the event it must be for."""


class CatchUpReceiptFound(Contract):
    """The receipt."""

    result: Literal["found"] = "found"
    receipt: BillingSettlementCatchUpConsumerReceipt


class CatchUpReceiptAnswer(Contract):
    """What is known of a receipt."""

    answer: Annotated[CatchUpReceiptFound | NotFound | Conflicting, Field(discriminator="result")]


READ_BILLING_SETTLEMENT_CATCH_UP_CONSUMER_RECEIPT: Final = ReadOperation(
    "readBillingSettlementCatchUpConsumerReceipt",
    "billing",
    "receipt_verification",
    arguments=CatchUpReceiptQuestion,
    answer=CatchUpReceiptAnswer,
    callers=frozenset({"dispatch.metering"}),
)
