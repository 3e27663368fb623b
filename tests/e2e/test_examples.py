"""The examples run as their README says, each from a process of its own, and so do their own tests."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

import pytest

from tests.kit.database import DatabaseServer
from tests.kit.requirements import ROOT

SECONDS_MAX: Final = 240

LAST_LINES: Final = {
    "plain": "orders=50 invoices=50 equal=True unpublished=0",
    "shop": "orders=20 cancelled=5 wrong_invoices=0",
    "django_shop": "orders=30 wrong_invoices=0",
}


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=SECONDS_MAX, check=False
    )


@pytest.mark.timeout(SECONDS_MAX)
@pytest.mark.parametrize("name", LAST_LINES)
def test_an_example_runs_as_its_readme_says(name: str) -> None:
    """It ends with 0 and says that what was committed has arrived, exactly."""
    run = _run(f"examples.{name}")
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.splitlines()[-1] == LAST_LINES[name]


@pytest.mark.timeout(SECONDS_MAX)
@pytest.mark.parametrize("name", ["shop", "django_shop"])
def test_the_tests_of_an_example_pass(name: str, database_server: DatabaseServer) -> None:
    """Written with `seapost.testing`, as a user would write them."""
    run = _run("pytest", "-q", "-p", "no:cacheprovider", f"--seapost-dsn={database_server.dsn()}", f"examples/{name}")
    assert run.returncode == 0, run.stdout + run.stderr
    assert " passed" in run.stdout
