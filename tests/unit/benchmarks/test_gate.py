"""The counters gate fails on what got worse and on what is missing, and says which."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import gate
from benchmarks.counters import COUNTERS
from benchmarks.gate import Verdict, judge, passes, read_baseline

BASELINE = {"round_trips": 0.03, "inbox_wal": 600.0}


def _verdict(measured: float) -> Verdict:
    (judged,) = judge({"inbox_wal": 600.0}, {"inbox_wal": measured})
    return judged.verdict


@pytest.mark.parametrize(
    ("measured", "verdict"),
    [
        (666.0, Verdict.WORSE),
        (659.0, Verdict.KEPT),
        (600.0, Verdict.KEPT),
        (541.0, Verdict.KEPT),
        (534.0, Verdict.BETTER),
    ],
    ids=["+11 %", "+9.8 %", "same", "-9.8 %", "-11 %"],
)
def test_a_tenth_either_way_is_kept(measured: float, verdict: Verdict) -> None:
    """Ten percent either way are kept; beyond that a counter is worse, or better."""
    assert _verdict(measured) is verdict


def test_a_counter_that_got_worse_fails_the_gate() -> None:
    """Eleven percent more of one counter fail, however good the others are."""
    assert passes(judge(BASELINE, {"round_trips": 0.03, "inbox_wal": 659.0}))
    assert not passes(judge(BASELINE, {"round_trips": 0.01, "inbox_wal": 666.0}))


def test_a_better_counter_passes() -> None:
    """An improvement is no failure; it asks for a new baseline."""
    assert passes(judge(BASELINE, {"round_trips": 0.01, "inbox_wal": 600.0}))


@pytest.mark.parametrize(
    ("baseline", "measured"),
    [({"round_trips": 0.03}, {}), ({}, {"round_trips": 0.03}), ({}, {})],
    ids=["not measured", "not in the baseline", "nothing at all"],
)
def test_a_missing_counter_fails_the_gate(baseline: dict[str, float], measured: dict[str, float]) -> None:
    """A counter that only one side knows fails, and so does a gate without counters."""
    assert not passes(judge(baseline, measured))


def test_a_counter_that_was_nothing_may_not_become_something() -> None:
    """From zero there is no percentage: any growth is worse."""
    (grown,) = judge({"dead_rows": 0.0}, {"dead_rows": 1.0})
    (kept,) = judge({"dead_rows": 0.0}, {"dead_rows": 0.0})
    assert (grown.verdict, kept.verdict) == (Verdict.WORSE, Verdict.KEPT)


def test_the_gate_names_what_failed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code is 1 and the counter stands in the output."""
    known = tmp_path / "baseline.json"
    known.write_text(json.dumps(BASELINE), encoding="utf-8")
    monkeypatch.setattr(gate, "read_baseline", lambda: read_baseline(known))
    monkeypatch.setattr(gate, "measure", lambda: {"round_trips": 0.0334, "inbox_wal": 600.0})
    assert gate.main([]) == 1
    assert "FAILED round_trips" in capsys.readouterr().out


def test_the_committed_baseline_holds_every_counter() -> None:
    """The file beside the gate has a figure for each counter and for no other."""
    assert list(read_baseline()) == [counter.name for counter in COUNTERS]
