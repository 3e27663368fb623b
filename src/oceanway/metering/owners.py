"""What metering asks execution and the gateway, and what their answers mean for an event or a work (MTR-26 to MTR-29).

Bodies of gateway events are read bound to the accepted event (`metering_source_event_bootstrap`): the question carries
nothing that is only formed from the body. Whether something is still current is asked afterwards, for one operation.
The digest of every object is recomputed before it is used; an answer alone is never a receipt.

| Answer | For a work |
|---|---|
| found, digest right | the document |
| found, digest or schema wrong | a conflict that metering proves itself |
| conflicting | a conflict of the owner |
| not found, superseded, unreadable | later: a newer event, or the owner's own commit, is on its way |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from oceanway.contracts.reads_execution import (
    READ_EXECUTION_ELIGIBILITY_FACT,
    READ_MANIFEST_FOR_AVAILABILITY,
    READ_MANIFEST_FOR_ELIGIBILITY,
    EligibilityFactQuestion,
    ManifestForAvailability,
    ManifestForEligibility,
    ManifestFound,
)
from oceanway.contracts.reads_gateway import (
    READ_GATEWAY_SOURCE_EVENT,
    VALIDATE_GATEWAY_AVAILABILITY_CURRENT,
    VALIDATE_GATEWAY_ROUTE_CURRENT,
    AvailabilityValidation,
    RouteValidation,
    SourceEventQuestion,
)
from oceanway.metering.documents import ATTEMPT, QUAD, QUINT, Document, Sealed, part, quad
from oceanway.metering.outcomes import Later, LocalConflict, OwnerConflicting, Task, Validation
from oceanway.metering.provider_cost import ROUTE
from seapost.contracts.canonical import encode
from seapost.contracts.digest import ALGORITHM, sha256_hex
from seapost.model.errors import DigestMismatch, Reject, Retry
from seapost.model.outcome import ErrorCode

if TYPE_CHECKING:
    from oceanway.reads.client import Reader
    from seapost.contracts.content_addressed import ContentAddressed
    from seapost.inbox.deciding import Arrived

Refused = Later | LocalConflict | OwnerConflicting

_MANIFEST: Final = tuple(f"attemptExecutionManifest{name}" for name in QUAD)
_FACT: Final = tuple(f"executionEligibilityFact{name}" for name in QUAD)
_AVAILABILITY: Final = tuple(f"currentAvailability{name}" for name in QUINT)
_BINDING: Final = tuple(f"attemptRouteBinding{name}" for name in QUAD)
_ROUTE: Final = tuple(f"gatewayRouteSnapshot{name}" for name in QUAD)
_CHAIN: Final = ("executionAttemptId", "gatewayDeploymentId", "providerEvidenceKind", "evidenceDimensionKey")


class Owners:
    """Asks in batches; an owner that cannot be read raises `OwnerUnreadable` for the whole batch."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def manifests_for_eligibility(self, items: Sequence[Arrived]) -> list[Document | Retry | Reject]:
        """The manifests of eligibility events."""
        names = (*ATTEMPT, *_MANIFEST, *_FACT)
        questions = [
            ManifestForEligibility.decode({**_event(item), **part(item.event.to_json(), names)}) for item in items
        ]
        return [_manifest(one.answer) for one in self._reader.call(READ_MANIFEST_FOR_ELIGIBILITY, questions)]

    def manifests_for_availability(self, items: Sequence[Arrived]) -> list[Document | Retry | Reject]:
        """The manifests of availability events."""
        names = (*_CHAIN, *_MANIFEST, *_AVAILABILITY)
        questions = [
            ManifestForAvailability.decode({**_event(item), **part(item.event.to_json(), names)}) for item in items
        ]
        return [_manifest(one.answer) for one in self._reader.call(READ_MANIFEST_FOR_AVAILABILITY, questions)]

    def eligibility_facts(self, tasks: Sequence[Task]) -> list[Document | Refused]:
        """The eligibility facts that the triggers of works name."""
        questions = [
            EligibilityFactQuestion.decode(
                {
                    "executionAttemptId": task.work["executionAttemptId"],
                    **quad("attemptExecutionManifest", task.manifest),
                    **quad("executionEligibilityFact", task.work["laneTrigger"]["eligibility"]),
                }
            )
            for task in tasks
        ]
        found: list[Document | Refused] = []
        for one in self._reader.call(READ_EXECUTION_ELIGIBILITY_FACT, questions):
            answer: Any = one.answer
            match answer.result:
                case "found":
                    found.append(_proven(answer.fact, "eligibility_basis", "eligibility_basis"))
                case "conflicting":
                    found.append(OwnerConflicting(quad("executionEligibilityConflictFact", answer.to_json())))
                case _:
                    found.append(Later("execution does not show the eligibility fact yet"))
        return found

    def source_events(self, envelopes: Sequence[Document], stages: tuple[str, str]) -> list[Document | Refused]:
        """The bodies of accepted gateway events, by the names of the answer.

        Args:
            envelopes: the accepted events.
            stages: of a conflict about an unknown schema, and about a wrong digest.
        """
        questions = [_source_question(envelope) for envelope in envelopes]
        found: list[Document | Refused] = []
        for one in self._reader.call(READ_GATEWAY_SOURCE_EVENT, questions):
            answer: Any = one.answer
            match answer.result:
                case "found":
                    found.append(_body(answer, stages))
                case "conflicting":
                    found.append(_gateway_conflict(answer))
                case _:
                    found.append(Later("the gateway does not show the body of the event yet"))
        return found

    def validate(self, validations: Sequence[Validation]) -> list[Sealed | Refused]:
        """Receipts that each is still current, in order; one call for each of the two purposes."""
        found: dict[int, Sealed | Refused] = {}
        for is_route in (False, True):
            places = [at for at, one in enumerate(validations) if (one.purpose == ROUTE) is is_route]
            if not places:
                continue
            asked = [validations[at] for at in places]
            for at, answer in zip(places, self._validated(asked, is_route=is_route), strict=True):
                found[at] = _receipt(validations[at], answer)
        return [found[at] for at in range(len(validations))]

    def _validated(self, asked: Sequence[Validation], *, is_route: bool) -> list[Any]:
        answers: list[Any] = []
        if is_route:
            routes = [RouteValidation.decode(_validation(one, (*_BINDING, *_ROUTE))) for one in asked]
            answers.extend(self._reader.call(VALIDATE_GATEWAY_ROUTE_CURRENT, routes))
        else:
            chains = [AvailabilityValidation.decode(_validation(one, _AVAILABILITY)) for one in asked]
            answers.extend(self._reader.call(VALIDATE_GATEWAY_AVAILABILITY_CURRENT, chains))
        return [one.answer for one in answers]


def _event(item: Arrived) -> Document:
    received = item.received
    return {
        "eventId": str(received.event_id),
        "eventType": received.event_type,
        "eventSchemaVersion": received.schema_version,
        "eventEnvelopeDigestAlgorithmVersion": ALGORITHM,
        "eventEnvelopeSha256": item.envelope_sha256,
    }


def _source_question(envelope: Document) -> SourceEventQuestion:
    aggregate = envelope["aggregate"]
    return SourceEventQuestion.decode(
        {
            **part(envelope, ("eventId", "eventType", "eventSchemaVersion")),
            "eventEnvelopeDigestAlgorithmVersion": ALGORITHM,
            "eventEnvelopeSha256": sha256_hex(encode(envelope)),
            "aggregateKind": aggregate["kind"],
            "aggregateId": aggregate["id"],
            "aggregateRevision": aggregate["revision"],
            **part(envelope["payload"], (*_CHAIN, *_MANIFEST, *_BINDING, *_ROUTE, *_AVAILABILITY)),
        }
    )


def _validation(one: Validation, names: Sequence[str]) -> Document:
    return {
        "validationOperationId": one.operation_id,
        "subject": one.subject,
        **part(one.event["payload"], names),
    }


def _manifest(answer: Any) -> Document | Retry | Reject:  # noqa: ANN401 - a union by `result`
    if isinstance(answer, ManifestFound):
        try:
            answer.manifest.verify()
        except DigestMismatch as error:
            return Reject(str(error), code=ErrorCode.DIGEST_CONFLICT)
        return answer.manifest.to_json()
    if answer.result == "conflicting":
        return Reject("Execution holds another manifest under this identity", code=ErrorCode.IDENTITY_CONFLICT)
    return Retry("Execution does not show the manifest yet", code=ErrorCode.OWNER_UNREADABLE)


def _body(answer: Any, stages: tuple[str, str]) -> Document | Refused:  # noqa: ANN401 - the branch `found`
    body: Document = {}
    snapshot = _proven(answer.availability_snapshot, *stages)
    if not isinstance(snapshot, dict):
        return snapshot
    body["availabilitySnapshot"] = snapshot
    if answer.evidence is not None:
        evidence = _proven(answer.evidence, *stages)
        if not isinstance(evidence, dict):
            return evidence
        body["evidence"] = evidence
    if answer.route_cost_binding is not None:
        body["routeCostBinding"] = answer.route_cost_binding.to_json()
    return body


def _proven(value: ContentAddressed, schema_stage: str, digest_stage: str) -> Document | LocalConflict:
    """The document of an object whose schema is known and whose digest is that of its content."""
    document: Document = value.to_json()
    addressing = value.addressing
    if (document[addressing.schema_version], document[addressing.algorithm]) != (value.schema_version, ALGORITHM):
        return LocalConflict(schema_stage, "schema_unknown", document)
    covered = {name: item for name, item in document.items() if name not in addressing.outside}
    if document[addressing.digest] != sha256_hex(encode(covered)):
        return LocalConflict(digest_stage, "digest_differs", document)
    return document


def _gateway_conflict(answer: Any) -> OwnerConflicting:  # noqa: ANN401 - the branch `conflicting`
    document: Document = answer.conflict.to_json()
    is_binding = document.pop("kind") == "gateway_binding"
    return OwnerConflicting(
        quad("gatewayBindingConflictFact" if is_binding else "gatewayEvidenceConflictFact", document)
    )


def _receipt(asked: Validation, answer: Any) -> Sealed | Refused:  # noqa: ANN401 - a union by `result`
    """The receipt, if it confirms exactly what was asked."""
    match answer.result:
        case "current":
            document = _proven(answer.receipt, asked.stage, asked.stage)
            if not isinstance(document, dict):
                return document
            stated = (document["purpose"], document["validationOperationId"], document["subject"])
            if (
                stated != (asked.purpose, asked.operation_id, asked.subject)
                or document["validatedQuint"] != asked.validated
            ):
                return LocalConflict(asked.stage, "receipt_differs", document)
            return Sealed(document, encode(document), answer.receipt.quad())
        case "superseded":
            return Later("a newer event of the source is on its way")
        case "conflicting":
            return _gateway_conflict(answer)
        case _:
            return Later("the gateway does not show what is to be validated yet")
