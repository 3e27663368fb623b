"""The task automaton of section 26.1 as a model beside the real database (T-P04 for tasks, T-P01)."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from psycopg import Connection

from tests.kit.database import TestDatabase
from tests.kit.orbit.platform import Held, Platform, assert_tasks_whole, found

FINAL: Final = {"succeeded", "failed", "cancelled"}
AUDITED: Final = {
    "submit": "task.submitted",
    "claim": "task.claimed",
    "confirm": "task.result.confirmed",
    "cancel": "task.cancelled",
    "resolve": "task.resolved",
    "recover": "task.attempt.recovered",
}


@dataclass
class Modelled:
    """What the model knows of a task."""

    task_id: str
    policy: str
    max_attempts: int
    state: str = "queued"
    revision: int = 1
    attempts: int = 0
    uncertain: bool = False
    current: str | None = None
    result: str | None = None
    held: Held | None = None
    lost: bool = False
    events: list[str] = field(default_factory=lambda: ["task.created"])
    old: list[Held] = field(default_factory=list[Held])
    receipts: dict[str, tuple[tuple[str, str, bool, str | None], str]] = field(
        default_factory=dict[str, tuple[tuple[str, str, bool, str | None], str]]
    )


class TaskMachine(RuleBasedStateMachine):
    """Random operations on a few tasks of one queue; after each, database and model agree."""

    connection: Connection[Any]
    tasks = Bundle("tasks")

    @initialize()
    def begin(self) -> None:
        """Start in a namespace of its own."""
        self.platform = Platform(self.connection, found(self.connection))
        self.known: list[Modelled] = []
        self.journal: list[tuple[int, str, str]] = []
        self.audits = dict.fromkeys(AUDITED.values(), 0)

    @rule(target=tasks, policy=st.sampled_from(["safe", "unsafe"]), attempts=st.integers(1, 3))
    def submit(self, policy: str, attempts: int) -> Modelled:
        """Submit a task."""
        task = Modelled(self.platform.submitted(policy=policy, max_attempts=attempts), policy, attempts)
        self.known.append(task)
        self._audit("submit")
        return task

    @rule(maximum=st.integers(1, 3))
    def claim(self, maximum: int) -> None:
        """Claim: the oldest ready tasks, and no others."""
        self.platform.make_ready()
        ready = [task for task in self.known if task.state == "queued"]
        claimed = self.platform.claim(maximum)
        assert len(claimed) == min(maximum, len(ready))
        for held in claimed:
            (task,) = (task for task in ready if task.task_id == held.task_id)
            task.attempts += 1
            assert held.number == task.attempts
            task.held, task.lost, task.current = held, False, held.attempt_id
            self._move(task, "running", "task.started")
            self._audit("claim")

    @rule(
        task=tasks,
        outcome=st.sampled_from(["succeeded", "failed"]),
        effect=st.sampled_from(["none", "unknown"]),
        retryable=st.booleans(),
        result=st.sampled_from([None, "null", "1.00"]),
    )
    def confirm(self, task: Modelled, outcome: str, effect: str, retryable: bool, result: str | None) -> None:
        """Confirm the attempt that runs, or one that has ended."""
        said = (outcome, effect, retryable, result)
        held = task.held or (task.old[-1] if task.old else None)
        if held is None:
            return
        if task.held is None:
            self._confirm_ended(task, held, said)
            return
        confirmed = self.platform.confirm(held, outcome, effect=effect, retryable=retryable, result=result)
        task.receipts[held.attempt_id] = (said, confirmed.text)
        assert not confirmed.replayed
        if outcome == "succeeded":
            self._end(task, "succeeded", result=result)
        elif effect == "unknown" and task.policy == "unsafe":
            self._end(task, "needs_review", uncertain=True, result=result)
        elif (retryable or effect == "unknown") and task.attempts < task.max_attempts:
            self._end(task, "queued")
        else:
            self._end(task, "failed", uncertain=effect == "unknown", result=result)
        assert confirmed.sequence == (None if task.state == "queued" else len(self.journal))
        self._audit("confirm")

    def _confirm_ended(self, task: Modelled, held: Held, said: tuple[str, str, bool, str | None]) -> None:
        outcome, effect, retryable, result = said
        with _refused() as codes:
            again = self.platform.confirm(held, outcome, effect=effect, retryable=retryable, result=result)
            assert (again.text, again.replayed) == (task.receipts[held.attempt_id][1], True)
        known = task.receipts.get(held.attempt_id)
        expected = ["OB010"] if known is None else [] if known[0] == said else ["OB011"]
        assert codes == expected

    @rule(task=tasks)
    def heartbeat(self, task: Modelled) -> None:
        """Renew: only the attempt that runs, and it is not lost any more."""
        held = task.held or (task.old[-1] if task.old else None)
        if held is None:
            return
        with _refused() as codes:
            self.platform.heartbeat(held)
        assert codes == ([] if task.held else ["OB010"])
        task.lost = False

    @rule(task=tasks)
    def lose(self, task: Modelled) -> None:
        """Let the lease of the attempt run out."""
        if task.held is not None:
            self.platform.lose(task.held)
            task.lost = True

    @rule(task=tasks)
    def recover(self, task: Modelled) -> None:
        """Recover the attempt: only when it is lost."""
        held = task.held or (task.old[-1] if task.old else None)
        if held is None:
            return
        recovered = self.platform.recover(held)[0]
        assert recovered == task.lost
        if not recovered:
            return
        if task.policy == "unsafe":
            self._end(task, "needs_review", uncertain=True)
        elif task.attempts < task.max_attempts:
            self._end(task, "queued")
        else:
            self._end(task, "failed", uncertain=True)
        self._audit("recover")

    @rule(task=tasks, stale=st.booleans())
    def cancel(self, task: Modelled, stale: bool) -> None:
        """Cancel with the right revision or another."""
        with _refused() as codes:
            self.platform.cancel(task.task_id, task.revision + stale)
        if task.state not in {"queued", "running"}:
            assert codes == ["OB012"]
        elif stale:
            assert codes == ["OB014"]
        else:
            assert codes == []
            review = task.state == "running" and task.policy == "unsafe"
            self._end(task, "needs_review" if review else "cancelled", uncertain=review)
            self._audit("cancel")

    @rule(
        task=tasks,
        outcome=st.sampled_from(sorted(FINAL)),
        given=st.booleans(),
        result=st.sampled_from(["null", "2.00"]),
        stale=st.booleans(),
    )
    def resolve(self, task: Modelled, outcome: str, given: bool, result: str, stale: bool) -> None:
        """Resolve with the right revision or another."""
        with _refused() as codes:
            self.platform.resolve(task.task_id, task.revision + stale, outcome, given=given, result=result)
        if task.state != "needs_review":
            assert codes == ["OB012"]
        elif stale:
            assert codes == ["OB014"]
        else:
            assert codes == []
            self._end(task, outcome, result=result if given else task.result)
            self._audit("resolve")

    @invariant()
    def the_database_agrees(self) -> None:
        """Tasks, events, journal and audit counts are those of the model, and everything is whole."""
        rows = self.platform.rows(
            "select t.task_id, t.state, t.revision, t.attempt_count, t.effect_uncertain, t.current_attempt_id,"
            " t.result_json, array(select e.type::text from orbit.events as e where e.task_id = t.task_id"
            " order by e.task_revision) from orbit.tasks as t where t.namespace_id = %s order by t.task_id",
            self.platform.place.namespace_id,
        )
        assert rows == [
            (t.task_id, t.state, t.revision, t.attempts, t.uncertain, t.current, t.result, t.events)
            for t in sorted(self.known, key=lambda task: task.task_id)
        ]
        assert [(row[0], row[2], row[3]) for row in self.platform.journal()] == self.journal
        counts = dict(
            self.platform.rows(
                "select action, count(*) from orbit.audit_log where namespace_id = %s and action = any(%s) group by 1",
                self.platform.place.namespace_id,
                list(self.audits),
            )
        )
        assert counts == {action: number for action, number in self.audits.items() if number}
        assert_tasks_whole(self.connection)

    def _end(self, task: Modelled, state: str, *, uncertain: bool = False, result: str | None = None) -> None:
        if task.held is not None:
            task.old.append(task.held)
        task.held, task.lost, task.uncertain, task.result = None, False, uncertain, result
        event = "task.requeued" if state == "queued" else f"task.{state}"
        if state == "queued":
            task.current = None
        else:
            self.journal.append((len(self.journal) + 1, task.task_id, event))
        self._move(task, state, event)

    def _move(self, task: Modelled, state: str, event: str) -> None:
        task.state = state
        task.revision += 1
        task.events.append(event)

    def _audit(self, verb: str) -> None:
        self.audits[AUDITED[verb]] += 1


@contextmanager
def _refused() -> Generator[list[str | None]]:
    """Collect the code of a refusal; no code for none."""
    codes: list[str | None] = []
    try:
        yield codes
    except psycopg.Error as error:
        codes.append(error.sqlstate)


@pytest.mark.req("orbit:TSK-02", "orbit:TSK-03", "orbit:T-P01", "orbit:T-P04", "orbit:AUD-05")
def test_the_database_is_the_automaton(orbit_database: TestDatabase) -> None:
    """Random walks over tasks of one queue: states, revisions, events, journal, receipts and audit counts agree."""
    owner = orbit_database.connect(autocommit=True)

    class Machine(TaskMachine):
        connection = owner

    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=40, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
        ),
    )
