"""What the SQL of the task path must never name: other rooms' rows, advisory locks, a weaker commit (section 4)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from tests.kit.tree import ORBIT_SQL

TASK_PATH: Final = [
    path
    for area in ("task", "attempt", "journal", "stream")
    for path in sorted((ORBIT_SQL / "functions" / area).glob("*.sql"))
]
EVERYTHING: Final = sorted((ORBIT_SQL / "functions").rglob("*.sql"))


def _naming(paths: list[Path], pattern: str) -> set[str]:
    """Objects whose text, comments left out, matches a pattern."""
    found: set[str] = set()
    for path in paths:
        text = re.sub(r"--.*", "", path.read_text(encoding="utf-8"))
        if re.search(pattern, text):
            found.add(f"{path.parent.name}_{path.stem}")
    return found


@pytest.mark.req("orbit:LCK-02")
def test_the_task_path_names_no_subscription_and_no_delivery() -> None:
    """No function of tasks, attempts, journal and stream touches what belongs to consumers."""
    assert len(TASK_PATH) > 20
    assert _naming(TASK_PATH, r"subscription|deliver") == set()


@pytest.mark.req("orbit:LCK-13")
def test_no_advisory_lock_stands_for_a_row_lock() -> None:
    """No function takes an advisory lock."""
    assert _naming(EVERYTHING, r"pg_(try_)?advisory") == set()


@pytest.mark.req("orbit:JRN-17")
def test_only_results_may_commit_early() -> None:
    """One function relaxes the commit, four operations call it, and the fence alone insists on the flush."""
    assert _naming(EVERYTHING, "synchronous_commit") == {"task_relax_commit", "journal_fence_v1"}
    assert _naming(EVERYTHING, r"perform orbit\.task_relax_commit\(") == {
        "attempt_confirm_v1",
        "attempt_recover_v1",
        "task_cancel_v1",
        "task_resolve_v1",
    }
