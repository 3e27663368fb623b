"""One run of pytest against one copy of the source, and what its report says.

A mutant counts as killed only when a test ran and its assertion or the product failed. A copy that cannot be imported
or installed proves nothing: it is `broken`, and a broken mutant is an error of the catalogue.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal
from xml.etree import ElementTree as ET

from tests.mutants.catalogue import ROOT

TEST_SECONDS_MAX: Final = 30
RUN_SECONDS_MAX: Final = 300

Word = Literal["killed", "survived", "broken"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one copy.

    Attributes:
        word: `killed`, `survived` or `broken`.
        killer: the first test that failed, or what went wrong.
        seconds: wall time of the run.
        output: the end of what pytest printed.
    """

    word: Word
    killer: str
    seconds: float
    output: str


def judge(source: Path, tests: Sequence[str], dsn: str, report: Path) -> Verdict:
    """Run tests with the copy in front of the installed package."""
    environment = os.environ | {
        "PYTHONPATH": str(source),
        "PYTHONDONTWRITEBYTECODE": "1",
        "SEAPOST_TEST_DSN": dsn,
    }
    command = [
        sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--no-header", "--tb=short",
        f"--timeout={TEST_SECONDS_MAX}", f"--junit-xml={report}", *tests,
    ]  # fmt: skip
    started = time.monotonic()
    try:
        run = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=RUN_SECONDS_MAX, check=False
        )
    except subprocess.TimeoutExpired:
        return Verdict("broken", f"no end within {RUN_SECONDS_MAX} s", time.monotonic() - started, "")
    word, killer = _read(report, run.returncode)
    return Verdict(word, killer, time.monotonic() - started, "\n".join((run.stdout + run.stderr).splitlines()[-25:]))


def _read(report: Path, status: int) -> tuple[Word, str]:
    if status == 0:
        return "survived", ""
    if status != 1 or not report.exists():
        return "broken", f"pytest ended with {status}"
    suite = ET.parse(report)  # noqa: S314 - pytest has just written it
    for case in suite.iter("testcase"):
        if case.find("failure") is not None:
            return "killed", f"{case.get('classname', '')}::{case.get('name', '')}"
    return "broken", "a test could not be set up"
