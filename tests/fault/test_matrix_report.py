"""The report of the matrix is judged: whatever is not zero fails the run, and names the command that plays it again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.fault.matrix import report
from tests.fault.matrix.measure import Ticks, slowdown_between
from tests.fault.matrix.oracle import Verdict
from tests.fault.matrix.play import Round
from tests.fault.matrix.report import Broken, Run

GOOD = Verdict(events=10, deliveries=12, redeliveries=3, lost=0, doubled=0, uncommitted=0, unproved=0, stale_accepted=0)
KEPT = Round(
    fault="half-open",
    seed=7,
    schedule=["in process"],
    verdict=GOOD,
    stale_refused=2,
    recovery_seconds=1.25,
    recovery_bound=6.0,
    slowdown=1.0,
    rate_before=1_000.0,
    rate_after=1_000.0,
    drain_seconds=0.1,
    drain_bound=4.0,
    leases_left=0,
    seconds=3.0,
)
REPLAY = "play it again: make faults SEED=7 ROUNDS=1 FAULT=half-open"


def _run(*rounds: Round) -> Run:
    return Run(rounds, [], {})


def _rounds(*kept: float, slowdown: float = 1.0) -> Run:
    return _run(
        *(replace(KEPT, seed=seed, rate_after=1_000.0 * share, slowdown=slowdown) for seed, share in enumerate(kept))
    )


@pytest.mark.req("TST-33")
def test_what_kept_everything_passes() -> None:
    """The last line is the evidence, and nothing has failed."""
    run = _run(KEPT)
    assert run.failures() == []
    assert report.text(run).splitlines()[-1] == (
        "evidence: faults=1 rounds=1 events=10 lost=0 effects_doubled=0 stale_settles_accepted=0 worst_recovery_s=1.25"
    )
    assert REPLAY not in report.text(run)


@pytest.mark.req("TST-33")
@pytest.mark.parametrize(
    "broken",
    [
        replace(KEPT, verdict=replace(GOOD, lost=1, findings=["committed and not held: 1"])),
        replace(KEPT, recovery_seconds=6.1),
        replace(KEPT, drain_seconds=4.1),
        replace(KEPT, leases_left=1),
    ],
    ids=["a finding", "a late recovery", "a late drain", "a lease left"],
)
def test_a_failed_round_fails_the_run(broken: Round) -> None:
    """One line says why, another how to see it again."""
    run = _run(KEPT, broken)
    assert len(run.failures()) == 1
    assert REPLAY in report.text(run).splitlines()


@pytest.mark.req("TST-33")
def test_a_round_without_a_verdict_fails_the_run() -> None:
    """So does a run without any round."""
    run = Run([KEPT], [Broken("half-open", 7, "TimeoutError: gone")], {})
    assert run.failures() == ["half-open seed 7: no verdict: TimeoutError: gone"]
    assert REPLAY in report.text(run).splitlines()
    assert report.evidence(run)["rounds"] == 2
    assert Run([], [], {}).failures()


def test_a_gap_is_said() -> None:
    """A fault that could not be played is named, and is not among those that were."""
    run = Run([KEPT], [], {"disk-full": "no small file system can be mounted here"})
    assert "gap: disk-full was not played: no small file system can be mounted here" in report.text(run)
    assert report.evidence(run)["faults"] == 1


def test_rates_are_judged_by_medians() -> None:
    """Twenty rounds at 97 % fail, single slow ones do not; few rounds or a busy machine judge nothing."""
    assert len(_rounds(*[0.97] * 20).failures()) == 2
    assert _rounds(*[0.5] * 8, *[1.0] * 12).failures() == []
    assert _rounds(*[0.97] * 19).failures() == []
    assert _rounds(*[0.97] * 20, slowdown=2.0).failures() == []
    assert report.chance_of(16, 20) == pytest.approx(0.0059, abs=0.0001)


def test_only_what_others_use_widens_a_bound() -> None:
    """A machine that we fill alone counts as idle; half taken by others counts as twice as slow."""
    start = Ticks(0, 0, 0)
    assert slowdown_between(start, Ticks(400, 400, 400)) == 1.0
    assert slowdown_between(start, Ticks(400, 300, 100)) == 2.0
    assert slowdown_between(start, Ticks(30, 30, 0)) == 1.0
