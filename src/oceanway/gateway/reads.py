"""The owner reads of the gateway (REF-25, REF-30): bodies of announced events, and whether something is still current.

A question repeats what its caller was told. A stored fact answers it only when every field that both have is the same;
an open conflict is answered with the quad of its fact and nothing else (SEC-16).
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from pydantic.alias_generators import to_camel

from oceanway.contracts.envelopes import availability_chain_id
from oceanway.contracts.events.gateway import GatewayEvidenceAvailabilityCurrentChanged
from oceanway.contracts.facts.gateway import (
    EvidenceChain,
    GatewayBindingConflictFact,
    GatewayEvidenceConflictFact,
)
from oceanway.contracts.facts.metering import CurrentValidationReceipt
from oceanway.contracts.identity import ALGORITHM, Quad, Quint, det, quad_fields, quad_of, quint_fields, quint_of
from oceanway.contracts.quads import (
    AttemptExecutionManifestQuad,
    AttemptRouteBindingQuad,
    GatewayRouteSnapshotQuad,
)
from oceanway.contracts.quints import Validated
from oceanway.contracts.reads import NotFound
from oceanway.contracts.reads_gateway import (
    READ_GATEWAY_SOURCE_EVENT,
    VALIDATE_GATEWAY_AVAILABILITY_CURRENT,
    VALIDATE_GATEWAY_ROUTE_CURRENT,
    AvailabilitySuperseded,
    AvailabilityValidation,
    AvailabilityValidationAnswer,
    BindingConflict,
    EvidenceConflict,
    GatewayConflicting,
    RouteSuperseded,
    RouteValidation,
    RouteValidationAnswer,
    SourceEventAnswer,
    SourceEventQuestion,
)
from oceanway.gateway import store
from seapost.contracts.canonical import encode
from seapost.contracts.identifiers import write_timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from oceanway.reads.call import Caller
    from oceanway.reads.server import Serving
    from seapost.contracts.contract import Contract
    from seapost.database.pool import SyncPool

    Document = Mapping[str, Any]

_SOURCE_UNKNOWN: Final = SourceEventAnswer(answer=NotFound()).canonical()
_AVAILABILITY_UNKNOWN: Final = AvailabilityValidationAnswer(answer=NotFound())
_ROUTE_UNKNOWN: Final = RouteValidationAnswer(answer=NotFound())
_SNAPSHOT: Final = "gatewayEvidenceAvailabilitySnapshot"
_BINDING: Final = "attemptRouteBinding"


def register(serving: Serving, pool: SyncPool) -> None:
    """Serve the reads of the gateway from these connections."""
    reads = _Reads(pool)
    serving.register(READ_GATEWAY_SOURCE_EVENT, reads.source_event)
    serving.register(VALIDATE_GATEWAY_AVAILABILITY_CURRENT, reads.availability)
    serving.register(VALIDATE_GATEWAY_ROUTE_CURRENT, reads.route)


class _Reads:
    """The functions behind the operations, on one pool."""

    def __init__(self, pool: SyncPool) -> None:
        self._pool = pool

    def source_event(
        self, _caller: Caller, questions: Sequence[SourceEventQuestion]
    ) -> list[SourceEventAnswer | bytes]:
        """The bodies that an event names; nothing here is a receipt (MTR-26, MTR-29)."""
        with self._pool.connection() as connection:
            rows = store.sources(connection, refs=[one.current_availability_ref for one in questions])
        return [_source(question, row) for question, row in zip(questions, rows, strict=True)]

    def availability(
        self, _caller: Caller, questions: Sequence[AvailabilityValidation]
    ) -> list[AvailabilityValidationAnswer | bytes]:
        """Whether a statement is the current one of its chain, for one operation (REF-30)."""
        with self._pool.connection() as connection:
            rows = store.current_availability(connection, chains=[_chain(one.subject) for one in questions])
            answers = [_availability(question, row) for question, row in zip(questions, rows, strict=True)]
            return _issued(connection, answers)

    def route(self, _caller: Caller, questions: Sequence[RouteValidation]) -> list[RouteValidationAnswer | bytes]:
        """Whether a binding is the route of its attempt, for one operation (REF-30)."""
        pairs = [(one.subject.execution_attempt_id, one.subject.gateway_deployment_id) for one in questions]
        with self._pool.connection() as connection:
            rows = store.current_routes(connection, bindings=pairs)
            answers = [_route(question, row) for question, row in zip(questions, rows, strict=True)]
            return _issued(connection, answers)


def _source(question: SourceEventQuestion, row: store.SourceRow) -> SourceEventAnswer | bytes:
    document, evidence, route, event_id, sha256, evidence_conflict, binding_conflict = row
    if document is None:
        return _SOURCE_UNKNOWN
    stored: Document = json.loads(document)
    if not _announced(question, stored, str(event_id), sha256):
        return _SOURCE_UNKNOWN
    conflict = _conflict(evidence_conflict, binding_conflict)
    if conflict is not None:
        return SourceEventAnswer(answer=conflict)
    members = [b'"availabilitySnapshot":' + document]
    if evidence is not None:
        members.append(b'"evidence":' + evidence)
    members.append(b'"result":"found"')
    cost = _cost_binding(question, route)
    if cost is not None:
        members.append(b'"routeCostBinding":' + encode(cost))
    return b'{"answer":{%s}}' % b",".join(members)


def _announced(question: SourceEventQuestion, stored: Document, event_id: str, sha256: str | None) -> bool:
    """Whether the question repeats the event that announced this statement, and the identity of the statement."""
    event = GatewayEvidenceAvailabilityCurrentChanged
    announced = (event_id, event.event_type, event.event_schema_version, ALGORITHM, sha256)
    asked = (
        question.event_id,
        question.event_type,
        question.event_schema_version,
        question.event_envelope_digest_algorithm_version,
        question.event_envelope_sha256,
    )
    aggregate = (question.aggregate_kind, question.aggregate_id, question.aggregate_revision)
    chain = (event.aggregate_kind, availability_chain_id(question), question.current_availability_state_version)
    parts = (EvidenceChain, AttemptExecutionManifestQuad, AttemptRouteBindingQuad, GatewayRouteSnapshotQuad)
    return (
        asked == announced
        and aggregate == chain
        and quint_of(question, "current_availability") == _quint(stored)
        and _repeats(question, stored, parts)
    )


def _cost_binding(question: SourceEventQuestion, route: bytes | None) -> Document | None:
    """How the cost of this chain is read: the item of the bound route; a usage has none (REF-23)."""
    if question.provider_evidence_kind != "provider_cost" or route is None:
        return None
    dimensions: Iterable[Document] = json.loads(route)["costDimensions"]
    return next(
        (one for one in dimensions if one["sourceEvidenceDimensionKey"] == question.evidence_dimension_key), None
    )


def _availability(
    question: AvailabilityValidation, row: store.AvailabilityRow
) -> AvailabilityValidationAnswer | CurrentValidationReceipt:
    document, evidence_conflict, binding_conflict = row
    if document is None:
        return _AVAILABILITY_UNKNOWN
    conflict = _conflict(evidence_conflict, binding_conflict)
    if conflict is not None:
        return AvailabilityValidationAnswer(answer=conflict)
    asked, current = quint_of(question, "current_availability"), _quint(json.loads(document))
    if asked == current:
        return _receipt("metering_availability_validation", question, current.quad, current.state_version)
    if asked.state_version < current.state_version:
        superseded = AvailabilitySuperseded(**quint_fields("current_availability", current))
        return AvailabilityValidationAnswer(answer=superseded)
    return _AVAILABILITY_UNKNOWN


def _route(question: RouteValidation, row: store.RouteRow) -> RouteValidationAnswer | CurrentValidationReceipt:
    document, _, binding_conflict = row
    if document is None:
        return _ROUTE_UNKNOWN
    conflict = _conflict(None, binding_conflict)
    if conflict is not None:
        return RouteValidationAnswer(answer=conflict)
    stored: Document = json.loads(document)
    current = _quad(_BINDING, stored)
    if quad_of(question, "attempt_route_binding") != current:
        return RouteValidationAnswer(answer=RouteSuperseded(**quad_fields("attempt_route_binding", current)))
    if not _repeats(question, stored, (GatewayRouteSnapshotQuad,)):
        return _ROUTE_UNKNOWN
    return _receipt("metering_route_validation", question, current, None)


def _receipt(
    purpose: str, question: AvailabilityValidation | RouteValidation, quad: Quad, state_version: int | None
) -> CurrentValidationReceipt:
    return CurrentValidationReceipt.assemble(
        current_validation_receipt_ref=det("current_validation_receipt", purpose, question.validation_operation_id),
        purpose=purpose,
        validation_operation_id=question.validation_operation_id,
        subject=question.subject,
        validated_quint=Validated(
            ref=quad.ref,
            schema_version=quad.schema_version,
            digest_algorithm_version=ALGORITHM,
            digest=quad.digest,
            state_version=state_version,
        ),
        result="current",
        issued_at=write_timestamp(datetime.now(UTC)),
    )


def _issued(connection: Any, answers: Sequence[Any]) -> list[Any]:  # noqa: ANN401 - answers of one operation
    """The answers, with each receipt kept and put into `current`; whoever asks again gets the first receipt."""
    receipts = [one for one in answers if isinstance(one, CurrentValidationReceipt)]
    kept = iter(store.issue(connection, receipts=[one.canonical() for one in receipts]) if receipts else ())
    return [
        b'{"answer":{"receipt":%s,"result":"current"}}' % next(kept)
        if isinstance(one, CurrentValidationReceipt)
        else one
        for one in answers
    ]


def _conflict(evidence: bytes | None, binding: bytes | None) -> GatewayConflicting | None:
    if evidence is not None:
        quad = GatewayEvidenceConflictFact.decode(evidence).quad()
        return GatewayConflicting(conflict=EvidenceConflict(**quad_fields("gateway_evidence_conflict_fact", quad)))
    if binding is not None:
        quad = GatewayBindingConflictFact.decode(binding).quad()
        return GatewayConflicting(conflict=BindingConflict(**quad_fields("gateway_binding_conflict_fact", quad)))
    return None


def _chain(subject: EvidenceChain) -> store.Chain:
    return (
        subject.execution_attempt_id,
        subject.gateway_deployment_id,
        subject.provider_evidence_kind,
        subject.evidence_dimension_key,
    )


def _quad(prefix: str, stored: Document) -> Quad:
    return Quad(
        stored[f"{prefix}Ref"],
        stored[f"{prefix}SchemaVersion"],
        stored[f"{prefix}DigestAlgorithmVersion"],
        stored[f"{prefix}Digest"],
    )


def _quint(stored: Document) -> Quint:
    quad = _quad(_SNAPSHOT, stored)
    version: int = stored[f"{_SNAPSHOT}StateVersion"]
    return Quint(quad.ref, quad.schema_version, quad.digest_algorithm_version, quad.digest, version)


def _repeats(question: Contract, stored: Document, parts: Iterable[type[Contract]]) -> bool:
    """Whether a question says of these parts exactly what the stored document says."""
    asked = question.to_json()
    names = (to_camel(name) for part in parts for name in part.model_fields)
    return all(asked.get(name) == stored.get(name) for name in names)
