"""`orbit demo` in small, as its user runs it; the run with kills takes a lease's time and is `make orbit-demo`."""

from __future__ import annotations

import io
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from rich.console import Console

from orbit.demo.run import DemoSettings, run_demo
from tests.kit.commands import environment
from tests.kit.database import DatabaseServer, open_directory
from tests.kit.eventually import eventually
from tests.kit.tree import ROOT

PROGRAM: Final = ("-c", "from orbit.cli.main import main; main()", "demo")
FLIGHTS: Final = 120


@pytest.mark.req("orbit:T-E01", "orbit:GEN-02", "orbit:EXM-03")
def test_a_small_run_ends_with_its_evidence(database_server: DatabaseServer) -> None:
    """Server, workers and subscribers as processes; every inbox equals the journal, and the history is clean."""
    database = database_server.create()
    try:
        console = Console(highlight=False, width=110, file=(said := io.StringIO()))
        settings = DemoSettings(flights=FLIGHTS, kills=0, seconds=3, server_dsn=database.dsn)
        outcome = run_demo(settings, console)
    finally:
        database_server.drop(database)
    assert outcome.holds, (outcome.evidence.defects, outcome.verdict.violations)
    found = re.fullmatch(
        rf"evidence: tasks={FLIGHTS} results=(\d+) deliveries=(\d+) acked=(\d+) redelivered=\d+ lost=0"
        r" applied_twice=0 kills=0",
        outcome.evidence.line(),
    )
    assert found is not None
    results, deliveries, acked = (int(figure) for figure in found.groups())
    assert deliveries == acked > results > FLIGHTS  # two subscribers share a queue; reviews have two results
    assert "every promise is kept" in said.getvalue()


def test_an_interrupted_run_leaves_nothing_behind(database_server: DatabaseServer) -> None:
    """SIGTERM in the middle: exit code 130, no process, no folder, no database."""
    folder = open_directory()
    database = database_server.create()
    process = subprocess.Popen(
        [sys.executable, *PROGRAM, "--flights", "5000", "--dsn", database.dsn],
        cwd=ROOT,
        env=environment({"TMPDIR": str(folder)}),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        log = "orbit-demo-*/private/billing.log"
        eventually(lambda: list(folder.glob(log)), what="the subscribers", deadline_seconds=60)
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=60)
        assert process.returncode == 130, output
        assert list(folder.iterdir()) == []
        assert not _processes_of(folder)
        left = database.connect().execute("select datname from pg_database where datname like 'orbit_demo_%'")
        assert left.fetchall() == []
    finally:
        process.kill()
        process.communicate(timeout=60)
        database_server.drop(database)
        shutil.rmtree(folder, ignore_errors=True)


def _processes_of(folder: Path) -> list[str]:
    """Processes whose command line names the folder."""
    found: list[str] = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(folder) in text:
            found.append(text)
    return found
