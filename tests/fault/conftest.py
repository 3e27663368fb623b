"""The nursery of the test process and the scene of each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from seapost.database.installer import GuardLevel
from tests.kit.database import DatabaseServer
from tests.kit.processes import Nursery
from tests.kit.scene import Scene, opened


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """Give the program that forks the processes of this test process."""
    with Nursery() as nursery:
        yield nursery


def _scene(server: DatabaseServer, nursery: Nursery, folder: Path, level: GuardLevel) -> Iterator[Scene]:
    source, sink = server.create(level), server.create(level)
    with opened(Scene(source, sink, nursery, folder)) as scene:
        yield scene
    for database in (source, sink):
        server.drop(database)


@pytest.fixture
def scene(database_server: DatabaseServer, nursery: Nursery, tmp_path: Path) -> Iterator[Scene]:
    """Give two databases at guard level lean."""
    yield from _scene(database_server, nursery, tmp_path, GuardLevel.LEAN)


@pytest.fixture
def strict_scene(database_server: DatabaseServer, nursery: Nursery, tmp_path: Path) -> Iterator[Scene]:
    """Give two databases at guard level strict."""
    yield from _scene(database_server, nursery, tmp_path, GuardLevel.STRICT)


@pytest.fixture(params=list(GuardLevel), ids=str)
def each_scene(
    database_server: DatabaseServer, nursery: Nursery, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Scene]:
    """Run the test at guard level lean and at strict."""
    yield from _scene(database_server, nursery, tmp_path, GuardLevel(request.param))
