"""The work loop: it works until there is nothing, rests without sleeping through an order, and survives its steps."""

from __future__ import annotations

import time
from threading import Event, Thread

import pytest

from oceanway.works.loop import Pace, WorkLoop, run_loops
from seapost.model.errors import InvalidSetting

LONG = Pace(batch=7, idle_seconds_min=60, idle_seconds_max=60, failure_seconds_min=60, failure_seconds_max=60)
SHORT = Pace(
    batch=7, idle_seconds_min=0.001, idle_seconds_max=0.002, failure_seconds_min=0.001, failure_seconds_max=0.002
)


def test_a_step_that_did_something_is_followed_at_once_and_gets_the_batch_size() -> None:
    """Three full steps and an empty one: the loop rests only after the empty one, and stops out of its rest."""
    stop, counts, limits = Event(), [7, 7, 3, 0], list[int]()

    def step(limit: int) -> int:
        limits.append(limit)
        if len(limits) == len(counts):
            stop.set()
        return counts[len(limits) - 1]

    loop = WorkLoop("count", step, LONG)
    loop.run(stop)
    assert limits == [7, 7, 7, 7]
    assert loop.done == 17


@pytest.mark.parametrize("fails", [False, True], ids=["idle", "failing"])
def test_a_resting_loop_stops_at_once(fails: bool) -> None:
    """A rest of a minute ends with the order to stop."""
    stop, stepped = Event(), Event()

    def step(_limit: int) -> int:
        stepped.set()
        if fails:
            raise ConnectionError("no database")
        return 0

    thread = Thread(target=WorkLoop("rest", step, LONG).run, args=(stop,))
    thread.start()
    assert stepped.wait(10)
    began = time.monotonic()
    stop.set()
    thread.join(10)
    assert not thread.is_alive()
    assert time.monotonic() - began < 5


def test_a_loop_survives_its_failing_steps_and_goes_on() -> None:
    """Two failures, then work: the loop counts both and stays."""
    stop, calls = Event(), list[int]()

    def step(_limit: int) -> int:
        calls.append(len(calls))
        if len(calls) <= 2:
            raise ConnectionError("no database")
        stop.set()
        return 1

    loop = WorkLoop("survivor", step, SHORT)
    loop.run(stop)
    assert (loop.failures, loop.done) == (2, 1)


def test_a_running_step_finishes_before_the_loop_stops() -> None:
    """The order to stop comes in the middle of a step."""
    stop, inside, go_on = Event(), Event(), Event()

    def step(_limit: int) -> int:
        inside.set()
        assert go_on.wait(10)
        return 5

    loop = WorkLoop("finish", step, LONG)
    thread = Thread(target=loop.run, args=(stop,))
    thread.start()
    assert inside.wait(10)
    stop.set()
    go_on.set()
    thread.join(10)
    assert loop.done == 5


def test_loops_of_one_process_run_beside_each_other() -> None:
    """Each of two loops waits for a step of the other one, and both end with one order."""
    stop = Event()
    turns = {"first": Event(), "second": Event()}

    def step_of(mine: str, other: str) -> WorkLoop:
        def step(_limit: int) -> int:
            turns[mine].set()
            assert turns[other].wait(10)
            stop.set()
            return 0

        return WorkLoop(mine, step, SHORT)

    run_loops([step_of("first", "second"), step_of("second", "first")], stop)
    assert all(turn.is_set() for turn in turns.values())


@pytest.mark.parametrize(
    "wrong",
    [{"batch": 0}, {"idle_seconds_min": 0.0}, {"idle_seconds_max": 0.001}, {"failure_seconds_min": 9.0}],
    ids=lambda one: next(iter(one)),
)
def test_a_pace_that_never_works_or_never_rests_is_refused(wrong: dict[str, float]) -> None:
    """Settings name their rule."""
    with pytest.raises(InvalidSetting):
        _ = Pace(**wrong)  # pyright: ignore[reportArgumentType]
