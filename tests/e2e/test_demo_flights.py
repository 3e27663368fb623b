"""`make demo` in small: real processes, real kills, and an evidence line that holds, or must not."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import psycopg
import pytest

from tests.kit.database import DatabaseServer, open_directory
from tests.kit.eventually import eventually
from tests.kit.requirements import ROOT

SECONDS_MAX: Final = 100
LINE: Final = re.compile(
    r"evidence: events=(?P<events>\d+) deliveries=(?P<deliveries>\d+) acknowledged=(?P<acknowledged>\d+)"
    r" quarantined=(?P<quarantined>\d+) lost=(?P<lost>\d+) effects_doubled=(?P<doubled>\d+)"
    r" stale_settles_accepted=(?P<stale>\d+) kills=(?P<kills>\d+) redeliveries=(?P<redeliveries>\d+)"
)
SERVER_COPY: Final = "seapost-postgres-*"
"""What root keeps in the temporary folder on purpose: the server's programs, where its user can run them."""


@contextmanager
def demo(**variables: str) -> Generator[subprocess.Popen[str], None, None]:
    """The demo as `make demo` starts it; ended in order if the test fails on the way."""
    process = subprocess.Popen(
        [sys.executable, "-m", "examples.flights"],
        cwd=ROOT,
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            process.communicate(timeout=SECONDS_MAX)


@pytest.fixture
def temporary() -> Iterator[Path]:
    """Give a temporary folder in which only the demo puts anything."""
    folder = open_directory()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def figures_of(output: str) -> dict[str, int]:
    """The figures of the last line."""
    match = LINE.fullmatch(output.splitlines()[-1])
    assert match is not None, output
    return {name: int(value) for name, value in match.groupdict().items()}


def processes_of(folder: Path) -> list[str]:
    """The processes whose command or environment names a folder: whatever the demo has started."""
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (process / "cmdline").read_bytes()
            if bytes(folder) in command + (process / "environ").read_bytes():
                found.append(command.replace(b"\0", b" ").decode(errors="replace"))
    return found


def assert_nothing_is_left(folder: Path) -> None:
    """Neither processes nor files."""
    assert not processes_of(folder)
    assert not [path for path in folder.iterdir() if not path.match(SERVER_COPY)]


@pytest.mark.req("F14", "F32", "DLV-14", "GEN-16", "TST-27", "TST-28", "TST-34")
def test_a_run_under_fire_loses_and_doubles_nothing(temporary: Path) -> None:
    """Processes die around the consumer call, one oversleeps its leases, and each effect is there once."""
    with demo(FLIGHTS="1500", SEED="5", TMPDIR=str(temporary)) as process:
        output, _ = process.communicate(timeout=SECONDS_MAX)
    figures = figures_of(output)
    assert process.returncode == 0, output
    assert figures["events"] == 1_500
    assert figures["acknowledged"] == figures["deliveries"] > 2_900
    assert (figures["lost"], figures["doubled"], figures["stale"], figures["quarantined"]) == (0, 0, 0, 0)
    assert figures["kills"] >= 2
    assert figures["redeliveries"] > 0
    assert "SIGSTOP" in output
    assert "SIGCONT" in output
    met = re.search(r"([0-9,]+) of these found the receipt of an earlier attempt", output)
    assert met is not None
    assert int(met[1].replace(",", "")) > 0, output
    assert_nothing_is_left(temporary)


def test_a_doubled_effect_fails_the_run(database_server: DatabaseServer) -> None:
    """On one's own server: somebody adds one to a counter while the demo runs; it says so and ends with exit code 1."""
    with demo(FLIGHTS="300", SEED="6", SEAPOST_DEMO_DSN=database_server.dsn()) as process:
        with psycopg.connect(database_server.dsn(), autocommit=True) as server:
            pattern = "select datname from pg_database where datname like 'flights\\_punctuality\\_%'"
            (name,) = eventually(lambda: server.execute(pattern).fetchall(), what="the consumer's database")[0]
        with psycopg.connect(database_server.dsn(name), autocommit=True) as consumer:
            table = "select to_regclass('punctuality')"
            eventually(lambda: (consumer.execute(table).fetchone() or [None])[0], what="the consumer's table")
            forgery = "update punctuality set flights = flights + 1 where carrier = 'UA'"
            eventually(lambda: consumer.execute(forgery).rowcount, what="a counter to add to", deadline_seconds=60)
        output, _ = process.communicate(timeout=SECONDS_MAX)
    figures = figures_of(output)
    assert process.returncode == 1, output
    assert (figures["doubled"], figures["lost"], figures["stale"]) == (1, 0, 0)
    assert "This must not be" in output
    with psycopg.connect(database_server.dsn(), autocommit=True) as server:
        left = server.execute("select datname from pg_database where datname like 'flights\\_%'").fetchall()
    assert left == []


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks for processes where Linux lists them")
def test_an_interrupted_run_leaves_nothing_behind(temporary: Path) -> None:
    """Ctrl-C in the middle ends every process the demo has started, removes its data, and shows no traceback."""
    with demo(FLIGHTS="1500", SEED="7", TMPDIR=str(temporary)) as process:
        dispatching = "seapost dispatch"
        eventually(lambda: any(dispatching in name for name in processes_of(temporary)), deadline_seconds=60)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == 130
    assert "Traceback" not in output
    assert "interrupted" in output
    assert_nothing_is_left(temporary)


def test_a_wrong_choice_is_one_line(temporary: Path) -> None:
    """What FLIGHTS cannot be is said in one line, with exit code 2, before anything starts."""
    with demo(FLIGHTS="february", TMPDIR=str(temporary)) as process:
        output, _ = process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == 2
    assert output == "demo: FLIGHTS is january, all, or a number from 1 to 336776, not 'february'\n"
