"""The plan of the chaos: the same for a seed, enough for a month, and fair to everybody."""

from __future__ import annotations

from collections import Counter

import pytest

from examples.flights.chaos import Act, Blow, make_plan
from examples.flights.settings import DemoSettings, InvalidChoice, measure_for

DISPATCHERS = ("dispatcher-1", "dispatcher-2")
CONSUMERS = ("punctuality", "mileage")


def plan(seed: int, flights: int) -> list[Act]:
    """The plan of a run."""
    return make_plan(seed, measure_for(flights), dispatchers=DISPATCHERS, consumers=CONSUMERS)


def test_a_seed_makes_one_plan() -> None:
    """Two runs with one seed do the same things at the same moments; another seed does others."""
    assert plan(1, 27_004) == plan(1, 27_004) != plan(2, 27_004)


@pytest.mark.parametrize("seed", range(20))
def test_a_month_is_struck_often_enough(seed: int) -> None:
    """January sees ten kills or more, everybody two or more, a halted dispatcher and ended sessions, all in time."""
    acts = plan(seed, 27_004)
    kills = Counter(act.target for act in acts if act.blow is Blow.KILL)
    assert kills.total() >= 10
    assert min(kills[name] for name in (*DISPATCHERS, *CONSUMERS)) >= 2
    assert any(act.blow is Blow.HALT and act.target in DISPATCHERS for act in acts)
    assert any(act.blow is Blow.TERMINATE for act in acts)
    moments = [act.at_seconds for act in acts]
    assert moments == sorted(moments)
    assert 0 < moments[0] < moments[-1] < measure_for(27_004).seconds


@pytest.mark.parametrize("seed", range(20))
def test_a_short_run_still_sees_everything(seed: int) -> None:
    """Even a thousand flights see a dispatcher and a consumer killed, a dispatcher halted and sessions ended."""
    acts = plan(seed, 1_000)
    killed = {act.target for act in acts if act.blow is Blow.KILL}
    assert killed & set(DISPATCHERS)
    assert killed & set(CONSUMERS)
    assert {act.blow for act in acts} == set(Blow)


@pytest.mark.parametrize(("name", "text"), [("SEED", "x"), ("SEED", "-1"), ("FLIGHTS", "february")])
def test_a_variable_that_means_nothing_is_refused(name: str, text: str) -> None:
    """The message names the variable and what may stand there."""
    with pytest.raises(InvalidChoice, match=name):
        DemoSettings.from_environment({name: text})
