"""What `orbit bench` makes of measured times, and that each of its measurements runs to its end."""

from __future__ import annotations

import json
from typing import Any

import pytest

from benchmarks.orbit.chapter import chapter
from benchmarks.orbit.plan import FULL, QUICK, backlogs, streams
from orbit.bench.figures import Spread
from orbit.bench.result_stream import StreamSettings
from orbit.bench.tables import OrbitFigures, described
from orbit.cli import main
from orbit.cli.exit_codes import ExitCode
from seapost.testing.databases import DatabaseServer


def test_percentiles_are_of_the_nearest_rank() -> None:
    """Of a hundred times the 99th is the second largest; nothing measured is all zeroes."""
    spread = Spread.of([number / 1000 for number in range(1, 101)])
    assert (spread.count, spread.p50, spread.p95, spread.p99, spread.worst) == (100, 50.0, 95.0, 99.0, 100.0)
    assert Spread.of([]) == Spread(0, 0.0, 0.0, 0.0, 0.0)


def test_a_full_run_covers_what_the_specification_asks() -> None:
    """All numbers of writers, one and several namespaces, three sizes of result, an old snapshot, the quota."""
    planned = list(streams(FULL))
    assert {one.writers for one in planned} == {1, 2, 4, 8, 16, 32}
    assert {one.namespaces > 1 for one in planned} == {True, False}
    assert {one.result_bytes for one in planned} == {1024, 102_400, 1_048_576}
    assert any(one.hold_snapshot for one in planned)
    assert any(one.submits for one in planned)
    assert {one.subscriptions for one in backlogs(QUICK)} == {1, 4}


def test_a_measurement_says_what_it_did() -> None:
    """Everything that differs from the plain one is in its line."""
    settings = StreamSettings(namespaces=4, queues=8, commit_delay=2000, hold_snapshot=True)
    text = described(settings)
    assert text == (
        "confirmations, plain commit, commit_delay 2000, 4 namespaces, 8 queues each, 1,024 B, old snapshot held"
    )
    assert "| writers |" in chapter(OrbitFigures())


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (
            ("result-stream", "--writers", "2", "--seconds", "0.5", "--commit-delay", "100", "--hold-snapshot"),
            "streams",
        ),
        (("result-stream", "--writers", "2", "--seconds", "0.5", "--submit", "--commit", "fenced"), "streams"),
        (("deliveries", "--deliveries", "100", "--subscriptions", "2"), "deliveries"),
        (("latency", "--per-second", "50", "--seconds", "0.5"), "latencies"),
    ],
)
def test_a_measurement_of_the_bench_runs_to_its_end(
    database_server: DatabaseServer, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], part: str
) -> None:
    """On a database of its own that is gone afterwards; what was measured is more than nothing."""
    assert main.run(["bench", *arguments, "--dsn", database_server.dsn(), "--json"]) is ExitCode.DONE
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    (found,) = document[part]
    assert found.get("per_second", found.get("made")) > 0
    assert document["server"]["fsync"] in {"on", "off"}
