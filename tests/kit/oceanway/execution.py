"""Attempts and their ends: each attempt is one that no other test knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from uuid import uuid4

from oceanway.contracts.facts.execution import (
    ChargeDimension,
    FailureFact,
    NotDispatchedFact,
    ResultFailed,
    ResultSucceeded,
)
from oceanway.execution import documents
from tests.kit.oceanway.core import LATER, NOW

if TYPE_CHECKING:
    from oceanway.contracts.facts.admission import RunAdmissionManifest
    from oceanway.contracts.facts.execution import AttemptExecutionManifest, ExecutionEligibilityFact
    from oceanway.contracts.facts.gateway import AttemptRouteBinding
    from oceanway.contracts.reasons import FailureReason, NotDispatchedReason

SUCCEEDED: Final = ResultSucceeded()


def failed(reason: FailureReason = "timed_out") -> ResultFailed:
    """Make the result of an attempt that failed."""
    return ResultFailed(failure_fact=FailureFact(reason_code=reason, failed_at=LATER))


def not_dispatched(reason: NotDispatchedReason = "no_route") -> NotDispatchedFact:
    """Make the reason why an attempt was never sent."""
    return NotDispatchedFact(reason_code=reason, decided_at=LATER)


def charge(key: str) -> ChargeDimension:
    """Make the mapping from the usage of this name to the charge of this name."""
    return ChargeDimension(
        charge_dimension_key=key,
        usage_dimension_key=key,
        quantity_unit="token",
        currency="EUR",
        price_book_ref="prices",
        price_book_version="1",
    )


def attempt_of(
    admission: RunAdmissionManifest,
    step: str = "step-1",
    binding: AttemptRouteBinding | None = None,
    *,
    created_at: str = NOW,
) -> AttemptExecutionManifest:
    """Make an attempt of a step, charged as the step was admitted."""
    (admitted,) = [one for one in admission.steps if one.run_step_id == step]
    return documents.attempt_manifest(
        admission,
        run_step_id=step,
        execution_attempt_id=f"attempt-{uuid4().hex}" if binding is None else binding.execution_attempt_id,
        binding=binding,
        charge_dimensions=[charge(key) for key in admitted.charge_dimension_keys],
        cost_dimension_keys=[] if binding is None else ["cost"],
        created_at=created_at,
    )


def end_of(
    manifest: AttemptExecutionManifest, outcome: ResultSucceeded | ResultFailed | NotDispatchedFact | None = None
) -> ExecutionEligibilityFact:
    """Make the fact how an attempt ended; by default it succeeded, or was not dispatched when it has no gateway."""
    usual = SUCCEEDED if manifest.gateway_binding.state == "bound" else not_dispatched()
    return documents.eligibility_fact(manifest, outcome or usual, finalized_at=LATER)
