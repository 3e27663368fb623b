"""Real databases for the tests of Seapost itself; they are those that `seapost.testing` gives to its users.

`SEAPOST_TEST_DSN` names a server to make them on, as a superuser; by default each test process starts one of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

import pytest
from psycopg import Connection

from seapost.database.installer import GuardLevel
from seapost.testing.databases import DatabaseServer, TestDatabase, open_directory, serve_databases

SERVER_VARIABLE: Final = "SEAPOST_TEST_DSN"

__all__ = ["SERVER_VARIABLE", "DatabaseServer", "TestDatabase", "assert_places", "open_directory"]


def assert_places(connection: Connection) -> None:
    """Fail unless every delivery is in exactly one place and every fact has its partners, as this transaction sees."""
    broken = connection.execute("select * from seapost.audit_places").fetchall()
    assert not broken, f"{len(broken)} rows in audit_places, for instance {broken[:3]}"


@pytest.fixture(scope="session")
def database_server() -> Iterator[DatabaseServer]:
    """Serve the whole test process: a server of its own, or the one that SEAPOST_TEST_DSN names."""
    with serve_databases(os.environ.get(SERVER_VARIABLE)) as databases:
        yield databases


@pytest.fixture
def empty_database(database_server: DatabaseServer) -> Iterator[TestDatabase]:
    """Give a database without our schema."""
    database = database_server.create()
    yield database
    database_server.drop(database)


@pytest.fixture
def database(database_server: DatabaseServer) -> Iterator[TestDatabase]:
    """Give a migrated database at guard level lean, the default of users."""
    clone = database_server.create(GuardLevel.LEAN)
    yield clone
    database_server.drop(clone)


@pytest.fixture
def strict_database(database_server: DatabaseServer) -> Iterator[TestDatabase]:
    """Give a migrated database at guard level strict."""
    clone = database_server.create(GuardLevel.STRICT)
    yield clone
    database_server.drop(clone)


@pytest.fixture(params=list(GuardLevel), ids=str)
def each_guard_database(database_server: DatabaseServer, request: pytest.FixtureRequest) -> Iterator[TestDatabase]:
    """Run the test twice: on a migrated database at guard level lean and on one at strict."""
    clone = database_server.create(GuardLevel(request.param))
    yield clone
    database_server.drop(clone)
