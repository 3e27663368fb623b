"""Execution: one end for each attempt, one closure for each run, each with its only event."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

import pytest
from psycopg import Connection

from oceanway.contracts.envelopes import envelope_of
from oceanway.contracts.errors import AlreadyClosed, InvalidArgument, NotFound, OwnerConflict, Stale
from oceanway.contracts.events.execution import AttemptEligibilityFinalized
from oceanway.contracts.facts.admission import RunAdmissionManifest
from oceanway.contracts.facts.execution import AttemptExecutionManifest, ExecutionEligibilityFact
from oceanway.contracts.identity import quad_fields, quad_of
from oceanway.execution import documents, store
from oceanway.execution.transactions import (
    close_run,
    close_runs,
    finalize_eligibility,
    open_runs,
    register_attempts,
    start_attempt,
    start_attempts,
)
from seapost.contracts.envelope import new_event_id
from tests.kit.oceanway.core import LATER, new_manifest
from tests.kit.oceanway.core_faults import (
    APPENDED,
    DEFERRED,
    FOREIGN_KEY,
    INJECTED,
    RESTRICT,
    UNIQUE,
    failing,
    rows,
    sqlstate_of,
)
from tests.kit.oceanway.database import OwnerDatabase, TestDatabase
from tests.kit.oceanway.execution import SUCCEEDED, attempt_of, end_of, failed, not_dispatched
from tests.kit.oceanway.gateway import bound_attempt

ELIGIBILITY_WRITES = ("execution.eligibility_fact", "execution.event_source", *APPENDED)
CLOSURE_WRITES = (
    "execution.run_execution",
    "execution.attempt_set_manifest",
    "execution.run_finalization",
    "execution.event_source",
    *APPENDED,
)


@pytest.fixture(scope="module")
def execution(owner_database: OwnerDatabase) -> TestDatabase:
    """Give one database to all tests here; every test has its own runs."""
    return owner_database("execution")


@pytest.fixture
def service(execution: TestDatabase) -> Iterator[Connection]:
    """Give a session of the role that works on runs."""
    with execution.connect("oceanway_execution_service") as connection:
        yield connection


def begun(service: Connection) -> tuple[RunAdmissionManifest, AttemptExecutionManifest]:
    """Make an open run with one started attempt."""
    admission = new_manifest()
    _, _, attempt = bound_attempt(admission)
    open_runs(service, [admission])
    register_attempts(service, [attempt])
    assert start_attempt(service, attempt.execution_attempt_id)
    service.commit()
    return admission, attempt


def appended(database: TestDatabase, event_id: UUID) -> tuple[dict[str, Any], list[str]]:
    """Read an event and where it must arrive."""
    with database.connect() as connection:
        rows = connection.execute(
            "select e.envelope, array_agg(d.destination::text) from seapost.event as e "
            "join seapost.delivery as d using (event_id) where e.event_id = %s group by e.envelope",
            (event_id,),
        ).fetchall()
    ((envelope, destinations),) = rows
    return json.loads(envelope), destinations


@pytest.mark.req("APP-14", "REF-19", "AMB-29")
@pytest.mark.parametrize(
    "outcome", [SUCCEEDED, failed(), not_dispatched()], ids=["succeeded", "failed", "not dispatched"]
)
def test_the_end_of_an_attempt_is_one_fact_with_one_event(
    execution: TestDatabase, service: Connection, outcome: object
) -> None:
    """Whatever the end: the fact, the event of revision 1, and its one mandatory delivery to metering."""
    admission = new_manifest()
    _, _, attempt = bound_attempt(admission)
    open_runs(service, [admission])
    register_attempts(service, [attempt])
    fact = end_of(attempt, outcome)  # pyright: ignore[reportArgumentType] - one of the three
    if fact.disposition.kind == "gateway_bound":
        start_attempts(service, [attempt.execution_attempt_id])
    (finalized,) = finalize_eligibility(service, [fact])
    service.commit()
    envelope, destinations = appended(execution, finalized.event_id)
    assert destinations == ["metering_input_processor"]
    assert envelope["aggregate"] == {"kind": "attempt", "id": attempt.execution_attempt_id, "revision": 1}
    event = AttemptEligibilityFinalized.decode(json.dumps(envelope["payload"]))
    assert quad_of(event, "execution_eligibility_fact") == fact.quad()
    assert quad_of(event, "attempt_execution_manifest") == attempt.quad()


@pytest.mark.req("REF-19")
def test_an_attempt_ends_once(execution: TestDatabase, service: Connection) -> None:
    """The same end again is answered with the first; another one is refused; no event is added."""
    _, attempt = begun(service)
    (first,) = finalize_eligibility(service, [end_of(attempt)])
    service.commit()
    with execution.connect() as observer:
        before = rows(observer, "execution")
    later = documents.eligibility_fact(attempt, SUCCEEDED, finalized_at="2026-04-01T00:00:00.000000Z")
    (again,) = finalize_eligibility(service, [later])
    service.commit()
    assert (again.event_id, again.fact, again.is_new) == (first.event_id, first.fact, False)
    with pytest.raises(OwnerConflict):
        finalize_eligibility(service, [end_of(attempt, failed())])
    service.rollback()
    with execution.connect() as observer:
        assert rows(observer, "execution") == before


@pytest.mark.req("REF-19")
def test_an_end_that_contradicts_its_attempt_is_refused(service: Connection) -> None:
    """A started attempt was dispatched; one that was not started has no result; the manifest is its own."""
    admission, started = begun(service)
    _, _, waiting = bound_attempt(admission)
    unbound = attempt_of(admission, "step-2")
    register_attempts(service, [waiting, unbound])
    service.commit()
    _, _, stranger = bound_attempt(admission)
    mixed = ExecutionEligibilityFact.assemble(
        **documents.attempt_subject(started),
        execution_eligibility_fact_ref="elsewhere",
        **quad_fields("attempt_execution_manifest", waiting.quad()),
        disposition=end_of(started).disposition,
        finalized_at=LATER,
    )
    for fact, error in (
        (end_of(started, not_dispatched()), InvalidArgument),
        (end_of(waiting), InvalidArgument),
        (mixed, InvalidArgument),
        (end_of(stranger), NotFound),
    ):
        with pytest.raises(error):
            finalize_eligibility(service, [fact])
        service.rollback()
    with pytest.raises(InvalidArgument):
        start_attempt(service, unbound.execution_attempt_id)
    service.rollback()
    finalize_eligibility(service, [end_of(waiting, not_dispatched())])
    with pytest.raises(AlreadyClosed):
        start_attempt(service, waiting.execution_attempt_id)


@pytest.mark.req("REF-18", "REF-17")
def test_a_manifest_never_changes_and_fits_its_admission(service: Connection) -> None:
    """Insert-or-compare by attempt; subject, step and charge dimensions are those of the admission."""
    admission, attempt = begun(service)
    assert register_attempts(service, [attempt]) == 0
    with pytest.raises(OwnerConflict):
        register_attempts(service, [attempt.model_copy(update={"attempt_execution_manifest_digest": "0" * 64})])
    service.rollback()
    foreign = new_manifest(run_id=admission.run_id)
    for other in (
        attempt_of(foreign),
        attempt_of(new_manifest({"step-1": ["seconds"]}, **documents.run_subject(admission))),
    ):
        with pytest.raises(InvalidArgument):
            register_attempts(service, [other])
        service.rollback()
    with pytest.raises(NotFound):
        register_attempts(service, [attempt_of(new_manifest())])
    service.rollback()
    with pytest.raises(OwnerConflict):
        open_runs(service, [foreign])


@pytest.mark.req("APP-14", "APP-15", "TST-02")
@pytest.mark.parametrize(
    ("place", "outcome"),
    [
        *((place, failed()) for place in (*ELIGIBILITY_WRITES, DEFERRED + "execution.eligibility_fact")),
        (ELIGIBILITY_WRITES[0], not_dispatched()),
    ],
)
def test_the_end_of_an_attempt_is_whole_or_absent(
    execution: TestDatabase, service: Connection, place: str, outcome: object
) -> None:
    """A fault after any write or at the commit leaves no row; the repetition succeeds as if it were the first."""
    admission, started = begun(service)
    _, _, waiting = bound_attempt(admission)
    register_attempts(service, [waiting])
    service.commit()
    attempt = started if getattr(outcome, "state", "") == "failed" else waiting
    fact = end_of(attempt, outcome)  # pyright: ignore[reportArgumentType] - one of the two
    with execution.connect() as observer:
        before = rows(observer, "execution")
        with failing(execution, place):
            assert sqlstate_of(service, lambda: finalize_eligibility(service, [fact])) == INJECTED
        assert rows(observer, "execution") == before
    (finalized,) = finalize_eligibility(service, [fact])
    service.commit()
    assert finalized.is_new


@pytest.mark.req("APP-19", "APP-20", "APP-22", "REF-20", "TST-26", "APP-23")
def test_a_run_is_closed_once_with_exactly_its_attempts(execution: TestDatabase, service: Connection) -> None:
    """After the commit the delivery is there whatever happens next; the event names everything by itself."""
    admission, first = begun(service)
    others = [bound_attempt(admission, "step-2")[2], attempt_of(admission, "step-2")]
    register_attempts(service, others)
    closed = close_run(service, admission.run_id, closed_at=LATER)
    service.commit()
    execution.kill(service.info.backend_pid)  # dies before anyone could call billing
    envelope, destinations = appended(execution, closed.event_id)
    assert destinations == ["billing_finalization_coordinator"]
    assert envelope["aggregate"] == {"kind": "run_closure", "id": admission.run_id, "revision": 1}
    payload = envelope["payload"]
    subject = {name: payload[name] for name in ("tenantId", "billingAccountId", "billingReservationId", "runId")}
    assert subject.items() <= admission.to_json().items()
    assert payload["runAdmissionManifestDigest"] == admission.quad().digest
    assert payload["runExecutionFinalizationDigest"] == closed.fact.quad().digest
    assert (payload["runExecutionFinalizationStateVersion"], payload["attemptCount"]) == (1, 3)
    with execution.connect("oceanway_execution_reader") as reader:
        ((_, attempt_set, _),) = store.finalizations(reader, runs=[admission.run_id])
    assert attempt_set is not None
    listed = [(one["runStepId"], one["executionAttemptId"]) for one in json.loads(attempt_set)["attempts"]]
    assert listed == sorted((one.run_step_id, one.execution_attempt_id) for one in [first, *others])
    assert payload["attemptSetManifestDigest"] == json.loads(attempt_set)["attemptSetManifestDigest"]


@pytest.mark.req("APP-22", "NEG-23")
def test_a_closed_run_is_not_closed_again_and_gets_no_attempt(execution: TestDatabase, service: Connection) -> None:
    """Neither by the same call nor by documents of one's own; a registered attempt may still end."""
    admission, attempt = begun(service)
    closed = close_run(service, admission.run_id, closed_at=LATER)
    service.commit()
    with execution.connect() as observer:
        before = rows(observer, "execution")
    with pytest.raises(AlreadyClosed):
        close_run(service, admission.run_id, closed_at=LATER)
    service.rollback()
    empty = documents.attempt_set(admission.run_id, [], created_at=LATER)
    other = documents.closure_fact(admission, empty, closed_at=LATER)
    event = envelope_of(
        AttemptEligibilityFinalized(
            **documents.attempt_subject(attempt),
            **quad_fields("attempt_execution_manifest", attempt.quad()),
            **quad_fields("execution_eligibility_fact", end_of(attempt).quad()),
        ),
        correlation_id=admission.run_id,
    )
    with pytest.raises(AlreadyClosed):
        store.close_runs(service, sets=[empty.canonical()], facts=[other.canonical()], events=[event.envelope])
    service.rollback()
    with pytest.raises(AlreadyClosed):
        register_attempts(service, [bound_attempt(admission)[2]])
    service.rollback()
    assert close_runs(service, [admission.run_id], closed_at=LATER)[0].event_id == closed.event_id
    with execution.connect() as observer:
        assert rows(observer, "execution") == before
    assert finalize_eligibility(service, [end_of(attempt)])[0].is_new
    with pytest.raises(NotFound):
        close_run(service, "run-unknown", closed_at=LATER)


@pytest.mark.req("APP-19")
def test_an_attempt_set_that_is_not_the_stored_one_closes_nothing(service: Connection) -> None:
    """The set is compared under the lock of the run, so no attempt is left out."""
    admission, _ = begun(service)
    empty = documents.attempt_set(admission.run_id, [], created_at=LATER)
    closure = documents.closure_fact(admission, empty, closed_at=LATER)
    with pytest.raises(Stale):
        store.close_runs(service, sets=[empty.canonical()], facts=[closure.canonical()], events=[b"{}"])


@pytest.mark.req("APP-19", "APP-21", "TST-02")
@pytest.mark.parametrize("place", [*CLOSURE_WRITES, DEFERRED + "execution.run_finalization"])
def test_a_closure_is_whole_or_absent(execution: TestDatabase, service: Connection, place: str) -> None:
    """A fault after any write or at the commit leaves the run open and no row; the repetition succeeds."""
    admission, _ = begun(service)
    with execution.connect() as observer:
        before = rows(observer, "execution")
        with failing(execution, place):
            closing = sqlstate_of(service, lambda: close_run(service, admission.run_id, closed_at=LATER))
        assert closing == INJECTED
        assert rows(observer, "execution") == before
        state = observer.execute(
            "select attempt_set_state from execution.run_execution where run_id = %s", (admission.run_id,)
        ).fetchone()
    assert state == ("open",)
    assert close_run(service, admission.run_id, closed_at=LATER).is_new
    service.commit()


@pytest.mark.req("TST-09")
def test_one_event_id_cannot_announce_two_facts(service: Connection) -> None:
    """Neither in one transaction nor in a later one."""
    _, first = begun(service)
    _, second = begun(service)
    event_id = new_event_id()
    facts = [end_of(first), end_of(second)]
    events = [
        envelope_of(
            AttemptEligibilityFinalized(
                **documents.attempt_subject(fact),
                **quad_fields("attempt_execution_manifest", quad_of(fact, "attempt_execution_manifest")),
                **quad_fields("execution_eligibility_fact", fact.quad()),
            ),
            correlation_id=fact.run_id,
            event_id=event_id,
        ).envelope
        for fact in facts
    ]
    with pytest.raises(OwnerConflict):
        store.finalize_eligibility(service, facts=[fact.canonical() for fact in facts], events=events)
    service.rollback()
    store.finalize_eligibility(service, facts=[facts[0].canonical()], events=events[:1])
    service.commit()
    with pytest.raises(OwnerConflict):
        store.finalize_eligibility(service, facts=[facts[1].canonical()], events=events[1:])


@pytest.mark.req("NEG-50", "TST-10", "AMB-41", "APP-22")
def test_a_fact_without_its_event_or_with_two_is_refused(execution: TestDatabase, service: Connection) -> None:
    """Even to the owner of the tables: without at the commit, a second at once, by whatever path it comes."""
    admission, attempt = begun(service)
    (finalized,) = finalize_eligibility(service, [end_of(attempt)])
    closed = close_run(service, admission.run_id, closed_at=LATER)
    service.commit()
    spare, waiting = begun(service)
    with execution.connect("oceanway_execution_owner") as owner:
        unannounced = (
            "insert into execution.eligibility_fact select %s, %s, disposition_kind, result_state, "
            "failure_reason_code, not_dispatched_reason_code, digest, document, %s "
            "from execution.eligibility_fact where execution_attempt_id = %s"
        )
        copy = (uuid4().hex, waiting.execution_attempt_id, uuid4(), attempt.execution_attempt_id)
        assert sqlstate_of(owner, lambda: owner.execute(unannounced, copy)) == FOREIGN_KEY
        sets = (
            "insert into execution.attempt_set_manifest select %s, %s, attempt_count, digest, document "
            "from execution.attempt_set_manifest where run_id = %s"
        )
        closures = (
            "insert into execution.run_finalization select %s, %s, 1, %s, digest, document, %s "
            "from execution.run_finalization where run_id = %s"
        )

        def close_without_event() -> None:
            owner.execute(sets, (spare.run_id, uuid4().hex, admission.run_id))
            owner.execute(closures, (spare.run_id, uuid4().hex, uuid4().hex, uuid4(), admission.run_id))

        assert sqlstate_of(owner, close_without_event) == FOREIGN_KEY
        doubled = "insert into execution.event_source values (%s, %s, %s, repeat('0', 64))"
        for event_type, fact in (
            ("execution.attempt-eligibility.finalized@1", finalized.fact.quad().ref),
            ("execution.run-finalization.closed@1", closed.fact.quad().ref),
        ):
            second = (event_type, fact, uuid4())
            assert sqlstate_of(owner, lambda values=second: owner.execute(doubled, values)) == UNIQUE
        stored = owner.execute("select event_id from execution.event_source limit 1").fetchone()
        assert stored is not None
        again = ("execution.run-finalization.closed@1", uuid4().hex, stored[0])
        assert sqlstate_of(owner, lambda: owner.execute(doubled, again)) == UNIQUE
        reopened = "update execution.run_execution set attempt_set_state = 'open', closed_at = null where run_id = %s"
        assert sqlstate_of(owner, lambda: owner.execute(reopened, (admission.run_id,))) == RESTRICT
