"""What execution knows about attempts and about the end of a run (REF-18 to REF-21)."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from oceanway.contracts.base import Contract
from oceanway.contracts.conflicts import ConflictFields
from oceanway.contracts.fields import Currency
from oceanway.contracts.identity import det
from oceanway.contracts.order import ascending, require_count, require_equal
from oceanway.contracts.quads import (
    AttemptExecutionManifestQuad,
    AttemptRouteBindingQuad,
    AttemptSetManifestQuad,
    ExecutionEligibilityConflictFactQuad,
    ExecutionEligibilityFactQuad,
    RunAdmissionManifestQuad,
    RunExecutionFinalizationConflictFactQuad,
    RunExecutionFinalizationQuad,
)
from oceanway.contracts.quints import Absent
from oceanway.contracts.reasons import FailureReason, NotDispatchedReason
from oceanway.contracts.subject import AttemptFields, RunFields
from seapost.contracts.content_addressed import ContentAddressed
from seapost.contracts.fields import Count, Identifier, Timestamp


class GatewayBindingBound(AttemptRouteBindingQuad):
    """The attempt runs on this deployment, over this route."""

    state: Literal["bound"] = "bound"
    gateway_deployment_id: Identifier


GatewayBinding = Annotated[Absent | GatewayBindingBound, Field(discriminator="state")]


class ChargeDimension(Contract):
    """What gateway usage becomes which charge, and at whose price: the only such mapping (REF-18)."""

    charge_dimension_key: Identifier
    usage_dimension_key: Identifier
    quantity_unit: Identifier
    currency: Currency
    price_book_ref: Identifier
    price_book_version: Identifier


class AttemptExecutionManifest(
    AttemptExecutionManifestQuad,
    AttemptFields,
    ContentAddressed,
    prefix="attemptExecutionManifest",
    outside=("createdAt",),
):
    """What one attempt is, where it runs and what it may be charged for."""

    gateway_binding: GatewayBinding
    charge_dimensions: Annotated[list[ChargeDimension], ascending("charge_dimension_key")]
    cost_dimension_keys: Annotated[list[Identifier], ascending()]
    created_at: Timestamp


class FailureFact(Contract):
    """How a bound attempt failed."""

    reason_code: FailureReason
    failed_at: Timestamp


class ResultSucceeded(Contract):
    """The attempt did its work."""

    state: Literal["succeeded"] = "succeeded"


class ResultFailed(Contract):
    """The attempt ended without its work done."""

    state: Literal["failed"] = "failed"
    failure_fact: FailureFact


AttemptResult = Annotated[ResultSucceeded | ResultFailed, Field(discriminator="state")]


class DispositionGatewayBound(AttemptRouteBindingQuad):
    """The attempt reached a gateway, so usage is to be expected."""

    kind: Literal["gateway_bound"] = "gateway_bound"
    gateway_deployment_id: Identifier
    result: AttemptResult


class NotDispatchedFact(Contract):
    """Why the attempt was never sent."""

    reason_code: NotDispatchedReason
    decided_at: Timestamp


class DispositionNotDispatched(Contract):
    """The attempt never reached a gateway; nothing is to be waited for (RCP-32)."""

    kind: Literal["not_dispatched"] = "not_dispatched"
    not_dispatched_fact: NotDispatchedFact


Disposition = Annotated[DispositionGatewayBound | DispositionNotDispatched, Field(discriminator="kind")]


class ExecutionEligibilityFact(
    ExecutionEligibilityFactQuad,
    AttemptFields,
    AttemptExecutionManifestQuad,
    ContentAddressed,
    prefix="executionEligibilityFact",
    outside=("finalizedAt",),
):
    """How an attempt ended; there is one for each attempt."""

    disposition: Disposition
    finalized_at: Timestamp


class AttemptSetItem(AttemptExecutionManifestQuad):
    """One attempt of a closed run."""

    run_step_id: Identifier
    execution_attempt_id: Identifier


class RunAttemptSetManifest(
    AttemptSetManifestQuad, ContentAddressed, prefix="attemptSetManifest", outside=("createdAt",)
):
    """Every attempt of a run, complete at its closure."""

    run_id: Identifier
    attempt_count: Count
    attempts: Annotated[list[AttemptSetItem], ascending("run_step_id", "execution_attempt_id")]
    created_at: Timestamp

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        require_count(self.attempt_count, self.attempts, "/attemptCount")
        return self


def closure_operation_id(run_id: str) -> str:
    """The one operation that closes a run (REF-20)."""
    return det("closure", run_id)


class RunExecutionFinalizationFact(
    RunExecutionFinalizationQuad,
    RunFields,
    RunAdmissionManifestQuad,
    AttemptSetManifestQuad,
    ContentAddressed,
    prefix="runExecutionFinalization",
    outside=("closedAt",),
):
    """The end of a run's execution: no further attempt can follow."""

    run_execution_finalization_state_version: Literal[1]
    closure_operation_id: Identifier
    attempt_count: Count
    closed_at: Timestamp

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        expected = closure_operation_id(self.run_id)
        require_equal(self.closure_operation_id, expected, "/closureOperationId", "deterministic_id")
        return self


class ExecutionEligibilityConflictFact(
    ExecutionEligibilityConflictFactQuad,
    AttemptFields,
    ConflictFields,
    ContentAddressed,
    prefix="executionEligibilityConflictFact",
    outside=("detectedAt",),
):
    """Two claims about how an attempt ended exclude each other."""


class RunExecutionFinalizationConflictFact(
    RunExecutionFinalizationConflictFactQuad,
    RunFields,
    ConflictFields,
    ContentAddressed,
    prefix="runExecutionFinalizationConflictFact",
    outside=("detectedAt",),
):
    """Two claims about the closure of a run exclude each other."""
