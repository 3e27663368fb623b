"""Real servers of Orbit for tests: uvicorn in a thread of the test process, or in a process that can be killed.

    def test_something(orbit_server): httpx.get(orbit_server.base_url + "/readyz")

The fixture's server listens on a free port over `orbit_database`; `serving` and `serving_process` give further ones,
over the same database for instance.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

import httpx
import pytest

from orbit.server.run import OrbitServer, ServerSettings
from tests.kit.commands import environment
from tests.kit.database import TestDatabase
from tests.kit.eventually import eventually
from tests.kit.serving import free_port
from tests.kit.tree import ROOT

START_SECONDS_MAX: Final = 30.0


@dataclass(frozen=True, slots=True)
class Serving:
    """A server inside this process.

    Attributes:
        server: its parts; touch them only from its loop, by `loop.call_soon_threadsafe`.
    """

    base_url: str
    dsn: str
    server: OrbitServer
    loop: asyncio.AbstractEventLoop

    @property
    def ws_url(self) -> str:
        """The base address for WebSocket clients."""
        return self.base_url.replace("http", "ws", 1)

    def stop(self) -> None:
        """Give the order to stop, without waiting for the end."""
        self.loop.call_soon_threadsafe(self.server.stop)


@dataclass(frozen=True, slots=True)
class ServingProcess:
    """A server in a process of its own."""

    base_url: str
    process: subprocess.Popen[bytes]

    def kill(self) -> None:
        """End it at once, as by `kill -9`."""
        self.process.kill()
        _ = self.process.wait(START_SECONDS_MAX)


@contextmanager
def serving(dsn: str, **settings: Any) -> Generator[Serving]:
    """Serve in a thread on a free port until the block ends; `settings` are those of `ServerSettings`."""
    ready: threading.Event = threading.Event()
    found: list[Serving] = []
    failures: list[BaseException] = []

    async def main() -> None:
        server = OrbitServer(
            replace(ServerSettings(dsn=dsn, port=0, access_log=False, pool_size=4, recovers=False), **settings)
        )
        running = asyncio.create_task(server.run())
        waiting = asyncio.create_task(server.started.wait())
        _ = await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if server.started.is_set():
            found.append(Serving(server.address, dsn, server, asyncio.get_running_loop()))
            ready.set()
        else:
            _ = waiting.cancel()
        await running

    def run() -> None:
        try:
            asyncio.run(main())
        except BaseException as error:  # noqa: BLE001 - raised again in the test's own thread
            failures.append(error)
        ready.set()

    thread = threading.Thread(target=run, name="orbit-server")
    thread.start()
    assert ready.wait(START_SECONDS_MAX), "the server did not start"
    try:
        if found:
            yield found[0]
    finally:
        if found and thread.is_alive():
            found[0].stop()
        thread.join(START_SECONDS_MAX)
    if failures:
        raise failures[0]


@contextmanager
def serving_process(dsn: str, *, port: int | None = None) -> Generator[ServingProcess]:
    """Serve in a process on `port`, or a free one, ready when the block begins; it is stopped at the end."""
    port = free_port() if port is None else port
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.kit.orbit.serve", str(port)],
        cwd=ROOT,
        env=environment({"ORBIT_DATABASE_URL": dsn}),
    )
    base_url = f"http://127.0.0.1:{port}"
    try:
        eventually(lambda: _is_ready(base_url, process), what="the server's readiness", deadline_seconds=60)
        yield ServingProcess(base_url, process)
    finally:
        if process.poll() is None:
            os.kill(process.pid, signal.SIGTERM)
        _ = process.wait(START_SECONDS_MAX)


def _is_ready(base_url: str, process: subprocess.Popen[bytes]) -> bool:
    assert process.poll() is None, f"the server ended with exit code {process.returncode}"
    try:
        return httpx.get(base_url + "/readyz").status_code == httpx.codes.OK
    except httpx.TransportError:
        return False


@pytest.fixture
def orbit_server(orbit_database: TestDatabase) -> Iterator[Serving]:
    """Serve `orbit_database` in a thread of this process."""
    with serving(orbit_database.dsn) as running:
        yield running
