"""Processes that start their first servers at once agree on the system user that runs them."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from seapost.database import system_user

STARTERS = 8


@pytest.fixture
def unknown_user(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Name a user that does not exist yet; it is removed again afterwards."""
    if os.geteuid() != 0 or shutil.which("useradd") is None:
        pytest.skip("only root makes a system user, and only where useradd exists")
    name = f"seapost_test_{os.getpid()}"
    monkeypatch.setattr(system_user, "SYSTEM_USER", name)
    yield name
    subprocess.run(["userdel", name], check=False, capture_output=True)


def test_starters_at_the_same_moment_find_one_user(unknown_user: str) -> None:
    """Several `useradd` at once succeed with different ids; behind our lock all starters get the id that stays."""
    with ThreadPoolExecutor(STARTERS) as starters:
        found = [one.result() for one in [starters.submit(system_user.wheel_user) for _ in range(STARTERS)]]
    assert {user.user_id for user in found} == {pwd.getpwnam(unknown_user).pw_uid}
