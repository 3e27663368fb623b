"""What the gateway answers: bodies for the event that announced them, and whether something is still current."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from psycopg import Connection

from oceanway.contracts.envelopes import availability_chain_id
from oceanway.contracts.facts.execution import AttemptExecutionManifest
from oceanway.contracts.facts.gateway import (
    AttemptRouteBinding,
    AvailabilityPending,
    CostDimension,
    EvidenceChain,
    GatewayEvidenceAvailabilitySnapshot,
)
from oceanway.contracts.facts.metering import SubjectAvailability, SubjectRoute
from oceanway.contracts.identity import ALGORITHM, quad_fields, quad_of, quint_fields, quint_of
from oceanway.contracts.reads_gateway import (
    READ_GATEWAY_SOURCE_EVENT,
    VALIDATE_GATEWAY_AVAILABILITY_CURRENT,
    VALIDATE_GATEWAY_ROUTE_CURRENT,
    AvailabilityValidation,
    RouteValidation,
    SourceEventQuestion,
)
from oceanway.gateway import documents
from oceanway.gateway.documents import Statement
from oceanway.gateway.reads import register
from oceanway.gateway.transactions import (
    advance_availability,
    bind_routes,
    declare_binding_conflict,
    declare_evidence_conflict,
    quint,
    repair_binding,
    repair_evidence,
)
from oceanway.reads.client import LocalReader
from seapost.database.pool import open_sync_pool
from tests.kit.oceanway.core import LATER, NOW
from tests.kit.oceanway.database import OwnerDatabase, TestDatabase
from tests.kit.oceanway.gateway import DEPLOYMENT, bound_attempt, cost, stating, used
from tests.kit.oceanway.reading import local_reader, new_serving


@dataclass(frozen=True)
class Scene:
    """A bound attempt and who works on it."""

    database: TestDatabase
    service: Connection
    binding: AttemptRouteBinding
    manifest: AttemptExecutionManifest

    def state(self, statement: Statement) -> GatewayEvidenceAvailabilitySnapshot:
        """Advance one chain."""
        (snapshot,) = advance_availability(self.service, [statement], recorded_at=NOW)
        self.service.commit()
        return snapshot

    def question(self, snapshot: GatewayEvidenceAvailabilitySnapshot, **changes: object) -> SourceEventQuestion:
        """Make what metering asks for the event of a statement."""
        with self.database.connect() as observer:
            row = observer.execute(
                "select e.event_id::text, encode(e.digest, 'hex') from seapost.event as e "
                "join gateway.availability_snapshot as s on s.current_changed_event_id = e.event_id "
                "where s.gateway_evidence_availability_snapshot_ref = %s",
                (snapshot.quad().ref,),
            ).fetchone()
        assert row is not None
        fields: dict[str, object] = {
            "event_id": row[0],
            "event_type": "gateway.evidence-availability.current-changed@1",
            "event_schema_version": "1",
            "event_envelope_digest_algorithm_version": ALGORITHM,
            "event_envelope_sha256": row[1],
            "aggregate_kind": "availability_chain",
            "aggregate_id": availability_chain_id(snapshot),
            "aggregate_revision": quint(snapshot).state_version,
            **{name: getattr(snapshot, name) for name in EvidenceChain.model_fields},
            **quad_fields("attempt_execution_manifest", self.manifest.quad()),
            **quad_fields("attempt_route_binding", self.binding.quad()),
            **quad_fields("gateway_route_snapshot", quad_of(self.binding, "gateway_route_snapshot")),
            **quint_fields("current_availability", quint(snapshot)),
        }
        return SourceEventQuestion(**{**fields, **changes})  # pyright: ignore[reportArgumentType]

    def validation(self, snapshot: GatewayEvidenceAvailabilitySnapshot, operation: str) -> AvailabilityValidation:
        """Make the question whether a statement is current."""
        return AvailabilityValidation(
            **quint_fields("current_availability", quint(snapshot)),
            validation_operation_id=operation,
            subject=SubjectAvailability(**{name: getattr(snapshot, name) for name in EvidenceChain.model_fields}),
        )

    def route_validation(self, operation: str, **changes: object) -> RouteValidation:
        """Make the question whether the binding is the route of its attempt."""
        fields: dict[str, object] = {
            **quad_fields("attempt_route_binding", self.binding.quad()),
            **quad_fields("gateway_route_snapshot", quad_of(self.binding, "gateway_route_snapshot")),
            "validation_operation_id": operation,
            "subject": SubjectRoute(
                execution_attempt_id=self.binding.execution_attempt_id, gateway_deployment_id=DEPLOYMENT
            ),
        }
        return RouteValidation(**{**fields, **changes})  # pyright: ignore[reportArgumentType]


@pytest.fixture(scope="module")
def gateway(owner_database: OwnerDatabase) -> TestDatabase:
    """Give one database to all tests here; every test has its own attempts."""
    return owner_database("gateway")


@pytest.fixture(scope="module")
def reader(gateway: TestDatabase) -> Iterator[LocalReader]:
    """Give the reader of metering's worker, on connections of the reading role."""
    serving = new_serving("gateway")
    with open_sync_pool(gateway.dsn, part="test", role="oceanway_gateway_reader") as pool:
        register(serving, pool)
        yield local_reader(serving, workload="work.metering")


@pytest.fixture
def scene(gateway: TestDatabase) -> Iterator[Scene]:
    """Give a bound attempt."""
    route, binding, manifest = bound_attempt()
    with gateway.connect("oceanway_gateway_service") as service:
        bind_routes(service, [(route, binding)])
        service.commit()
        yield Scene(gateway, service, binding, manifest)


@pytest.mark.req("REF-25", "SEC-10", "MTR-26", "MTR-27")
def test_the_bodies_of_an_event_are_read_by_its_complete_identity(reader: LocalReader, scene: Scene) -> None:
    """Statement, evidence and, for a cost, the cost binding of the bound route; every field of the question counts."""
    usage, paid = used(scene.binding, "3"), cost(scene.binding, "0.75")
    first = scene.state(stating(scene.manifest, scene.binding, AvailabilityPending()))
    second = scene.state(stating(scene.manifest, scene.binding, usage))
    priced = scene.state(stating(scene.manifest, scene.binding, paid, kind="provider_cost", dimension="cost"))
    asked = [scene.question(one) for one in (first, second, priced)]
    answers = [one.answer for one in reader.call(READ_GATEWAY_SOURCE_EVENT, asked)]
    bodies = [
        (one.availability_snapshot, one.evidence, one.route_cost_binding) for one in answers if one.result == "found"
    ]
    mapping = CostDimension(source_evidence_dimension_key="cost", currency="EUR", cost_mapping_version="1")
    assert bodies == [(first, None, None), (second, usage, None), (priced, paid, mapping)]
    changes: list[dict[str, object]] = [
        {"event_id": asked[0].event_id},
        {"event_type": "gateway.evidence-availability.current-changed@2"},
        {"event_schema_version": "2"},
        {"event_envelope_sha256": "0" * 64},
        {"aggregate_id": "other"},
        {"aggregate_revision": 7},
        {"execution_attempt_id": "other"},
        {"provider_evidence_kind": "provider_cost"},
        {"attempt_execution_manifest_digest": "0" * 64},
        {"attempt_route_binding_digest": "0" * 64},
        {"gateway_route_snapshot_digest": "0" * 64},
        {"current_availability_digest": "0" * 64},
        {"current_availability_state_version": 1},
        {"current_availability_ref": "unknown"},
    ]
    others = reader.call(READ_GATEWAY_SOURCE_EVENT, [scene.question(second, **change) for change in changes])
    assert {one.answer.result for one in others} == {"not_found"}


@pytest.mark.req("REF-30")
def test_a_statement_is_current_until_the_next_one(reader: LocalReader, scene: Scene) -> None:
    """Each operation has one receipt for life; a newer statement is named, so that its event is waited for."""
    first = scene.state(stating(scene.manifest, scene.binding, used(scene.binding, "3")))
    question = scene.validation(first, "validation-1" + scene.binding.execution_attempt_id)
    other = scene.validation(first, "validation-2" + scene.binding.execution_attempt_id)
    answers = [one.answer for one in reader.call(VALIDATE_GATEWAY_AVAILABILITY_CURRENT, [question, other, question])]
    assert [one.result for one in answers] == ["current"] * 3
    receipts = [one.receipt for one in answers if one.result == "current"]
    (again,) = reader.call(VALIDATE_GATEWAY_AVAILABILITY_CURRENT, [question])
    assert again.answer.result == "current"
    assert again.answer.receipt == receipts[0] == receipts[2] != receipts[1]
    assert receipts[0].validation_operation_id == question.validation_operation_id
    assert receipts[0].validated_quint.digest == first.quad().digest
    assert receipts[0].validated_quint.state_version == 1
    second = scene.state(stating(scene.manifest, scene.binding, used(scene.binding, "4")))
    (superseded,) = reader.call(VALIDATE_GATEWAY_AVAILABILITY_CURRENT, [question])
    assert superseded.answer.result == "superseded"
    assert quint_of(superseded.answer, "current_availability") == quint(second)
    unknown = scene.validation(first, "validation-3").subject.model_copy(update={"evidence_dimension_key": "other"})
    (missing,) = reader.call(VALIDATE_GATEWAY_AVAILABILITY_CURRENT, [question.model_copy(update={"subject": unknown})])
    assert missing.answer.result == "not_found"


@pytest.mark.req("REF-30", "REF-23")
def test_a_route_is_current_for_its_attempt(reader: LocalReader, scene: Scene) -> None:
    """Another binding is superseded by the stored one, another route snapshot or attempt is not known."""
    elsewhere = SubjectRoute(execution_attempt_id="other", gateway_deployment_id=DEPLOYMENT)
    current, superseded, unmapped, missing = (
        one.answer
        for one in reader.call(
            VALIDATE_GATEWAY_ROUTE_CURRENT,
            [
                scene.route_validation("route-" + scene.binding.execution_attempt_id),
                scene.route_validation("route-2", attempt_route_binding_digest="0" * 64),
                scene.route_validation("route-3", gateway_route_snapshot_digest="0" * 64),
                scene.route_validation("route-4", subject=elsewhere),
            ],
        )
    )
    assert current.result == "current"
    assert current.receipt.purpose == "metering_route_validation"
    assert current.receipt.validated_quint.digest == scene.binding.quad().digest
    assert superseded.result == "superseded"
    assert quad_of(superseded, "attempt_route_binding") == scene.binding.quad()
    assert (unmapped.result, missing.result) == ("not_found", "not_found")


@pytest.mark.req("REF-24", "SEC-16", "REF-25", "REF-30")
def test_an_open_conflict_hides_chain_or_route(reader: LocalReader, scene: Scene) -> None:
    """The answer names the kind and the quad of the fact and nothing else; after the repair all is found again."""
    snapshot = scene.state(stating(scene.manifest, scene.binding, used(scene.binding, "3")))
    about_evidence = documents.evidence_conflict(
        scene.binding, "provider_usage", "tokens", candidate_digest="5" * 64, detected_at=LATER
    )
    about_route = documents.binding_conflict(scene.binding, candidate_digest="6" * 64, detected_at=LATER)

    def results() -> list[object]:
        source = reader.call(READ_GATEWAY_SOURCE_EVENT, [scene.question(snapshot)])[0].answer
        current = reader.call(
            VALIDATE_GATEWAY_AVAILABILITY_CURRENT, [scene.validation(snapshot, scene.binding.quad().ref)]
        )[0].answer
        route = reader.call(VALIDATE_GATEWAY_ROUTE_CURRENT, [scene.route_validation(scene.binding.quad().digest)])[
            0
        ].answer
        return [one.to_json() if one.result == "conflicting" else one.result for one in (source, current, route)]

    evidence_answer = {
        "result": "conflicting",
        "conflict": {
            "kind": "gateway_evidence",
            "gatewayEvidenceConflictFactRef": about_evidence.quad().ref,
            "gatewayEvidenceConflictFactSchemaVersion": "1",
            "gatewayEvidenceConflictFactDigestAlgorithmVersion": ALGORITHM,
            "gatewayEvidenceConflictFactDigest": about_evidence.quad().digest,
        },
    }
    route_answer = {
        "result": "conflicting",
        "conflict": {
            "kind": "gateway_binding",
            "gatewayBindingConflictFactRef": about_route.quad().ref,
            "gatewayBindingConflictFactSchemaVersion": "1",
            "gatewayBindingConflictFactDigestAlgorithmVersion": ALGORITHM,
            "gatewayBindingConflictFactDigest": about_route.quad().digest,
        },
    }
    declare_evidence_conflict(scene.service, about_evidence)
    declare_evidence_conflict(scene.service, about_evidence)
    scene.service.commit()
    assert results() == [evidence_answer, evidence_answer, "current"]
    assert repair_evidence(scene.service, stating(scene.manifest, scene.binding, used(scene.binding, "3")).chain)
    declare_binding_conflict(scene.service, about_route)
    scene.service.commit()
    assert results() == [route_answer] * 3
    assert repair_binding(
        scene.service, execution_attempt_id=scene.binding.execution_attempt_id, gateway_deployment_id=DEPLOYMENT
    )
    scene.service.commit()
    assert results() == ["found", "current", "current"]
