"""What execution does in one transaction each (TX-13, TX-14). The caller owns the transaction; nothing here commits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from oceanway.contracts.envelopes import envelope_of
from oceanway.contracts.errors import AlreadyClosed, NotFound
from oceanway.contracts.events.execution import AttemptEligibilityFinalized, RunFinalizationClosed
from oceanway.contracts.facts.admission import RunAdmissionManifest
from oceanway.contracts.facts.execution import (
    AttemptSetItem,
    ExecutionEligibilityFact,
    RunAttemptSetManifest,
    RunExecutionFinalizationFact,
)
from oceanway.contracts.identity import quad_fields, quad_of
from oceanway.execution import documents, store

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from uuid import UUID

    from psycopg import Connection

    from oceanway.contracts.facts.execution import (
        AttemptExecutionManifest,
        ExecutionEligibilityConflictFact,
        RunExecutionFinalizationConflictFact,
    )
    from seapost.contracts.envelope import PreparedEvent


@dataclass(frozen=True, slots=True)
class Finalized:
    """How an attempt ended, as execution holds it: by this call, or by the first one.

    Attributes:
        is_new: this call recorded it.
    """

    fact: ExecutionEligibilityFact
    event_id: UUID
    is_new: bool


@dataclass(frozen=True, slots=True)
class Closed:
    """The closure of a run.

    Attributes:
        event_id: of the only closure event.
        is_new: this call closed it.
    """

    fact: RunExecutionFinalizationFact
    event_id: UUID
    is_new: bool


def open_runs(connection: Connection[Any], admissions: Iterable[RunAdmissionManifest]) -> int:
    """Take over runs as core admitted them; how many are new.

    Raises:
        OwnerConflict: a run or its reservation is known with another manifest.
    """
    return store.open_runs(connection, manifests=[one.canonical() for one in admissions])


def register_attempts(connection: Connection[Any], manifests: Iterable[AttemptExecutionManifest]) -> int:
    """Register attempts of open runs, each under a manifest that never changes; how many are new (REF-18).

    Raises:
        OwnerConflict: an attempt has another manifest.
        InvalidArgument: an attempt does not belong to its run, or is charged for other dimensions than its step.
        NotFound: the run is not known.
        AlreadyClosed: the run is closed.
    """
    return store.register_attempts(connection, manifests=[one.canonical() for one in manifests])


def start_attempts(connection: Connection[Any], attempts: Iterable[str]) -> int:
    """Record that attempts were handed to their gateways; how many are new.

    Raises:
        InvalidArgument: an attempt has no gateway.
        NotFound: an attempt is not registered.
        AlreadyClosed: an attempt ended without being dispatched.
    """
    return store.start_attempts(connection, attempts=attempts)


def start_attempt(connection: Connection[Any], execution_attempt_id: str) -> bool:
    """Record that one attempt was handed to its gateway; whether that is new. Raises as `start_attempts`."""
    return start_attempts(connection, [execution_attempt_id]) == 1


def finalize_eligibility(connection: Connection[Any], facts: Sequence[ExecutionEligibilityFact]) -> list[Finalized]:
    """Record how attempts ended, all or none: the only fact of each with its only event (TX-13, APP-14).

    Raises:
        OwnerConflict: an attempt has another fact.
        InvalidArgument: a fact contradicts the manifest or the start of its attempt.
        NotFound: an attempt is not registered.
    """
    rows = store.finalize_eligibility(
        connection,
        facts=[fact.canonical() for fact in facts],
        events=[_eligibility_finalized(fact).envelope for fact in facts],
    )
    return [
        Finalized(fact if is_new else ExecutionEligibilityFact.decode(document), event_id, is_new)
        for fact, (document, event_id, is_new) in zip(facts, rows, strict=True)
    ]


def close_run(connection: Connection[Any], run_id: str, *, closed_at: str) -> Closed:
    """Close one run: no attempt can follow, and its only closure event is on its way (TX-14).

    Raises:
        AlreadyClosed: it is closed, by whomever (APP-22).
        NotFound: the run is not known.
        Stale: an attempt was registered at this moment; redo the transaction.
    """
    (closed,) = close_runs(connection, [run_id], closed_at=closed_at)
    if not closed.is_new:
        raise AlreadyClosed(detail=run_id)
    return closed


def close_runs(connection: Connection[Any], run_ids: Sequence[str], *, closed_at: str) -> list[Closed]:
    """Close those of these runs that are open, all or none; of the others the first closure is returned.

    Raises:
        AlreadyClosed: somebody else closes one of them at this moment.
        NotFound: a run is not known.
        Stale: an attempt was registered at this moment; redo the transaction.
    """
    closed: list[Closed] = []
    sets: list[RunAttemptSetManifest] = []
    events: list[PreparedEvent] = []
    for run_id, (admitted, items, fact, event_id) in zip(run_ids, store.closing(connection, runs=run_ids), strict=True):
        if admitted is None:
            raise NotFound(detail=run_id)
        if fact is not None and event_id is not None:
            closed.append(Closed(RunExecutionFinalizationFact.decode(fact), event_id, is_new=False))
            continue
        admission = RunAdmissionManifest.decode(admitted)
        attempts = documents.attempt_set(
            run_id, [AttemptSetItem.model_validate(item, by_name=False) for item in items], created_at=closed_at
        )
        closure = documents.closure_fact(admission, attempts, closed_at=closed_at)
        event = _run_closed(closure)
        sets.append(attempts)
        events.append(event)
        closed.append(Closed(closure, event.event_id, is_new=True))
    store.close_runs(
        connection,
        sets=[one.canonical() for one in sets],
        facts=[one.fact.canonical() for one in closed if one.is_new],
        events=[event.envelope for event in events],
    )
    return closed


def declare_eligibility_conflict(connection: Connection[Any], fact: ExecutionEligibilityConflictFact) -> None:
    """Answer reads about the end of this attempt with `conflicting` until the repair (REF-21).

    Raises:
        OwnerConflict: another conflict of the attempt is open, or this one was repaired.
        NotFound: the attempt is not registered.
    """
    store.declare_eligibility_conflict(connection, document=fact.canonical())


def repair_eligibility(connection: Connection[Any], execution_attempt_id: str) -> bool:
    """End the open conflict of an attempt; whether there was one."""
    return store.repair_eligibility(connection, attempt=execution_attempt_id)


def declare_finalization_conflict(connection: Connection[Any], fact: RunExecutionFinalizationConflictFact) -> None:
    """Answer reads about the closure of this run with `conflicting` until the repair (REF-21, FIN-06).

    Raises:
        OwnerConflict: another conflict of the run is open, or this one was repaired.
        NotFound: the run is not known.
    """
    store.declare_closure_conflict(connection, document=fact.canonical())


def repair_finalization(connection: Connection[Any], run_id: str) -> bool:
    """End the open conflict of a run; whether there was one."""
    return store.repair_closure(connection, run=run_id)


def _eligibility_finalized(fact: ExecutionEligibilityFact) -> PreparedEvent:
    event = AttemptEligibilityFinalized(
        **documents.attempt_subject(fact),
        **quad_fields("attempt_execution_manifest", quad_of(fact, "attempt_execution_manifest")),
        **quad_fields("execution_eligibility_fact", fact.quad()),
    )
    return envelope_of(event, correlation_id=fact.run_id)


def _run_closed(fact: RunExecutionFinalizationFact) -> PreparedEvent:
    event = RunFinalizationClosed(
        **documents.run_subject(fact),
        **quad_fields("run_admission_manifest", quad_of(fact, "run_admission_manifest")),
        **quad_fields("run_execution_finalization", fact.quad()),
        run_execution_finalization_state_version=fact.run_execution_finalization_state_version,
        **quad_fields("attempt_set_manifest", quad_of(fact, "attempt_set_manifest")),
        closure_operation_id=fact.closure_operation_id,
        attempt_count=fact.attempt_count,
    )
    return envelope_of(event, correlation_id=fact.run_id, operation_id=fact.closure_operation_id)
