"""How a cost work ends: the pure decisions of a cost lane (A.4, MTR-30 to MTR-37).

Missing evidence is never a cost of zero: only available evidence makes a cost fact, and only with two receipts that
its availability and its route are still current.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from oceanway.contracts.facts.metering import ProviderCostAvailabilityProcessingFact, ProviderCostFact
from oceanway.contracts.identity import det, digest_of
from oceanway.metering.documents import Document, Sealed, named, part, quad, seal
from oceanway.metering.eligibility import chain_subject, validated_of
from oceanway.metering.outcomes import LocalConflict, Processed, Task, Validation, same_identity

AVAILABILITY: Final = "metering_availability_validation"
ROUTE: Final = "metering_route_validation"

_PLACE: Final = ("executionAttemptId", "gatewayDeploymentId", "sourceEvidenceDimensionKey")
_WITHOUT_FACT: Final = {
    "pending": "waiting_for_evidence",
    "not_reported": "no_cost_evidence",
    "unavailable": "no_cost_evidence",
    "conflicting": "reconciliation_required",
}


@dataclass(frozen=True, slots=True)
class Candidate:
    """A cost fact without its quad, and what must still be current before it may become one."""

    fields: Document
    validations: Sequence[Validation]


def source_event(task: Task) -> Document:
    """The accepted event that the work is about."""
    [envelope] = task.envelopes.values()
    return envelope


def judge(task: Task, body: Document, moment: str) -> LocalConflict | Processed | Candidate:
    """What the body of the availability decides."""
    event = source_event(task)
    snapshot = body["availabilitySnapshot"]
    if not same_identity(event["payload"], snapshot):
        return LocalConflict("source_identity", "identity_differs", snapshot)
    availability = snapshot["availability"]
    state = availability["state"]
    if state != "available":
        outcome = {"state": _WITHOUT_FACT[state], "availabilityState": state}
        if state == "conflicting":
            outcome["stateReasonCode"] = availability["stateReasonCode"]
        return Processed(processing_of(task, outcome, moment), None, [])
    return _candidate(task, body, availability, event)


def _candidate(task: Task, body: Document, availability: Document, event: Document) -> LocalConflict | Candidate:
    evidence, binding = body.get("evidence"), body.get("routeCostBinding")
    payload = event["payload"]
    if evidence is None:
        return LocalConflict("source_identity", "evidence_missing", availability)
    is_named = quad("gatewayEvidence", evidence) == quad("gatewayEvidence", availability)
    if not is_named or (evidence["kind"], evidence["dimension"]) != ("provider_cost", payload["evidenceDimensionKey"]):
        return LocalConflict("source_identity", "identity_differs", evidence)
    if binding is None or binding["sourceEvidenceDimensionKey"] != payload["evidenceDimensionKey"]:
        return LocalConflict("provider_cost_mapping", "mapping_missing", evidence)
    if binding["currency"] != evidence["currency"]:
        return LocalConflict("provider_cost_normalization", "currency_differs", evidence)
    fields = {
        **part(task.work["lane"], _PLACE),
        "executionAttemptId": task.work["executionAttemptId"],
        "amount": evidence["value"],
        "currency": evidence["currency"],
        **quad("gatewayEvidence", evidence),
        "routeCostBinding": binding,
    }
    # the availability belongs to the basis: the same evidence under a later one is another operation
    digest = digest_of({"candidate": fields, "availability": validated_of("currentAvailability", payload)})
    route = {"kind": "gateway_route", **part(payload, ("executionAttemptId", "gatewayDeploymentId"))}
    return Candidate(
        fields,
        (
            _validation(
                AVAILABILITY, event, chain_subject(payload), digest, validated_of("currentAvailability", payload)
            ),
            _validation(ROUTE, event, route, digest, validated_of("attemptRouteBinding", payload)),
        ),
    )


def _validation(purpose: str, event: Document, subject: Document, digest: str, validated: Document) -> Validation:
    stage = "route_validation_receipt" if purpose == ROUTE else "availability_validation_receipt"
    return Validation(purpose, stage, det("validation", purpose, subject, digest), event, subject, validated)


def process(task: Task, candidate: Candidate, receipts: Sequence[Sealed], moment: str) -> Processed:
    """The cost fact with its processing, once both receipts are there."""
    evidence = candidate.fields["gatewayEvidenceRef"]
    place = [candidate.fields[name] for name in _PLACE]
    fact = seal(
        ProviderCostFact,
        {**candidate.fields, "providerCostFactRef": det("provider_cost_fact", *place, evidence), "factedAt": moment},
    )
    availability, route = receipts
    outcome = {
        "state": "available_applied",
        "availabilityState": "available",
        **named("providerCostFact", fact.quad),
        **named("availabilityValidationReceipt", availability.quad),
        **named("routeValidationReceipt", route.quad),
    }
    return Processed(processing_of(task, outcome, moment), fact, [one.data for one in receipts])


def processing_of(task: Task, outcome: Mapping[str, Any], moment: str) -> Sealed:
    """The processing fact of a work: the durable anchor of its outcome (MTR-35)."""
    work = task.work
    trigger = work["laneTrigger"]
    fields = {
        "providerCostAvailabilityProcessingRef": det("provider_cost_processing", task.ref),
        **quad("meteringInputWork", work),
        **part(work, ("meteringInputWorkOperationId", "workGeneration", "executionAttemptId")),
        **part(work["lane"], _PLACE),
        **quad("costAvailability", trigger),
        "costAvailabilityStateVersion": trigger["costAvailabilityStateVersion"],
        "outcome": dict(outcome),
        "processedAt": moment,
    }
    return seal(ProviderCostAvailabilityProcessingFact, fields)
