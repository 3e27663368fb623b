"""The pytest plugin; switch it on in your outermost conftest with `pytest_plugins = ["seapost.testing.plugin"]`.

It is not switched on by being installed: a test run that has nothing to do with events should not pay for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Final

import pytest

from seapost.database.installer import GuardLevel
from seapost.outbox.application import Application
from seapost.testing.databases import DatabaseServer, TestDatabase, serve_databases

DSN_VARIABLE: Final = "SEAPOST_TEST_DSN"

MakeDatabase = Callable[..., TestDatabase]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--seapost-dsn`."""
    parser.getgroup("seapost").addoption(
        "--seapost-dsn",
        default=os.environ.get(DSN_VARIABLE),
        metavar="DSN",
        help=f"server to make test databases on, as a superuser; by default ${DSN_VARIABLE}, else an embedded one",
    )


@pytest.fixture(scope="session")
def seapost_server(pytestconfig: pytest.Config) -> Iterator[DatabaseServer]:
    """Serve the whole test process with databases."""
    with serve_databases(pytestconfig.getoption("--seapost-dsn")) as databases:
        yield databases


@pytest.fixture
def seapost_application() -> Application | None:
    """Name the application whose routes `seapost_database` gets; override it in your conftest."""
    return None


@pytest.fixture
def make_seapost_database(seapost_server: DatabaseServer) -> Iterator[MakeDatabase]:
    """Make further databases: `make_seapost_database(application=None, guards=GuardLevel.LEAN)`."""
    with ExitStack() as stack:

        def make(application: Application | None = None, *, guards: GuardLevel = GuardLevel.LEAN) -> TestDatabase:
            database = seapost_server.create(guards)
            stack.callback(seapost_server.drop, database)
            if application is not None:
                database.route(application)
            return database

        yield make


@pytest.fixture
def seapost_database(make_seapost_database: MakeDatabase, seapost_application: Application | None) -> TestDatabase:
    """Give a migrated database of its own, with the routes of `seapost_application` active."""
    return make_seapost_database(seapost_application)
