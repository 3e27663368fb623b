"""Real databases with Orbit's schema: a template migrated once per test process, a clone per test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from orbit.store.schema import orbit_tree
from seapost.database.installer import MigrationReport, migrate
from seapost.testing.databases import DatabaseServer, TestDatabase

__all__ = ["TestDatabase", "install_orbit", "new_orbit_database"]


def install_orbit(dsn: str) -> MigrationReport:
    """Bring the database behind `dsn` to the schema of this checkout."""
    return migrate(dsn, tree=orbit_tree())


def new_orbit_database(server: DatabaseServer) -> TestDatabase:
    """Make a database with Orbit's schema and nothing in it; the caller drops it with `server.drop`."""
    return server.clone("orbit", install_orbit)


@pytest.fixture
def orbit_database(database_server: DatabaseServer) -> Iterator[TestDatabase]:
    """Give a database with Orbit's schema, empty. `connect("orbit_server")` gives a session of the runtime role."""
    database = new_orbit_database(database_server)
    yield database
    database_server.drop(database)


@pytest.fixture
def orbit_empty_database(database_server: DatabaseServer) -> Iterator[TestDatabase]:
    """Give a database without any schema of ours, for tests of migrations."""
    database = database_server.create()
    yield database
    database_server.drop(database)
