"""Who is charged for what: the pure decisions of an eligibility work (RCP-32, REF-29, REF-32, AMB-21, AMB-49).

| Execution says | Usage says | Outcome |
|---|---|---|
| nothing yet | – | waiting for execution |
| not dispatched, or failed | not asked | not billable, quantity `0` |
| succeeded | one is missing or pending | waiting for usage |
| succeeded | one is conflicting | blocked |
| succeeded | one is not reported or unavailable | not billable, quantity `0` |
| succeeded | all available | billable with these quantities |

Conflicts come before waiting, and waiting before a verdict on what is there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from oceanway.contracts.identity import det, digest_of
from oceanway.metering.documents import QUAD, Document, part, quad, quint
from oceanway.metering.lanes import USAGE_SOURCE
from oceanway.metering.outcomes import LocalConflict, OwnerConflicting, Task, Validation, Waiting, same_identity

VALIDATION: Final = "metering_availability_validation"

_ABSENT: Final = {"not_reported": "usage_not_reported", "unavailable": "usage_unavailable"}
_FACT_IDENTITY: Final = (
    "tenantKind",
    "tenantId",
    "workspaceId",
    "projectId",
    "billingAccountId",
    "billingReservationId",
    "runId",
    "runStepId",
    "executionAttemptId",
    *(f"attemptExecutionManifest{name}" for name in QUAD),
)


@dataclass(frozen=True, slots=True)
class Basis:
    """What a decision rests on, formed from decoded bodies alone (MTR-28).

    Attributes:
        decision: the branch that follows, by wire names.
        usage: quantity and unit by usage dimension; empty unless billable.
        validations: what must still be current.
    """

    document: Document
    digest: str
    decision: Document
    usage: Mapping[str, tuple[str, str]]
    validations: Sequence[Validation]


def is_known(task: Task) -> bool:
    """Whether the trigger names an eligibility fact at all."""
    return bool(task.work["laneTrigger"]["eligibility"]["state"] == "present")


def judge_fact(task: Task, fact: Document) -> LocalConflict | Waiting | Basis | None:
    """What the eligibility fact alone decides; None where usage must be read."""
    eligibility = task.work["laneTrigger"]["eligibility"]
    if quad("executionEligibilityFact", fact) != quad("executionEligibilityFact", eligibility):
        return LocalConflict("eligibility_basis", "digest_differs", fact)
    if part(fact, _FACT_IDENTITY) != part(task.manifest, _FACT_IDENTITY):
        return LocalConflict("eligibility_basis", "identity_differs", fact)
    disposition = fact["disposition"]
    if disposition["kind"] == "not_dispatched":
        return _basis(task, [], "not_dispatched", {})
    binding = task.manifest["gatewayBinding"]
    names = ("gatewayDeploymentId", *(f"attemptRouteBinding{name}" for name in QUAD))
    if part(disposition, names) != part(binding, names):
        return LocalConflict("eligibility_basis", "manifest_differs", fact)
    if disposition["result"]["state"] == "failed":
        return _basis(task, [], "attempt_failed", {})
    if any(place not in task.envelopes for place in needed(task)):
        return Waiting("gateway_usage")
    return None


def needed(task: Task) -> list[tuple[str, str, str]]:
    """The usage sources that the charges of the attempt are made from, in order."""
    deployment = task.manifest["gatewayBinding"].get("gatewayDeploymentId", "")
    keys = {item["usageDimensionKey"] for item in task.manifest["chargeDimensions"]}
    return [(USAGE_SOURCE, deployment, key) for key in sorted(keys)]


def judge_usage(task: Task, bodies: Sequence[Document]) -> LocalConflict | OwnerConflicting | Waiting | Basis:
    """What the bodies of all needed usage sources decide, given an attempt that succeeded."""
    states: list[str] = []
    for place, body in zip(needed(task), bodies, strict=True):
        problem = _judge_body(task.envelopes[place]["payload"], body)
        if problem is not None:
            return problem
        states.append(body["availabilitySnapshot"]["availability"]["state"])
    if "pending" in states:
        return Waiting("gateway_usage")
    reason = next((_ABSENT[state] for state in _ABSENT if state in states), None)
    usage = {
        place[2]: (body["evidence"]["value"], body["evidence"]["unit"])
        for place, body in zip(needed(task), bodies, strict=True)
        if reason is None
    }
    return _basis(task, bodies, reason, usage)


def _judge_body(payload: Document, body: Document) -> LocalConflict | OwnerConflicting | None:
    snapshot = body["availabilitySnapshot"]
    if not same_identity(payload, snapshot):
        return LocalConflict("eligibility_basis", "identity_differs", snapshot)
    availability = snapshot["availability"]
    if availability["state"] == "conflicting":
        return OwnerConflicting(quad("gatewayEvidenceConflictFact", availability))
    if availability["state"] != "available":
        return None
    evidence = body.get("evidence")
    if evidence is None:
        return LocalConflict("eligibility_basis", "evidence_missing", snapshot)
    if (
        quad("gatewayEvidence", evidence) != quad("gatewayEvidence", availability)
        or evidence["kind"] != payload["providerEvidenceKind"]
        or evidence["dimension"] != payload["evidenceDimensionKey"]
    ):
        return LocalConflict("eligibility_basis", "identity_differs", evidence)
    return None


def _basis(task: Task, bodies: Sequence[Document], reason: str | None, usage: Mapping[str, tuple[str, str]]) -> Basis:
    payloads = [task.envelopes[place]["payload"] for place in needed(task)] if bodies else []
    document: Document = {
        **quad("executionEligibilityFact", task.work["laneTrigger"]["eligibility"]),
        **quad("attemptExecutionManifest", task.manifest),
        "usage": [_usage_item(payload, body) for payload, body in zip(payloads, bodies, strict=True)],
    }
    digest = digest_of(document)
    decision = {"state": "billable"} if reason is None else {"state": "not_billable", "reasonCode": reason}
    places = needed(task) if bodies else []
    return Basis(document, digest, decision, usage, [_validation(task.envelopes[place], digest) for place in places])


def _usage_item(payload: Document, body: Document) -> Document:
    availability = body["availabilitySnapshot"]["availability"]
    evidence: Document = {"state": "none"}
    if availability["state"] == "available":
        evidence = {"state": "present", **quad("gatewayEvidence", availability)}
    return {
        **part(payload, ("gatewayDeploymentId", "evidenceDimensionKey")),
        **quint("currentAvailability", payload),
        "evidence": evidence,
    }


def _validation(envelope: Document, basis_digest: str) -> Validation:
    payload: Document = envelope["payload"]
    subject = chain_subject(payload)
    return Validation(
        VALIDATION,
        "availability_validation_receipt",
        det("validation", VALIDATION, subject, basis_digest),
        envelope,
        subject,
        validated_of("currentAvailability", payload),
    )


def chain_subject(payload: Document) -> Document:
    """The chain of an availability as the subject of a validation."""
    names = ("executionAttemptId", "gatewayDeploymentId", "providerEvidenceKind", "evidenceDimensionKey")
    return {"kind": "gateway_availability", **part(payload, names)}


def validated_of(prefix: str, document: Mapping[str, Any]) -> Document:
    """A quad or quint as receipts name what they validated."""
    fields = {
        "ref": document[f"{prefix}Ref"],
        "schemaVersion": document[f"{prefix}SchemaVersion"],
        "digestAlgorithmVersion": document[f"{prefix}DigestAlgorithmVersion"],
        "digest": document[f"{prefix}Digest"],
    }
    version = document.get(f"{prefix}StateVersion")
    return fields if version is None else {**fields, "stateVersion": version}
