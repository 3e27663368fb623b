"""What execution answers: exactly what was asked for, the quad of an open conflict, or that there is nothing."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest
from psycopg import Connection

from oceanway.contracts.errors import NotFound, OwnerConflict
from oceanway.contracts.events.execution import AttemptEligibilityFinalized
from oceanway.contracts.facts.admission import RunAdmissionManifest
from oceanway.contracts.facts.execution import AttemptExecutionManifest
from oceanway.contracts.identity import ALGORITHM, Quad, quad_fields, quad_of
from oceanway.contracts.reads_execution import (
    READ_EXECUTION_ELIGIBILITY_FACT,
    READ_MANIFEST_FOR_AVAILABILITY,
    READ_MANIFEST_FOR_ELIGIBILITY,
    READ_RUN_EXECUTION_FINALIZATION_FOR_BILLING,
    EligibilityFactQuestion,
    ManifestForAvailability,
    ManifestForEligibility,
    RunFinalizationQuestion,
)
from oceanway.execution import documents
from oceanway.execution.reads import register
from oceanway.execution.transactions import (
    Closed,
    Finalized,
    close_run,
    declare_eligibility_conflict,
    declare_finalization_conflict,
    finalize_eligibility,
    open_runs,
    register_attempts,
    repair_eligibility,
    repair_finalization,
    start_attempt,
)
from oceanway.reads.client import LocalReader
from seapost.database.pool import open_sync_pool
from tests.kit.oceanway.core import LATER, NOW, new_manifest
from tests.kit.oceanway.database import OwnerDatabase, TestDatabase
from tests.kit.oceanway.execution import end_of
from tests.kit.oceanway.gateway import DEPLOYMENT, bound_attempt
from tests.kit.oceanway.reading import local_reader, new_serving


@pytest.fixture(scope="module")
def execution(owner_database: OwnerDatabase) -> TestDatabase:
    """Give one database to all tests here; every test has its own runs."""
    return owner_database("execution")


@pytest.fixture(scope="module")
def reader(execution: TestDatabase) -> Iterator[dict[str, LocalReader]]:
    """Give the readers of both callers, on connections of the reading role."""
    serving = new_serving("execution")
    with open_sync_pool(execution.dsn, part="test", role="oceanway_execution_reader") as pool:
        register(serving, pool)
        yield {name: local_reader(serving, workload=name) for name in ("work.metering", "work.finalization")}


@pytest.fixture
def service(execution: TestDatabase) -> Iterator[Connection]:
    """Give a session of the role that works on runs."""
    with execution.connect("oceanway_execution_service") as connection:
        yield connection


@pytest.fixture
def ended(service: Connection) -> tuple[AttemptExecutionManifest, Finalized]:
    """Give an attempt that ended."""
    admission = new_manifest()
    _, _, attempt = bound_attempt(admission)
    open_runs(service, [admission])
    register_attempts(service, [attempt])
    start_attempt(service, attempt.execution_attempt_id)
    (finalized,) = finalize_eligibility(service, [end_of(attempt)])
    service.commit()
    return attempt, finalized


@pytest.fixture
def closed(service: Connection) -> tuple[RunAdmissionManifest, Closed]:
    """Give a run that closed."""
    admission = new_manifest()
    open_runs(service, [admission])
    closure = close_run(service, admission.run_id, closed_at=LATER)
    service.commit()
    return admission, closure


def eligibility_question(
    execution: TestDatabase, attempt: AttemptExecutionManifest, finalized: Finalized, **changes: object
) -> ManifestForEligibility:
    """Make what metering asks for an eligibility event."""
    with execution.connect() as observer:
        row = observer.execute(
            "select encode(digest, 'hex') from seapost.event where event_id = %s", (finalized.event_id,)
        ).fetchone()
    assert row is not None
    fields: dict[str, object] = {
        "event_id": str(finalized.event_id),
        "event_type": AttemptEligibilityFinalized.event_type,
        "event_schema_version": "1",
        "event_envelope_digest_algorithm_version": ALGORITHM,
        "event_envelope_sha256": row[0],
        **documents.attempt_subject(attempt),
        **quad_fields("attempt_execution_manifest", attempt.quad()),
        **quad_fields("execution_eligibility_fact", finalized.fact.quad()),
    }
    return ManifestForEligibility(**{**fields, **changes})  # pyright: ignore[reportArgumentType]


def fact_question(attempt: AttemptExecutionManifest, quad: Quad) -> EligibilityFactQuestion:
    """Make what a work of metering asks for its trigger."""
    return EligibilityFactQuestion(
        execution_attempt_id=attempt.execution_attempt_id,
        **quad_fields("attempt_execution_manifest", attempt.quad()),
        **quad_fields("execution_eligibility_fact", quad),
    )


def closure_question(admission: RunAdmissionManifest, quad: Quad) -> RunFinalizationQuestion:
    """Make what billing asks for a closure."""
    return RunFinalizationQuestion(
        **documents.run_subject(admission),
        **quad_fields("run_execution_finalization", quad),
        operation_id="finalization-1",
    )


@pytest.mark.req("REF-18", "SEC-09")
def test_a_manifest_is_read_for_the_event_that_announced_the_end(
    execution: TestDatabase, reader: dict[str, LocalReader], ended: tuple[AttemptExecutionManifest, Finalized]
) -> None:
    """Every field of the event and of the identity counts; one that differs is answered with `conflicting`."""
    attempt, finalized = ended
    asked = [
        eligibility_question(execution, attempt, finalized),
        *(
            eligibility_question(execution, attempt, finalized, **change)
            for change in (
                {"event_id": "0197a3b4-5c6d-7e8f-8a9b-0c1d2e3f4a5b"},
                {"event_envelope_sha256": "0" * 64},
                {"tenant_id": "tenant-2"},
                {"billing_account_id": "account-2"},
                {"run_step_id": "step-2"},
                {"attempt_execution_manifest_digest": "0" * 64},
                {"execution_eligibility_fact_digest": "0" * 64},
            )
        ),
        eligibility_question(execution, attempt, finalized, execution_attempt_id=uuid4().hex),
    ]
    found, *others, unknown = reader["work.metering"].call(READ_MANIFEST_FOR_ELIGIBILITY, asked)
    assert found.answer.result == "found"
    assert found.answer.manifest == attempt
    assert [one.answer.result for one in others] == ["conflicting"] * 7
    assert unknown.answer.result == "not_found"


@pytest.mark.req("REF-18", "SEC-09")
def test_a_manifest_is_read_for_an_availability_of_its_deployment(
    reader: dict[str, LocalReader], ended: tuple[AttemptExecutionManifest, Finalized]
) -> None:
    """Another deployment or another digest is a conflict; an unknown attempt is not found."""
    attempt, _ = ended

    def question(**changes: object) -> ManifestForAvailability:
        fields: dict[str, object] = {
            "event_id": "0197a3b4-5c6d-7e8f-8a9b-0c1d2e3f4a5b",
            "event_type": "gateway.evidence-availability.current-changed@1",
            "event_schema_version": "1",
            "event_envelope_digest_algorithm_version": ALGORITHM,
            "event_envelope_sha256": "1" * 64,
            "execution_attempt_id": attempt.execution_attempt_id,
            "gateway_deployment_id": DEPLOYMENT,
            "provider_evidence_kind": "provider_usage",
            "evidence_dimension_key": "tokens",
            **quad_fields("attempt_execution_manifest", attempt.quad()),
            **quad_fields("current_availability", Quad("a", "1", ALGORITHM, "2" * 64)),
            "current_availability_state_version": 1,
        }
        return ManifestForAvailability(**{**fields, **changes})  # pyright: ignore[reportArgumentType]

    answers = reader["work.metering"].call(
        READ_MANIFEST_FOR_AVAILABILITY,
        [
            question(),
            question(gateway_deployment_id="deployment-2"),
            question(attempt_execution_manifest_digest="0" * 64),
            question(execution_attempt_id=uuid4().hex),
        ],
    )
    assert [one.answer.result for one in answers] == ["found", "conflicting", "conflicting", "not_found"]


@pytest.mark.req("REF-19", "REF-21", "SEC-16")
def test_an_eligibility_fact_is_hidden_by_an_open_conflict(
    reader: dict[str, LocalReader], service: Connection, ended: tuple[AttemptExecutionManifest, Finalized]
) -> None:
    """The answer is the quad of the conflict fact and nothing else; after the repair the fact is found again."""
    attempt, finalized = ended
    question = fact_question(attempt, finalized.fact.quad())
    ask = reader["work.metering"]
    other = fact_question(attempt, Quad("other", "1", ALGORITHM, "0" * 64))
    found, missing = ask.call(READ_EXECUTION_ELIGIBILITY_FACT, [question, other])
    assert (found.answer.result, missing.answer.result) == ("found", "not_found")
    conflict = documents.eligibility_conflict(attempt, candidate_digest="3" * 64, detected_at=NOW)
    declare_eligibility_conflict(service, conflict)
    declare_eligibility_conflict(service, conflict)
    service.commit()
    (answer,) = ask.call(READ_EXECUTION_ELIGIBILITY_FACT, [question])
    assert answer.answer.result == "conflicting"
    assert quad_of(answer.answer, "execution_eligibility_conflict_fact") == conflict.quad()
    assert len(answer.answer.to_json()) == 5
    with pytest.raises(OwnerConflict):
        declare_eligibility_conflict(
            service, documents.eligibility_conflict(attempt, candidate_digest="4" * 64, detected_at=NOW)
        )
    service.rollback()
    assert repair_eligibility(service, attempt.execution_attempt_id)
    assert not repair_eligibility(service, attempt.execution_attempt_id)
    service.commit()
    (answer,) = ask.call(READ_EXECUTION_ELIGIBILITY_FACT, [question])
    assert answer.answer.result == "found"
    assert answer.answer.fact == finalized.fact


@pytest.mark.req("REF-38", "FIN-06", "SEC-16", "REF-21")
def test_a_closure_is_hidden_by_an_open_conflict(
    reader: dict[str, LocalReader], service: Connection, closed: tuple[RunAdmissionManifest, Closed]
) -> None:
    """Billing learns the quad of the conflict fact, never a case; after the repair it finds fact and attempt set."""
    admission, closure = closed
    question = closure_question(admission, closure.fact.quad())
    ask = reader["work.finalization"]
    unknown = closure_question(new_manifest(), closure.fact.quad())
    other = closure_question(admission, Quad("other", "1", ALGORITHM, "0" * 64))
    answers = ask.call(READ_RUN_EXECUTION_FINALIZATION_FOR_BILLING, [question, unknown, other])
    assert [one.answer.result for one in answers] == ["found", "not_found", "not_found"]
    conflict = documents.closure_conflict(admission, candidate_digest="3" * 64, detected_at=NOW)
    declare_finalization_conflict(service, conflict)
    service.commit()
    (answer,) = ask.call(READ_RUN_EXECUTION_FINALIZATION_FOR_BILLING, [question])
    assert answer.answer.result == "conflicting"
    assert quad_of(answer.answer, "run_execution_finalization_conflict_fact") == conflict.quad()
    assert len(answer.answer.to_json()) == 5
    assert repair_finalization(service, admission.run_id)
    service.commit()
    (answer,) = ask.call(READ_RUN_EXECUTION_FINALIZATION_FOR_BILLING, [question])
    assert answer.answer.result == "found"
    assert (answer.answer.fact, answer.answer.attempt_set_manifest.attempts) == (closure.fact, [])
    with pytest.raises(OwnerConflict):
        declare_finalization_conflict(service, conflict)
    service.rollback()
    stranger = documents.closure_conflict(new_manifest(), candidate_digest="3" * 64, detected_at=NOW)
    with pytest.raises(NotFound):
        declare_finalization_conflict(service, stranger)
