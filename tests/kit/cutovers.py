"""Switches for tests: by the runner in the runtime roles, or step by step by hand."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from hashlib import sha256
from typing import Any, Final
from uuid import UUID

import pytest

from seapost.database.installer import GuardLevel
from seapost.projections.cutover import Cutover, CutoverSettings
from seapost.store import projection_cutover as store
from tests.kit import accounts as kit
from tests.kit.database import DatabaseServer, TestDatabase
from tests.kit.kernel import Kernel

SETTINGS: Final = CutoverSettings(
    consumer_role=kit.ROLE, operator_role="seapost_operator", verifier_role="seapost_verifier"
)


@pytest.fixture(name="database")
def two_versions(database_server: DatabaseServer) -> Iterator[TestDatabase]:
    """Give a database in which version 1 is read and version 2 is known."""
    database = database_server.create(GuardLevel.LEAN)
    kit.prepare_database(database, "1", "2")
    yield database
    database_server.drop(database)


@pytest.fixture(name="kernel")
def onlooker(database: TestDatabase) -> Iterator[Kernel]:
    """Give an onlooker with all rights."""
    with database.connect(autocommit=True) as connection:
        yield Kernel(connection)


def digest(version: str) -> bytes:
    """The digest of the definition that names a version."""
    return sha256(kit.definition(version)).digest()


def cutover(database: TestDatabase, version: str = "2", **changes: Any) -> Cutover:
    """A switch to a version."""
    fields = {name: getattr(SETTINGS, name) for name in SETTINGS.__slots__}
    return Cutover(
        kit.accounts(version),
        database.dsn,
        delivery_set_version=version,
        definition_digest=digest(version),
        actor="tester",
        settings=CutoverSettings(**{**fields, **changes}),
    )


def begun(kernel: Kernel, version: str = "2") -> UUID:
    """Begin a switch by hand; its token."""
    return store.begin(
        kernel.connection,
        target=kit.accounts(version).target,
        delivery_set_version=version,
        definition_digest=digest(version),
        producers=[],
        actor="tester",
    )


def current(kernel: Kernel) -> str:
    """What readers are pointed at."""
    return kernel.value("select seapost.projection_current('accounts')")


def switched(kernel: Kernel, token: UUID, manifest: bytes) -> bytes:
    """The last step by hand."""
    return store.switch(
        kernel.connection,
        name=kit.NAME,
        token=token,
        manifest_digest=manifest,
        rollback=timedelta(days=1),
        actor="tester",
    )
