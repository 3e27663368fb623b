"""Execution and gateway in memory, as a reader: they answer from the facts of attempts, or say what a test wants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from oceanway.contracts.base import Contract
from oceanway.contracts.facts.metering import CurrentValidationReceipt
from oceanway.contracts.reads import ReadOperation
from oceanway.metering.documents import Document, part, quad, seal
from oceanway.metering.eligibility import validated_of
from oceanway.reads.errors import OwnerUnreadable
from tests.kit.oceanway.metering_facts import COST, MOMENT, Attempt

A = TypeVar("A", bound=Contract)
R = TypeVar("R", bound=Contract)

NOT_FOUND: Document = {"result": "not_found"}


@dataclass
class Peers:
    """Both owners.

    Attributes:
        attempts: what they know.
        unreadable: owners that cannot be asked now.
        conflicting: quads of conflict facts that are answered instead, by attempt and name of the read.
        changes: what the documents found are replaced by, by attempt and name of the read.
        asked: name, purpose and arguments of every question.
    """

    attempts: dict[str, Attempt] = field(default_factory=dict[str, Attempt])
    unreadable: set[str] = field(default_factory=set[str])
    conflicting: dict[tuple[str, str], Document] = field(default_factory=dict[tuple[str, str], Document])
    changes: dict[tuple[str, str], Document] = field(default_factory=dict[tuple[str, str], Document])
    asked: list[tuple[str, str, Document]] = field(default_factory=list[tuple[str, str, Document]])

    def add(self, attempt: Attempt) -> Attempt:
        """Know an attempt."""
        self.attempts[attempt.ref] = attempt
        return attempt

    def call(self, operation: ReadOperation[A, R], arguments: Sequence[A]) -> list[R]:
        """See `Reader`."""
        if operation.audience in self.unreadable:
            raise OwnerUnreadable(operation.audience, operation.name, "the test says so")
        questions = [one.to_json() for one in arguments]
        self.asked.extend((operation.name, operation.purpose, question) for question in questions)
        return [operation.answer.decode({"answer": self._answer(operation, question)}) for question in questions]

    def _answer(self, operation: ReadOperation[A, R], question: Document) -> Document:
        name = operation.name
        ref = str((question.get("subject") or question)["executionAttemptId"])
        conflict = self.conflicting.get((ref, name))
        if conflict is not None:
            return _conflicting(conflict)
        attempt = self.attempts.get(ref)
        if attempt is None:
            return NOT_FOUND
        match name:
            case "readAttemptExecutionManifest":
                found: Document = {"result": "found", "manifest": attempt.manifest}
            case "readExecutionEligibilityFact":
                found = {"result": "found", "fact": attempt.fact} if attempt.fact else NOT_FOUND
            case "readGatewaySourceEvent":
                found = _source_event(attempt, question)
            case _:
                found = _validate(attempt, operation.purpose, question)
        return {**found, **self.changes.get((ref, name), {})}


def _conflicting(conflict: Document) -> Document:
    if "gatewayEvidenceConflictFactRef" in conflict:
        return {"result": "conflicting", "conflict": {"kind": "gateway_evidence", **conflict}}
    if "gatewayBindingConflictFactRef" in conflict:
        return {"result": "conflicting", "conflict": {"kind": "gateway_binding", **conflict}}
    return {"result": "conflicting", **conflict}


def _source_event(attempt: Attempt, question: Document) -> Document:
    """The bodies of the snapshot that the event names, however old it is."""
    chain = attempt.chains.get((question["providerEvidenceKind"], question["evidenceDimensionKey"]), [])
    ref = question["currentAvailabilityRef"]
    snapshot = next((one for one in chain if one["gatewayEvidenceAvailabilitySnapshotRef"] == ref), None)
    if snapshot is None:
        return NOT_FOUND
    found: Document = {"result": "found", "availabilitySnapshot": snapshot}
    if snapshot["availability"]["state"] == "available":
        found["evidence"] = attempt.evidence[snapshot["availability"]["gatewayEvidenceRef"]]
    if question["providerEvidenceKind"] == COST:
        dimensions = attempt.route["costDimensions"]
        key = question["evidenceDimensionKey"]
        found["routeCostBinding"] = next(one for one in dimensions if one["sourceEvidenceDimensionKey"] == key)
    return found


def _validate(attempt: Attempt, purpose: str, question: Document) -> Document:
    """A receipt while the chain's newest snapshot, or the route, is the one asked about."""
    subject = question["subject"]
    if purpose == "metering_route_validation":
        if quad("attemptRouteBinding", question) != quad("attemptRouteBinding", attempt.binding):
            return {"result": "superseded", **quad("attemptRouteBinding", attempt.binding)}
        validated = validated_of("attemptRouteBinding", question)
    else:
        newest = attempt.chains[subject["providerEvidenceKind"], subject["evidenceDimensionKey"]][-1]
        validated = validated_of("currentAvailability", question)
        if validated["stateVersion"] != newest["gatewayEvidenceAvailabilitySnapshotStateVersion"]:
            current = {
                f"currentAvailability{name}": newest[f"gatewayEvidenceAvailabilitySnapshot{name}"]
                for name in ("Ref", "SchemaVersion", "DigestAlgorithmVersion", "Digest", "StateVersion")
            }
            return {"result": "superseded", **current}
    receipt = seal(
        CurrentValidationReceipt,
        {
            "currentValidationReceiptRef": f"receipt:{question['validationOperationId']}",
            "purpose": purpose,
            **part(question, ("validationOperationId", "subject")),
            "validatedQuint": validated,
            "result": "current",
            "issuedAt": MOMENT,
        },
    )
    return {"result": "current", "receipt": receipt.document}
