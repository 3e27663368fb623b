"""The judgement: what the database, the inboxes and the flights say, held against each other after the run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg

from orbit.demo.flights import Fate, Flight, failure_text_of, fate_of, result_text_of
from orbit.demo.inbox import Contents, Entry, read_inbox
from orbit.demo.people import resolution_of
from orbit.demo.platform import ROLES, Platform, Role
from orbit.model.states import DeliveryState, Resolution, TaskState

DEFECTS_KEPT_MAX: Final = 20

_JOURNAL: Final = """
select s.name, r.event_id, r.sequence, r.type, r.task_id, r.snapshot_json
from orbit.result_events as r join orbit.event_subscriptions as s on s.queue_id = r.queue_id"""
_DELIVERIES: Final = "select state, attempts, count(*) from orbit.event_deliveries group by state, attempts"
_TASKS: Final = "select task_id, input_json, state, result_json from orbit.tasks"


@dataclass(slots=True)
class Evidence:
    """What a run came to.

    Attributes:
        lost: flights without their task or their right end, results that an inbox lacks or has with another text,
            deliveries that nobody acknowledged.
        applied_twice: business changes beyond one for a result, and those of results that are not in the journal.
        met: results that came again and were found in an inbox.
        defects: the first of them, for a person.
    """

    tasks: int = 0
    results: int = 0
    deliveries: int = 0
    acked: int = 0
    redelivered: int = 0
    lost: int = 0
    applied_twice: int = 0
    kills: int = 0
    met: int = 0
    defects: list[str] = field(default_factory=list[str])

    @property
    def holds(self) -> bool:
        """Whether nothing was lost and nothing applied twice, and there was something to lose."""
        return self.lost == 0 and self.applied_twice == 0 and self.deliveries > 0

    def line(self) -> str:
        """The last line of the demo."""
        return (
            f"evidence: tasks={self.tasks} results={self.results} deliveries={self.deliveries} acked={self.acked} "
            f"redelivered={self.redelivered} lost={self.lost} applied_twice={self.applied_twice} kills={self.kills}"
        )

    def lose(self, what: str, count: int = 1) -> None:
        """Note a loss."""
        self.lost += count
        self._keep(what)

    def double(self, what: str, count: int = 1) -> None:
        """Note an effect that should not be."""
        self.applied_twice += count
        self._keep(what)

    def _keep(self, what: str) -> None:
        if len(self.defects) < DEFECTS_KEPT_MAX:
            self.defects.append(what)


def judge(platform: Platform, flights: Sequence[Flight], *, kills: int) -> Evidence:
    """Hold the run against the flights; nothing is asked of a process or a counter of one."""
    evidence = Evidence(kills=kills)
    with psycopg.connect(platform.dsn, autocommit=True) as connection:
        tasks = connection.execute(_TASKS).fetchall()
        journal: dict[str, dict[str, Entry]] = {role.name: {} for role in ROLES}
        for name, event_id, *entry in connection.execute(_JOURNAL):
            journal[name][event_id] = Entry(*entry)
        deliveries = connection.execute(_DELIVERIES).fetchall()
        evidence.results = _count(connection, "select count(*) from orbit.result_events")
    judge_tasks(evidence, flights, tasks)
    judge_deliveries(evidence, deliveries)
    for role in ROLES:
        judge_inbox(evidence, role, read_inbox(platform.inbox_file(role)), journal[role.name])
    owed = sum(len(entries) for entries in journal.values())
    if evidence.deliveries != owed:
        evidence.lose(f"{evidence.deliveries} deliveries instead of {owed}", abs(evidence.deliveries - owed))
    return evidence


def expected_end(flight: Flight) -> tuple[TaskState, str | None]:
    """The state that a flight's task must end in, and the exact text of its result."""
    match fate_of(flight.task_input):
        case Fate.CANCELLED:
            return TaskState.CANCELLED, None
        case Fate.FAILED:
            return TaskState.FAILED, failure_text_of(flight.task_input)
        case Fate.REVIEWED:
            resolution = resolution_of(flight.number)
            text = result_text_of(flight.task_input) if resolution is Resolution.SUCCEEDED else None
            return TaskState(resolution), text
        case _:
            return TaskState.SUCCEEDED, result_text_of(flight.task_input)


def judge_tasks(evidence: Evidence, flights: Sequence[Flight], tasks: Sequence[tuple[Any, ...]]) -> None:
    """Every flight is one task with the right end, and its result has the right digits."""
    evidence.tasks = len(tasks)
    found: dict[int, tuple[str, str | None]] = {}
    for task_id, input_json, state, result_json in tasks:
        number = int(json.loads(input_json)["number"])
        if number in found:
            evidence.double(f"flight {number} has a second task {task_id}")
        found[number] = (state, result_json)
    for flight in flights:
        ends, expected = found.get(flight.number), expected_end(flight)
        if ends != expected:
            evidence.lose(f"flight {flight.number} ({flight.key}) ended as {ends}, not as {expected}")


def judge_deliveries(evidence: Evidence, deliveries: Sequence[tuple[str, int, int]]) -> None:
    """Count deliveries by their end; whatever is not acknowledged is lost."""
    for state, attempts, count in deliveries:
        evidence.deliveries += count
        evidence.redelivered += max(0, attempts - 1) * count
        if state == DeliveryState.ACKED:
            evidence.acked += count
        else:
            evidence.lose(f"{count} deliveries are {state} after {attempts} attempts", count)


def judge_inbox(evidence: Evidence, role: Role, contents: Contents, journal: Mapping[str, Entry]) -> None:
    """An inbox is exactly its queue's journal, text for text, and each result was applied once."""
    for event_id, entry in journal.items():
        if contents.entries.get(event_id) != entry:
            evidence.lose(f"{role.name} has not, or not like this, result {entry.sequence}")
    for event_id in contents.entries.keys() - journal.keys():
        evidence.double(f"{role.name} has {event_id}, which is not in the journal")
    evidence.met += contents.met
    if twice := contents.applied - contents.distinct:
        evidence.double(f"{role.name} applied {twice} results again", twice)
    if missing := len(contents.entries) - contents.distinct:
        evidence.lose(f"{role.name} stored {missing} results without applying them", missing)
    last = {entry.task_id: entry for entry in sorted(journal.values(), key=lambda each: each.sequence)}
    for task_id, entry in last.items():
        state = entry.event_type.removeprefix("task.")
        if contents.states.get(task_id) != state:
            evidence.lose(f"{role.name} believes {contents.states.get(task_id)} of {task_id}, which is {state}")


def _count(connection: psycopg.Connection, query: str) -> int:
    row = connection.execute(query.encode()).fetchone()
    return int(row[0]) if row else 0
