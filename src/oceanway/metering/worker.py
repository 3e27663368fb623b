"""The workers of metering: claim, read, validate, decide, write (MTR-26 to MTR-39).

A step claims works in a transaction of its own, asks the owners for all of them at once and outside of any transaction,
decides each purely, and writes all outcomes in one transaction. Where one of them is refused, each is written alone, so
that a lost lease or a conflict harms no other work. Whatever is temporary gives the lease back and writes nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar

import psycopg

from oceanway.contracts.errors import OceanWayError, OwnerConflict, Stale
from oceanway.metering import eligibility, provider_cost, settlement, store
from oceanway.metering.committing import commit
from oceanway.metering.documents import Sealed, read
from oceanway.metering.lanes import COST, ELIGIBILITY, superseded
from oceanway.metering.outcomes import (
    Applied,
    Later,
    LocalConflict,
    Outcome,
    OwnerConflicting,
    Processed,
    Task,
    Validation,
    task_of,
)
from oceanway.metering.owners import Owners, Refused
from oceanway.metering.store import Backoff
from oceanway.reads.errors import OwnerUnreadable
from seapost.contracts.identifiers import write_timestamp
from seapost.telemetry.logging import get_logger

if TYPE_CHECKING:
    from oceanway.reads.client import Reader
    from seapost.database.pool import SyncPool

ValueT = TypeVar("ValueT")

_log = get_logger("oceanway.metering.worker")

_REPOSITORY_STAGES: Final[Mapping[str, Mapping[str, str]]] = {
    ELIGIBILITY: {
        "eligibility_decision": "eligibility_decision",
        "meter_event": "meter_event",
        "settlement_input": "settlement_input",
        "metering_availability_validation": "availability_validation_receipt",
    },
    COST: {
        "provider_cost_repository": "provider_cost_repository",
        "metering_availability_validation": "availability_validation_receipt",
        "metering_route_validation": "route_validation_receipt",
    },
}
"""The stage of a conflict that the repository finds, by what the database names."""


BACKOFF: Final = Backoff(timedelta(milliseconds=100), timedelta(seconds=30))


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """How long works are held, and how long a fruitless one waits (AMB-45)."""

    lease: timedelta = timedelta(seconds=30)
    backoff: Backoff = BACKOFF


class Runner:
    """Works on one kind of lane; `step` is what a work loop calls.

    Args:
        lane_kind: `eligibility_and_settlement_input` or `provider_cost`.
        pool: of the metering database.
        judge: gives one outcome for each task; it reads owners and holds no connection.
    """

    def __init__(
        self,
        lane_kind: str,
        pool: SyncPool,
        judge: Callable[[Sequence[Task], str], list[Outcome]],
        settings: WorkerSettings | None = None,
    ) -> None:
        self.lane_kind = lane_kind
        self._pool = pool
        self._judge = judge
        self._settings = settings or WorkerSettings()
        self._owner = f"metering-{secrets.token_hex(8)}"

    def step(self, limit: int) -> int:
        """Do at most `limit` works; how many were claimed."""
        tasks = self.claim(limit)
        if tasks:
            self.settle(tasks, self.judge(tasks))
        return len(tasks)

    def claim(self, limit: int) -> list[Task]:
        """Lease works that are due; committed before anything else happens."""
        with self._pool.connection() as connection, connection.transaction():
            claims = store.claim(
                connection, lane_kind=self.lane_kind, owner=self._owner, limit=limit, lease=self._settings.lease
            )
        return [task_of(claim) for claim in claims]

    def judge(self, tasks: Sequence[Task]) -> list[Outcome]:
        """What each task comes to; nothing is written."""
        return self._judge(tasks, _now())

    def settle(self, tasks: Sequence[Task], outcomes: Sequence[Outcome]) -> None:
        """Write all outcomes in one transaction, or each in one of its own where that is refused."""
        moment = _now()
        pairs = list(zip(tasks, outcomes, strict=True))
        for task, outcome in pairs:
            if isinstance(outcome, Later):
                _log.info("work_retryable", work=task.ref, reason=outcome.reason)
        try:
            with self._pool.connection() as connection, connection.transaction():
                for task, outcome in pairs:
                    commit(connection, task, outcome, moment=moment, backoff=self._settings.backoff)
        except (OceanWayError, psycopg.Error):
            for task, outcome in pairs:
                self._settle_one(task, outcome, moment)

    def _settle_one(self, task: Task, outcome: Outcome, moment: str) -> None:
        try:
            self._write(task, outcome, moment)
        except Stale:
            self._converge(task, moment)
        except OwnerConflict as conflict:
            stage = _REPOSITORY_STAGES[self.lane_kind].get(conflict.detail or "")
            if stage is None:
                raise
            found = LocalConflict(stage, "other_candidate_for_identity", _refused(outcome, stage))
            try:
                self._write(task, found, moment)
            except Stale:
                self._converge(task, moment)
        except psycopg.Error as error:
            _log.warning("work_not_written", work=task.ref, exc_info=error)
            self._write(task, Later("the database refused the outcome"), moment)

    def _write(self, task: Task, outcome: Outcome, moment: str) -> None:
        with self._pool.connection() as connection, connection.transaction():
            commit(connection, task, outcome, moment=moment, backoff=self._settings.backoff)

    def _converge(self, task: Task, moment: str) -> None:
        """A late worker ends its superseded work, unless that was done on its behalf, and writes no more (MTR-12)."""
        finish = superseded(task.work, task.attempt_number, task.token, moment)
        with self._pool.connection() as connection, connection.transaction():
            _ = store.superseded(connection, finish=finish.data)


def build_runners(pool: SyncPool, reader: Reader, settings: WorkerSettings | None = None) -> list[Runner]:
    """The runner of the eligibility lanes and that of the cost lanes."""
    owners = Owners(reader)
    return [
        Runner(ELIGIBILITY, pool, EligibilityJudge(owners).judge, settings),
        Runner(COST, pool, CostJudge(owners).judge, settings),
    ]


class EligibilityJudge:
    """Reads and decides eligibility works, in stages that each ask an owner once for all works that need it."""

    def __init__(self, owners: Owners) -> None:
        self._owners = owners

    def judge(self, tasks: Sequence[Task], moment: str) -> list[Outcome]:
        """One outcome for each task."""
        found: dict[int, Any] = {}
        known = [at for at, task in enumerate(tasks) if eligibility.is_known(task)]
        found.update({at: eligibility.Waiting("execution_eligibility") for at in range(len(tasks)) if at not in known})
        facts = _ask(lambda: self._owners.eligibility_facts([tasks[at] for at in known]), len(known))
        for at, fact in zip(known, facts, strict=True):
            found[at] = eligibility.judge_fact(tasks[at], fact) if isinstance(fact, dict) else fact
        asking = [at for at in known if found[at] is None]
        found.update(zip(asking, self._usage([tasks[at] for at in asking]), strict=True))
        based = [at for at in known if isinstance(found[at], eligibility.Basis)]
        validations = [found[at].validations for at in based]
        for at, receipts in zip(based, _validate(self._owners, validations), strict=True):
            if isinstance(receipts, list):
                data = [receipt.data for receipt in receipts]
                found[at] = settlement.apply(tasks[at], found[at], data, moment)
            else:
                found[at] = receipts
        return [found[at] for at in range(len(tasks))]

    def _usage(self, tasks: Sequence[Task]) -> list[Any]:
        wanted = [[task.envelopes[place] for place in eligibility.needed(task)] for task in tasks]
        events = [event for several in wanted for event in several]
        answers = iter(
            _ask(lambda: self._owners.source_events(events, ("eligibility_basis", "eligibility_basis")), len(events))
        )
        results: list[Any] = []
        for task, several in zip(tasks, wanted, strict=True):
            bodies = _complete([next(answers) for _ in several])
            results.append(eligibility.judge_usage(task, bodies) if isinstance(bodies, list) else bodies)
        return results


class CostJudge:
    """Reads and decides cost works; see `EligibilityJudge`."""

    def __init__(self, owners: Owners) -> None:
        self._owners = owners

    def judge(self, tasks: Sequence[Task], moment: str) -> list[Outcome]:
        """One outcome for each task."""
        events = [provider_cost.source_event(task) for task in tasks]
        bodies = _ask(lambda: self._owners.source_events(events, ("source_schema", "source_identity")), len(tasks))
        found: list[Any] = [
            provider_cost.judge(task, body, moment) if isinstance(body, dict) else body
            for task, body in zip(tasks, bodies, strict=True)
        ]
        candidates = [at for at, one in enumerate(found) if isinstance(one, provider_cost.Candidate)]
        validations = [found[at].validations for at in candidates]
        for at, receipts in zip(candidates, _validate(self._owners, validations), strict=True):
            is_current = isinstance(receipts, list)
            found[at] = provider_cost.process(tasks[at], found[at], receipts, moment) if is_current else receipts
        return found


def _validate(owners: Owners, groups: Sequence[Sequence[Validation]]) -> list[list[Sealed] | Refused]:
    """The receipts of each group, or what keeps the group from having them all."""
    flat = [one for group in groups for one in group]
    answers = iter(_ask(lambda: owners.validate(flat), len(flat)))
    return [_complete([next(answers) for _ in group]) for group in groups]


def _complete(answers: Sequence[ValueT | Refused]) -> list[ValueT] | Refused:
    """All answers, or what keeps the work from going on: a conflict before a delay."""
    refused = [one for one in answers if isinstance(one, Later | LocalConflict | OwnerConflicting)]
    if refused:
        return min(refused, key=lambda one: isinstance(one, Later))
    return [one for one in answers if not isinstance(one, Later | LocalConflict | OwnerConflicting)]


def _ask(question: Callable[[], Sequence[ValueT]], count: int) -> Sequence[ValueT | Later]:
    """The answers, or for each of them the same delay: an unreadable owner says nothing about its facts."""
    if not count:
        return []
    try:
        return question()
    except OwnerUnreadable as error:
        return [Later(str(error))] * count


def _refused(outcome: Outcome, stage: str) -> Any:  # noqa: ANN401 - what a digest is made of
    """The candidate that the repository refused; of a receipt its bytes."""
    match outcome:
        case Processed(fact=Sealed() as fact) if stage == "provider_cost_repository":
            return fact.document
        case Applied() if stage == "eligibility_decision":
            return outcome.decision.document
        case Applied() if stage == "meter_event":
            return [one.document for one in outcome.meter_events]
        case Applied() if stage == "settlement_input":
            return [one.document for one in outcome.snapshots]
        case Applied() | Processed():
            return [read(data) for data in outcome.receipts]
        case _:
            return stage


def _now() -> str:
    return write_timestamp(datetime.now(UTC))
