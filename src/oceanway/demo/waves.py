"""What the applications of core, execution and gateway do with a batch of runs, wave after wave.

Each wave is one transaction for each owner that it touches, and may be played again: facts that exist are found, and a
statement is made only when its chain has not come that far. So a driver that was interrupted plays the day from the
beginning, and nothing happens twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, TypeVar

from oceanway.billing import admission as billing
from oceanway.contracts.errors import NotFound, OwnerConflict
from oceanway.contracts.facts.execution import FailureFact, NotDispatchedFact, ResultFailed
from oceanway.contracts.facts.execution import ResultSucceeded as Succeeded
from oceanway.contracts.facts.gateway import (
    AvailabilityNotReported,
    AvailabilityPending,
    AvailabilityUnavailable,
)
from oceanway.core import transactions as core
from oceanway.demo.plan import CURRENCY, text
from oceanway.demo.staging import DAWN, DAY_SECONDS, now
from oceanway.execution import documents as attempts_of
from oceanway.execution import transactions as execution
from oceanway.gateway import documents as reports_of
from oceanway.gateway import transactions as gateway
from oceanway.metering import conflicts as metering
from seapost.contracts.identifiers import write_timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from psycopg import Connection

    from oceanway.contracts.facts.execution import ExecutionEligibilityFact
    from oceanway.demo.plan import PlannedChain, Statement
    from oceanway.demo.staging import Staged, StagedRun

FactT = TypeVar("FactT")


@dataclass(slots=True)
class Sessions:
    """One open session for each owner that begins transactions; each commits what a wave did there."""

    billing: Connection[Any]
    core: Connection[Any]
    execution: Connection[Any]
    gateway: Connection[Any]
    metering: Connection[Any]


def admit(sessions: Sessions, runs: Sequence[StagedRun]) -> None:
    """Billing sets the money aside, core announces the runs, execution takes them over."""
    with sessions.billing.transaction():
        _ = billing.admit_many(
            sessions.billing, [billing.ReservationAdmission(run.manifest, run.plan.reserved, CURRENCY) for run in runs]
        )
    with sessions.core.transaction():
        _ = core.admit_many(
            sessions.core, [core.RunAdmission(run.manifest, text(run.plan.reserved), CURRENCY) for run in runs]
        )
    with sessions.execution.transaction():
        _ = execution.open_runs(sessions.execution, [run.manifest for run in runs])


def register(sessions: Sessions, runs: Sequence[StagedRun]) -> None:
    """Attempts are bound, registered and started; some runs and bindings turn out to contradict themselves."""
    staged = [attempt for run in runs for attempt in run.attempts]
    routes = [(one.route, one.binding) for one in staged if one.route is not None and one.binding is not None]
    with sessions.gateway.transaction():
        _ = gateway.bind_routes(sessions.gateway, routes)
        for run in runs:
            if run.plan.trouble == "binding" and (binding := run.attempts[0].binding) is not None:
                fact = reports_of.binding_conflict(binding, candidate_digest=_digest(run.run_id), detected_at=now())
                _declare(gateway.declare_binding_conflict, sessions.gateway, fact)
    with sessions.execution.transaction():
        _ = execution.register_attempts(sessions.execution, [one.manifest for one in staged])
        _ = execution.start_attempts(sessions.execution, [one.plan.id for one in staged if one.binding is not None])
        for run in runs:
            if run.plan.trouble == "execution":
                conflict = attempts_of.closure_conflict(
                    run.manifest, candidate_digest=_digest(run.run_id), detected_at=now()
                )
                _declare(execution.declare_finalization_conflict, sessions.execution, conflict)


def first_words(sessions: Sessions, runs: Sequence[StagedRun]) -> None:
    """Of half of the attempts the end is known, of the others the first report; some runs are closed already."""
    _end(sessions, [one for run in runs for one in run.attempts if one.plan.is_eager])
    _report(sessions, _statements(runs, number=1, eager=False))
    _trouble_usage(sessions, runs)
    _close(sessions, [run for run in runs if run.plan.closes_early and not run.plan.is_held])


def second_words(sessions: Sessions, runs: Sequence[StagedRun]) -> None:
    """Now the other halves."""
    _report(sessions, _statements(runs, number=1, eager=True))
    _trouble_usage(sessions, runs)
    _end(sessions, [one for run in runs for one in run.attempts if not one.plan.is_eager])


def last_words(sessions: Sessions, runs: Sequence[StagedRun]) -> None:
    """What was pending or wrong is reported, and every run is closed but those that are held."""
    _report(sessions, _statements(runs, number=2, eager=True) + _statements(runs, number=2, eager=False))
    _close(sessions, [run for run in runs if not run.plan.closes_early and not run.plan.is_held])


def repair(sessions: Sessions, runs: Sequence[StagedRun]) -> None:
    """The gateway's own contradictions are settled."""
    with sessions.gateway.transaction():
        for run in runs:
            binding = run.attempts[0].binding
            if binding is None:
                continue
            if run.plan.trouble == "binding":
                _ = gateway.repair_binding(
                    sessions.gateway,
                    execution_attempt_id=binding.execution_attempt_id,
                    gateway_deployment_id=binding.gateway_deployment_id,
                )
            elif run.plan.trouble == "usage":
                chain = run.attempts[0].plan.chains[0]
                _ = gateway.repair_evidence(
                    sessions.gateway,
                    (binding.execution_attempt_id, binding.gateway_deployment_id, chain.kind, chain.dimension),
                )


def contradict(sessions: Sessions, held: Sequence[StagedRun]) -> list[StagedRun]:
    """Metering contradicts itself about held runs, which are closed then; those whose input it does not have yet."""
    waiting: list[StagedRun] = []
    for run in held:
        if _contradict(sessions, run, "early"):
            _close(sessions, [run])
        else:
            waiting.append(run)
    return waiting


def dispute(sessions: Sessions, runs: Sequence[StagedRun]) -> list[StagedRun]:
    """Metering contradicts itself about billed runs whose usage is about to change; those that it is about."""
    disputed = [run for run in runs if run.plan.is_disputed]
    for run in disputed:
        _ = _contradict(sessions, run, "late")
    return disputed


def concede(sessions: Sessions, runs: Sequence[StagedRun]) -> None:
    """What metering contradicted itself about is settled."""
    with sessions.metering.transaction():
        for run in runs:
            _ = metering.repair(sessions.metering, run.first_dimension)


def _contradict(sessions: Sessions, run: StagedRun, label: str) -> bool:
    """Declare a conflict about the first dimension of a run, once for each label; whether its input is there."""
    candidate = _digest(f"{label} {run.run_id}")
    try:
        with sessions.metering.transaction():
            _ = metering.declare_settlement_conflict(sessions.metering, run.first_dimension, candidate_digest=candidate)
    except NotFound:
        return False
    except OwnerConflict:
        return True  # it was declared, and perhaps repaired, in an earlier life of the driver
    return True


def revise(sessions: Sessions, runs: Sequence[StagedRun]) -> None:
    """After the bill: what the providers change their word to."""
    late: list[tuple[int, reports_of.Statement]] = []
    for run in runs:
        for attempt in run.attempts:
            for chain in attempt.plan.chains:
                late += [
                    (len(chain.early) + place, statement_of(attempt, chain, said, len(chain.early) + place))
                    for place, said in enumerate(chain.late, start=1)
                ]
    _report(sessions, late)


WAVES: Final[tuple[Callable[[Sessions, Sequence[StagedRun]], None], ...]] = (
    admit,
    register,
    first_words,
    second_words,
    last_words,
    repair,
)


def statement_of(attempt: Staged, chain: PlannedChain, said: Statement, number: int) -> reports_of.Statement:
    """A planned statement as the gateway makes it; `number` is its place in the chain, from 1."""
    binding = attempt.binding
    assert binding is not None  # noqa: S101 - only bound attempts have chains
    record = _digest(f"{attempt.plan.id}:{chain.dimension}:{number}")
    report: reports_of.Report
    match said.state:
        case "available":
            report = reports_of.evidence(
                binding,
                chain.kind,
                chain.dimension,
                value=said.value or "0",
                measure=chain.measure,
                provider_record_digest=record,
                observed_at=now(),
            )
        case "pending":
            report = AvailabilityPending()
        case "not_reported":
            report = AvailabilityNotReported()
        case "unavailable":
            report = AvailabilityUnavailable(state_reason_code="provider_record_missing")
        case "conflicting":
            report = reports_of.evidence_conflict(
                binding, chain.kind, chain.dimension, candidate_digest=record, detected_at=now()
            )
    return reports_of.Statement(attempt.manifest, binding, chain.kind, chain.dimension, report)


def _statements(runs: Iterable[StagedRun], *, number: int, eager: bool) -> list[tuple[int, reports_of.Statement]]:
    """The n-th statement about every chain of eager or other attempts that has one before the bill."""
    return [
        (number, statement_of(attempt, chain, chain.early[number - 1], number))
        for run in runs
        for attempt in run.attempts
        if attempt.plan.is_eager is eager
        for chain in attempt.plan.chains
        if len(chain.early) >= number
    ]


def _report(sessions: Sessions, statements: Sequence[tuple[int, reports_of.Statement]]) -> None:
    """Make the statements whose chain has not come that far."""
    if not statements:
        return
    with sessions.gateway.transaction():
        current = gateway.current_availability(sessions.gateway, [one.chain for _, one in statements])
        due = [
            one
            for (number, one), known in zip(statements, current, strict=True)
            if (0 if known is None else known.state_version) == number - 1
        ]
        if due:
            _ = gateway.advance_availability(sessions.gateway, due, recorded_at=now())


def _end(sessions: Sessions, attempts: Sequence[Staged]) -> None:
    if not attempts:
        return
    with sessions.execution.transaction():
        _ = execution.finalize_eligibility(sessions.execution, [_eligibility(one) for one in attempts])


def _eligibility(attempt: Staged) -> ExecutionEligibilityFact:
    moment = now()
    observed = write_timestamp(DAWN + timedelta(seconds=int(_digest(attempt.plan.id)[:6], 16) % DAY_SECONDS))
    outcome: Succeeded | ResultFailed | NotDispatchedFact
    match attempt.plan.outcome:
        case "succeeded":
            outcome = Succeeded()
        case "failed":
            outcome = ResultFailed(failure_fact=FailureFact(reason_code="provider_failed", failed_at=observed))
        case "not_dispatched":
            outcome = NotDispatchedFact(reason_code="no_route", decided_at=observed)
    return attempts_of.eligibility_fact(attempt.manifest, outcome, finalized_at=moment)


def _close(sessions: Sessions, runs: Sequence[StagedRun]) -> None:
    if not runs:
        return
    with sessions.execution.transaction():
        _ = execution.close_runs(sessions.execution, [run.run_id for run in runs], closed_at=now())


def _trouble_usage(sessions: Sessions, runs: Sequence[StagedRun]) -> None:
    """Of some runs the gateway finds that it was told two things about the same usage."""
    with sessions.gateway.transaction():
        for run in runs:
            attempt = run.attempts[0]
            if run.plan.trouble != "usage" or attempt.binding is None:
                continue
            chain = attempt.plan.chains[0]
            fact = reports_of.evidence_conflict(
                attempt.binding, chain.kind, chain.dimension, candidate_digest=_digest(run.run_id), detected_at=now()
            )
            _declare(gateway.declare_evidence_conflict, sessions.gateway, fact)


def _declare(declare: Callable[[Connection[Any], FactT], None], connection: Connection[Any], fact: FactT) -> None:
    """Declare a conflict; one that cannot be declared yet, or was repaired, is let be."""
    try:
        with connection.transaction():
            declare(connection, fact)
    except (NotFound, OwnerConflict):
        return


def _digest(label: str) -> str:
    return sha256(label.encode()).hexdigest()
