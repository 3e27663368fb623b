"""The facts of execution as values: what an attempt is, how it ended, how a run closed, what contradicts itself.

References follow from the business key, so that the same fact has the same name wherever it is made (REF-02).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oceanway.contracts.errors import InvalidArgument
from oceanway.contracts.facts.execution import (
    AttemptExecutionManifest,
    AttemptSetItem,
    ChargeDimension,
    DispositionGatewayBound,
    DispositionNotDispatched,
    ExecutionEligibilityConflictFact,
    ExecutionEligibilityFact,
    GatewayBindingBound,
    NotDispatchedFact,
    ResultFailed,
    ResultSucceeded,
    RunAttemptSetManifest,
    RunExecutionFinalizationConflictFact,
    RunExecutionFinalizationFact,
    closure_operation_id,
)
from oceanway.contracts.identity import ALGORITHM, det, quad_fields, quad_of
from oceanway.contracts.quints import Absent
from oceanway.contracts.subject import AttemptFields, RunFields

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from oceanway.contracts.facts.admission import RunAdmissionManifest
    from oceanway.contracts.facts.gateway import AttemptRouteBinding
    from oceanway.contracts.reasons import ConflictKind, ConflictReason

_RUN = tuple(RunFields.model_fields)
_ATTEMPT = tuple(AttemptFields.model_fields)


def run_subject(carrier: RunFields) -> dict[str, Any]:
    """Tenant, account, reservation and run, as every document of the run repeats them."""
    return {name: getattr(carrier, name) for name in _RUN}


def attempt_subject(carrier: AttemptFields) -> dict[str, Any]:
    """The subject of the run with step and attempt."""
    return {name: getattr(carrier, name) for name in _ATTEMPT}


def attempt_manifest(
    admission: RunAdmissionManifest,
    *,
    run_step_id: str,
    execution_attempt_id: str,
    binding: AttemptRouteBinding | None,
    charge_dimensions: Iterable[ChargeDimension],
    cost_dimension_keys: Iterable[str] = (),
    created_at: str,
) -> AttemptExecutionManifest:
    """What one attempt is (REF-18).

    Args:
        binding: the route it takes; None for an attempt that has no gateway.
        charge_dimensions: those of the step, each with its usage and price; in any order.
        cost_dimension_keys: what the provider reports as its own cost; in any order.
    """
    bound: Absent | GatewayBindingBound = Absent()
    if binding is not None:
        bound = GatewayBindingBound(
            gateway_deployment_id=binding.gateway_deployment_id,
            **quad_fields("attempt_route_binding", binding.quad()),
        )
    return AttemptExecutionManifest.assemble(
        attempt_execution_manifest_ref=det("attempt_execution_manifest", execution_attempt_id),
        **run_subject(admission),
        run_step_id=run_step_id,
        execution_attempt_id=execution_attempt_id,
        gateway_binding=bound,
        charge_dimensions=sorted(charge_dimensions, key=lambda one: one.charge_dimension_key),
        cost_dimension_keys=sorted(cost_dimension_keys),
        created_at=created_at,
    )


def eligibility_fact(
    manifest: AttemptExecutionManifest,
    outcome: ResultSucceeded | ResultFailed | NotDispatchedFact,
    *,
    finalized_at: str,
) -> ExecutionEligibilityFact:
    """How an attempt ended (REF-19): a result of its gateway, or why it was never dispatched.

    Raises:
        InvalidArgument: a result of an attempt that has no gateway.
    """
    disposition: DispositionGatewayBound | DispositionNotDispatched
    binding = manifest.gateway_binding
    if isinstance(outcome, NotDispatchedFact):
        disposition = DispositionNotDispatched(not_dispatched_fact=outcome)
    elif isinstance(binding, GatewayBindingBound):
        disposition = DispositionGatewayBound(
            gateway_deployment_id=binding.gateway_deployment_id,
            **quad_fields("attempt_route_binding", quad_of(binding, "attempt_route_binding")),
            result=outcome,
        )
    else:
        message = "An attempt without a gateway has no result"
        raise InvalidArgument(message)
    return ExecutionEligibilityFact.assemble(
        execution_eligibility_fact_ref=det("execution_eligibility_fact", manifest.execution_attempt_id),
        **attempt_subject(manifest),
        **quad_fields("attempt_execution_manifest", manifest.quad()),
        disposition=disposition,
        finalized_at=finalized_at,
    )


def attempt_set(run_id: str, items: Sequence[AttemptSetItem], *, created_at: str) -> RunAttemptSetManifest:
    """Every attempt of a run, in order of step and attempt (REF-20)."""
    return RunAttemptSetManifest.assemble(
        attempt_set_manifest_ref=det("attempt_set_manifest", run_id),
        run_id=run_id,
        attempt_count=len(items),
        attempts=list(items),
        created_at=created_at,
    )


def closure_fact(
    admission: RunAdmissionManifest, attempts: RunAttemptSetManifest, *, closed_at: str
) -> RunExecutionFinalizationFact:
    """The end of a run's execution (REF-20)."""
    return RunExecutionFinalizationFact.assemble(
        run_execution_finalization_ref=det("run_execution_finalization", admission.run_id),
        run_execution_finalization_state_version=1,
        **run_subject(admission),
        closure_operation_id=closure_operation_id(admission.run_id),
        **quad_fields("run_admission_manifest", admission.quad()),
        **quad_fields("attempt_set_manifest", attempts.quad()),
        attempt_count=attempts.attempt_count,
        closed_at=closed_at,
    )


def eligibility_conflict(
    subject: AttemptFields,
    *,
    candidate_digest: str,
    detected_at: str,
    conflict_kind: ConflictKind = "content",
    reason_code: ConflictReason = "other_candidate_for_identity",
) -> ExecutionEligibilityConflictFact:
    """Two claims about the end of an attempt exclude each other (REF-21); the digest is that of the refused one."""
    return ExecutionEligibilityConflictFact.assemble(
        execution_eligibility_conflict_fact_ref=det(
            "execution_eligibility_conflict_fact", subject.execution_attempt_id, candidate_digest
        ),
        **attempt_subject(subject),
        conflict_kind=conflict_kind,
        conflicting_candidate_digest_algorithm_version=ALGORITHM,
        conflicting_candidate_digest=candidate_digest,
        reason_code=reason_code,
        detected_at=detected_at,
    )


def closure_conflict(
    subject: RunFields,
    *,
    candidate_digest: str,
    detected_at: str,
    conflict_kind: ConflictKind = "content",
    reason_code: ConflictReason = "set_differs",
) -> RunExecutionFinalizationConflictFact:
    """Two claims about the closure of a run exclude each other (REF-21); the digest is that of the refused one."""
    return RunExecutionFinalizationConflictFact.assemble(
        run_execution_finalization_conflict_fact_ref=det(
            "run_execution_finalization_conflict_fact", subject.run_id, candidate_digest
        ),
        **run_subject(subject),
        conflict_kind=conflict_kind,
        conflicting_candidate_digest_algorithm_version=ALGORITHM,
        conflicting_candidate_digest=candidate_digest,
        reason_code=reason_code,
        detected_at=detected_at,
    )
