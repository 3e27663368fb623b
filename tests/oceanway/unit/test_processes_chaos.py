"""The plan of blows: made from a seed, just to everybody, and aimed at whoever holds leases now and then."""

from __future__ import annotations

from collections import Counter
from typing import cast

import pytest

from oceanway.demo.chaos import HOLDER, Blow, Chaos, make_plan
from oceanway.demo.processes import Processes
from oceanway.demo.report import Audited, Evidence

NAMES = [f"worker-{number}" for number in range(5)]


class Victims:
    """Processes that note who was killed."""

    def __init__(self) -> None:
        self.killed: list[str] = []
        self.members = dict.fromkeys(NAMES)

    def kill(self, name: str) -> bool:
        """Kill nobody."""
        self.killed.append(name)
        return True


class Figures:
    """Figures of an audit."""

    def __init__(self, **wrong: int) -> None:
        self.runs, self.events, self.deliveries, self.acknowledged = 5, 60, 70, 70
        self.quarantined = self.cases = self.resolved = 0
        self.unbalanced = wrong.get("unbalanced", 0)
        self.lost = wrong.get("lost", 0)
        self.effects_doubled = wrong.get("effects_doubled", 0)


@pytest.mark.parametrize("seed", range(5))
def test_a_plan_follows_from_its_seed_and_hits_everybody_before_anybody_again(seed: int) -> None:
    """Same seed, same plan; each third blow is for a holder of leases; all of them fall within the time, in order."""
    plan = make_plan(seed, NAMES, kills=15, seconds=30)
    assert plan == make_plan(seed, NAMES, kills=15, seconds=30)
    assert plan != make_plan(seed + 1, NAMES, kills=15, seconds=30)
    counts = Counter(blow.target for blow in plan)
    assert counts[HOLDER] == 5
    assert {counts[name] for name in NAMES} == {2}
    times = [blow.at_seconds for blow in plan]
    assert times == sorted(times)
    assert 0 < times[0] < times[-1] < 30


def test_a_blow_for_a_holder_hits_who_holds_most() -> None:
    """It waits while nobody holds anything, and then strikes the first of the holders."""
    victims, holders = Victims(), list[tuple[str, int]]()
    chaos = Chaos([Blow(0, HOLDER)], cast("Processes", victims), lambda: holders)
    chaos.tend()
    assert victims.killed == []
    assert not chaos.is_over
    holders[:] = [("worker-3", 40), ("worker-1", 2)]
    chaos.tend()
    assert victims.killed == ["worker-3"]
    assert chaos.is_over
    assert "40" in chaos.incidents[0].effect


@pytest.mark.parametrize("wrong", ["unbalanced", "lost", "effects_doubled"])
def test_evidence_holds_only_without_any_defect(wrong: str) -> None:
    """One account out of balance, one thing lost or one effect twice is enough; the last line says all figures."""
    sound = Evidence(cast("Audited", Figures()), kills=12)
    assert sound.holds
    assert sound.line() == (
        "evidence: runs=5 events=60 deliveries=70 acknowledged=70 quarantined=0 cases=0 resolved=0 "
        "unbalanced=0 lost=0 effects_doubled=0 kills=12"
    )
    broken = Evidence(cast("Audited", Figures(**{wrong: 1})), kills=12)
    assert not broken.holds
    assert f"{wrong}=1" in broken.line()
