"""The report hides nothing: who did not run, what was missed, and where a rival leads."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from benchmarks import contest, report
from benchmarks.__main__ import write
from benchmarks.chart import chart
from benchmarks.contest import APPEND_MANY, APPEND_ONE, DRAIN, LATENCY, Measured
from benchmarks.decay import Decay
from benchmarks.entrants import OVERLAPPED, PGQUEUER, RAW, RIVALS, SYNCHRONOUS, Entrant
from benchmarks.goals import goals
from benchmarks.publish import NothingToPublish, publish
from benchmarks.results import Results, percentile
from benchmarks.settings import QUICK


def _results(name: str = "full") -> Results:
    """A run in which pgqueuer appends faster and drains slower than Seapost, and one rival is not there."""
    absent = next(one for one in RIVALS if one.name == "oban")
    return Results(
        machine={"cores": "2"},
        server={"postgresql": "18"},
        settings={"name": name, "repetitions": 3, "churn": 200_000, "rows": 1_000_000},
        systems=[
            Measured(RAW, figures={APPEND_ONE: [1_000.0], APPEND_MANY: [10_000.0], DRAIN: [40_000.0]}),
            Measured(SYNCHRONOUS, figures={DRAIN: [20_000.0, 16_000.0, 4_000.0]}),
            Measured(OVERLAPPED, figures={APPEND_ONE: [600.0], APPEND_MANY: [3_000.0], DRAIN: [28_000.0]}),
            Measured(PGQUEUER, figures={APPEND_ONE: [700.0], DRAIN: [12_000.0], LATENCY: [4.0, 5.0, 6.0]}),
            Measured(absent, absent="not run: needs Python ≥ 3.12"),
        ],
        old_snapshot=Decay(rate=0.95, claim=1.5, settle=1.0),
    )


def test_a_goal_says_what_was_measured_and_by_how_much() -> None:
    """Medians against medians; a missed goal is marked, an unmeasured one is not passed off as met."""
    rows = {row.text: row for row in goals(_results())}
    synchronous = rows["synchronous with inbox, batch 100, against the raw loop"]
    assert (synchronous.measured, synchronous.verdict) == (0.4, "**missed**, by 11%")
    assert rows["old snapshot, 200,000 churned: rate kept"].verdict == "met, by 6%"
    assert rows["old snapshot, 200,000 churned: claim p50"].met is False
    assert rows["WAL, inbox receipt"].verdict == "not measured"


def test_every_row_where_a_rival_leads_is_listed() -> None:
    """Only the append is lost, to our best form of that workload."""
    assert report.losses(_results()) == [(APPEND_ONE, "pgqueuer", 700.0, OVERLAPPED.name, 600.0)]
    assert "| append 1/tx | pgqueuer | 700 | 600 (" in report.page(_results())


def test_the_page_names_who_did_not_run() -> None:
    """A rival that is absent has its row, with the reason."""
    assert "| oban | not run: needs Python ≥ 3.12 |" in report.page(_results())


def test_the_chart_has_a_bar_for_each_figure() -> None:
    """Ten medians make ten bars; the three in the legend and the background are not bars."""
    assert len(re.findall(r'<rect [^>]*height="16"', chart(_results()))) == 10


def test_a_full_run_is_published_and_a_quick_one_is_not(tmp_path: Path) -> None:
    """The page in the documentation shows the chart from the assets; figures of a quick run are refused."""
    documentation = tmp_path / "docs"
    for folder in ("explanation", "assets"):
        (documentation / folder).mkdir(parents=True)
    with pytest.raises(NothingToPublish, match="there is no report"):
        publish(tmp_path / "built", documentation)
    write(_results("quick"), tmp_path / "built")
    with pytest.raises(NothingToPublish, match="a quick one"):
        publish(tmp_path / "built", documentation)
    write(_results(), tmp_path / "built")
    page, picture = publish(tmp_path / "built", documentation)
    assert "](../assets/bench.svg)" in page.read_text(encoding="utf-8")
    assert picture.read_text(encoding="utf-8").startswith("<svg")
    raw = json.loads((tmp_path / "built" / "report.json").read_text(encoding="utf-8"))
    assert raw["systems"][1]["figures"][DRAIN] == [20_000.0, 16_000.0, 4_000.0]


def test_percentiles_are_figures_that_were_measured() -> None:
    """The p99 of a hundred is the largest, and of one the only one."""
    assert percentile([float(n) for n in range(100)], 99) == 99.0
    assert percentile([7.0], 99) == 7.0


def _absent(_: Entrant) -> str:
    return "not run: no such thing"


def test_an_absent_system_is_no_reason_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of nobody but an absent rival ends with its reason, without touching a server."""
    said: list[str] = []
    monkeypatch.setattr(Entrant, "missing", _absent)
    (measured,) = contest.run(QUICK, "", [PGQUEUER], said.append)
    assert (measured.absent, measured.figures) == ("not run: no such thing", {})
