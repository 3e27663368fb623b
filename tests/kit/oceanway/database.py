"""Real databases with OceanWay's schemas: a template per owner and per database, installed once per test process.

| Fixture (module scope) | Holds |
|---|---|
| `core_database` | kernel, `core`, `operations` |
| `execution_database`, `gateway_database`, `metering_database`, `billing_database` | kernel and that owner |
| `owner_database` (a function) | `owner_database("core")`: kernel and that owner alone, a new clone at each call |

The kernel's guards are strict and the release is registered and active. Tests of one module share a database, so each
works on runs and attempts of its own. `database.connect("oceanway_core_service")` gives a session of a runtime role.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import pytest

from oceanway.cli.composition import owner_tree, projections_of, release
from oceanway.installation.databases import install
from oceanway.installation.layout import OWNERS, Database
from seapost.database.installer import GuardLevel
from seapost.testing.databases import DatabaseServer, TestDatabase

__all__ = ["OwnerDatabase", "TestDatabase", "clone_of", "new_database"]

OwnerDatabase = Callable[[str], TestDatabase]

PREFIX: Final = "oceanway"


def clone_of(server: DatabaseServer, owners: Sequence[str]) -> TestDatabase:
    """Make a database with these owners' schemas and nothing in it; the caller drops it with `server.drop`."""

    def installed(dsn: str) -> object:
        application = release()
        trees = [owner_tree(owner) for owner in owners]
        return install(dsn, trees, application, projections=projections_of(owners, application))

    return server.clone("_".join((PREFIX, *owners)), installed, base=GuardLevel.STRICT)


def new_database(server: DatabaseServer, database: Database) -> TestDatabase:
    """Make one of the five databases, empty; the caller drops it."""
    return clone_of(server, OWNERS[database])


@pytest.fixture(scope="module")
def owner_database(database_server: DatabaseServer) -> Iterator[OwnerDatabase]:
    """Give a maker of databases with one owner's schema; they live as long as the test module."""
    made: list[TestDatabase] = []

    def make(owner: str) -> TestDatabase:
        made.append(clone_of(database_server, (owner,)))
        return made[-1]

    yield make
    for one in made:
        database_server.drop(one)


def _lent(server: DatabaseServer, database: Database) -> Iterator[TestDatabase]:
    clone = new_database(server, database)
    yield clone
    server.drop(clone)


@pytest.fixture(scope="module")
def core_database(database_server: DatabaseServer) -> Iterator[TestDatabase]:
    """Give the database of Core and Operations."""
    yield from _lent(database_server, Database.CORE)


@pytest.fixture(scope="module")
def execution_database(database_server: DatabaseServer) -> Iterator[TestDatabase]:
    """Give the database of Execution."""
    yield from _lent(database_server, Database.EXECUTION)


@pytest.fixture(scope="module")
def gateway_database(database_server: DatabaseServer) -> Iterator[TestDatabase]:
    """Give the database of Gateway."""
    yield from _lent(database_server, Database.GATEWAY)


@pytest.fixture(scope="module")
def metering_database(database_server: DatabaseServer) -> Iterator[TestDatabase]:
    """Give the database of Metering."""
    yield from _lent(database_server, Database.METERING)


@pytest.fixture(scope="module")
def billing_database(database_server: DatabaseServer) -> Iterator[TestDatabase]:
    """Give the database of Billing."""
    yield from _lent(database_server, Database.BILLING)
