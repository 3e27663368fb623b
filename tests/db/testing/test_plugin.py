"""The pytest plugin, switched on by a user's own test suite."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.kit.database import SERVER_VARIABLE, DatabaseServer

CONFTEST: Final = """
import pytest
import shop

pytest_plugins = ["seapost.testing.plugin"]

@pytest.fixture
def seapost_application():
    return shop.application
"""
SHOP: Final = """
import seapost

class Placed(seapost.Event, type="order.placed@1"):
    order_id: str

application = seapost.Application("shop")
application.route(Placed, "billing")
"""
TESTS: Final = """
import seapost
from seapost.testing import FakeConsumer, assert_appended, run_until_idle
from shop import Placed, application

def test_one(seapost_database):
    with seapost_database.connect("producer") as connection:
        seapost.append(connection, Placed(order_id="o-1"), key="o-1", revision=1)
    assert_appended(seapost_database, Placed, key="o-1")
    billing = FakeConsumer("billing")
    assert run_until_idle(seapost_database, billing).acknowledged == 1

def test_each_test_has_a_database_of_its_own(seapost_database, make_seapost_database):
    other = make_seapost_database(application)
    assert other.name != seapost_database.name
    assert other.connect().execute("select count(*) from seapost.outbox_events").fetchone() == (0,)
"""


def test_the_fixtures_work_in_a_suite_of_ones_own(tmp_path: Path, database_server: DatabaseServer) -> None:
    """Switched on by one line, with the application's routes active in a fresh database for every test."""
    for name, text in (("conftest.py", CONFTEST), ("shop.py", SHOP), ("test_shop.py", TESTS)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if name != SERVER_VARIABLE}
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--seapost-dsn={database_server.dsn()}"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "2 passed" in run.stdout
