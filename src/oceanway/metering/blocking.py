"""Why an attempt at a work cannot go on, as documents (MTR-15 to MTR-24)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from oceanway.contracts.identity import ALGORITHM, det, digest_of
from oceanway.contracts.works.metering import (
    EligibilityProcessingConflictEvidence,
    MeteringInputWorkAttemptBlocked,
    ProviderCostProcessingConflictEvidence,
)
from oceanway.metering.documents import PLACE, Document, Sealed, named, part, quad, quint, seal
from oceanway.metering.lanes import COST, active, attempt_fields, work_fields
from oceanway.metering.outcomes import LocalConflict, OwnerConflicting, Task
from oceanway.metering.provider_cost import source_event

if TYPE_CHECKING:
    from oceanway.metering.outcomes import Conflict

_OWNERS = {
    "executionEligibilityConflictFactRef": "execution_eligibility_owner_conflict",
    "gatewayEvidenceConflictFactRef": "gateway_usage_owner_conflict",
    "gatewayBindingConflictFactRef": "gateway_binding_owner_conflict",
}
_COST_OWNERS = {**_OWNERS, "gatewayEvidenceConflictFactRef": "gateway_owner_conflict"}
_TRIGGER = ("laneTriggerDigestAlgorithmVersion", "laneTriggerDigest")


@dataclass(frozen=True, slots=True)
class Block:
    """A blocked attempt: the record, its evidence if it has some, and the state of the lane."""

    blocked: Sealed
    evidence: Sealed | None
    state: Document


def block(task: Task, conflict: Conflict, moment: str) -> Block:
    """The record that keeps a work active and says why."""
    evidence: Sealed | None = None
    if task.work["lane"]["kind"] == COST:
        evidence = _cost_evidence(task, conflict, moment)
        prefix = "providerCostProcessingConflictEvidence"
        cause = {"kind": "provider_cost_processing_conflict", **named(prefix, evidence.quad)}
    elif isinstance(conflict, OwnerConflicting):
        cause = _owner_cause(conflict, _OWNERS)
    else:
        evidence = _eligibility_evidence(task, conflict, moment)
        prefix = "eligibilityProcessingConflictEvidence"
        cause = {"kind": "eligibility_processing_conflict", **named(prefix, evidence.quad)}
    work = task.work
    blocked = seal(
        MeteringInputWorkAttemptBlocked,
        {
            "meteringInputWorkAttemptBlockedRef": det("metering_work_blocked", task.ref, task.attempt_number),
            **attempt_fields(work, task.attempt_number, task.token),
            "blockingCause": cause,
            "blockedAt": moment,
        },
    )
    is_cost = work["lane"]["kind"] == COST
    state = {
        "state": "blocked_on_processing_conflict" if is_cost else "blocked_on_owner_conflict",
        "activeWork": active(work),
        **named("meteringInputWorkAttemptBlocked", blocked.quad),
    }
    return Block(blocked, evidence, state)


def _owner_cause(conflict: OwnerConflicting, kinds: dict[str, str]) -> Document:
    kind = next(kind for name, kind in kinds.items() if name in conflict.fact)
    return {"kind": kind, **conflict.fact}


def _eligibility_evidence(task: Task, conflict: LocalConflict, moment: str) -> Sealed:
    work, digest = task.work, conflict.digest
    ref = det("eligibility_conflict_evidence", task.ref, conflict.stage, digest, conflict.reason)
    return seal(
        EligibilityProcessingConflictEvidence,
        {
            "eligibilityProcessingConflictEvidenceRef": ref,
            **part(task.manifest, PLACE),
            **quad("attemptExecutionManifest", task.manifest),
            **quad("executionEligibilityFact", work["laneTrigger"]["eligibility"]),
            **work_fields(work),
            **part(work, _TRIGGER),
            "validationStage": conflict.stage,
            "conflictingCandidateDigestAlgorithmVersion": ALGORITHM,
            "conflictingCandidateDigest": digest,
            "reasonCode": conflict.reason,
            "observedAt": moment,
        },
    )


def _cost_evidence(task: Task, conflict: Conflict, moment: str) -> Sealed:
    cause: Document
    if isinstance(conflict, OwnerConflicting):
        cause = _owner_cause(conflict, _COST_OWNERS)
    else:
        cause = {
            "kind": "metering_deterministic_validation",
            "validationStage": conflict.stage,
            "conflictingCandidateDigestAlgorithmVersion": ALGORITHM,
            "conflictingCandidateDigest": conflict.digest,
            "reasonCode": conflict.reason,
        }
    payload = source_event(task)["payload"]
    return seal(
        ProviderCostProcessingConflictEvidence,
        {
            "providerCostProcessingConflictEvidenceRef": det("cost_conflict_evidence", task.ref, digest_of(cause)),
            **work_fields(task.work),
            **part(task.manifest, PLACE),
            **part(task.work["lane"], ("gatewayDeploymentId", "sourceEvidenceDimensionKey")),
            **quad("attemptExecutionManifest", task.manifest),
            **quad("attemptRouteBinding", payload),
            **quad("gatewayRouteSnapshot", payload),
            **quint("costAvailability", payload, "currentAvailability"),
            "cause": cause,
            "detectedAt": moment,
        },
    )
