"""The payloads of execution: an attempt ended, and a run was closed (annex B, 8 and 9)."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from oceanway.contracts.events.base import OwnerEvent
from oceanway.contracts.facts.execution import closure_operation_id
from oceanway.contracts.order import require_equal
from oceanway.contracts.quads import (
    AttemptExecutionManifestQuad,
    AttemptSetManifestQuad,
    ExecutionEligibilityFactQuad,
    RunAdmissionManifestQuad,
    RunExecutionFinalizationQuad,
)
from oceanway.contracts.subject import AttemptFields, RunFields
from seapost.contracts.fields import Count, Identifier


class AttemptEligibilityFinalized(
    AttemptFields,
    AttemptExecutionManifestQuad,
    ExecutionEligibilityFactQuad,
    OwnerEvent,
    type="execution.attempt-eligibility.finalized@1",
    producer="execution",
    aggregate="attempt",
):
    """How an attempt ended is known for good."""

    def source_fact_key(self) -> str:
        """The eligibility fact."""
        return self.execution_eligibility_fact_ref


class RunFinalizationClosed(
    RunFields,
    RunAdmissionManifestQuad,
    RunExecutionFinalizationQuad,
    AttemptSetManifestQuad,
    OwnerEvent,
    type="execution.run-finalization.closed@1",
    producer="execution",
    aggregate="run_closure",
):
    """A run is closed; it names its complete attempt set (APP-20)."""

    closure_operation_id: Identifier
    run_execution_finalization_state_version: Literal[1]
    attempt_count: Count

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        expected = closure_operation_id(self.run_id)
        require_equal(self.closure_operation_id, expected, "/closureOperationId", "deterministic_id")
        return self

    def source_fact_key(self) -> str:
        """The closure fact."""
        return self.run_execution_finalization_ref
