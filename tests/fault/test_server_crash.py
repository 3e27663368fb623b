"""The database servers themselves crash: what they said was committed is there afterwards, and work goes on."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from seapost.database.embedded import EmbeddedServer
from seapost.database.installer import GuardLevel
from tests.kit.builders import SHIPPED
from tests.kit.database import DatabaseServer, open_directory
from tests.kit.processes import Nursery
from tests.kit.scene import Scene, opened

CHUNK = 60
Servers = dict[str, EmbeddedServer]


@pytest.fixture
def servers(nursery: Nursery, tmp_path: Path) -> Iterator[tuple[Scene, Servers]]:
    """Give a scene whose two databases lie on two durable servers of their own."""
    directory = open_directory()
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        running = {side: stack.enter_context(EmbeddedServer(directory / side)) for side in ("source", "sink")}
        made = {side: DatabaseServer(server.dsn(), server).create(GuardLevel.LEAN) for side, server in running.items()}
        yield stack.enter_context(opened(Scene(made["source"], made["sink"], nursery, tmp_path))), running


@pytest.mark.req("DLV-12", "DLV-13", "DLV-14", "PUB-09", "GEN-16", "F30", "F32", "TST-34")
def test_servers_crash_during_work(servers: tuple[Scene, Servers]) -> None:
    """After crashes of either server nothing is lost or doubled: an acknowledgement never outlives its receipt."""
    scene, running = servers
    scene.dispatcher(destination_settings={"batch_size": 10})
    for side in ("source", "sink", "source"):
        scene.append(CHUNK)
        scene.append(CHUNK // 4, SHIPPED)
        scene.await_true(
            lambda: scene.source.count("seapost.delivery_lease") > 0 or scene.unended() == 0, "work under way"
        )
        running[side].restart(immediate=True)
    scene.await_end()
    assert scene.source.count("seapost.delivery_acknowledgement") == 3 * (CHUNK + 2 * (CHUNK // 4))
    scene.assert_kept()
