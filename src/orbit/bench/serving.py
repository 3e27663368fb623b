"""A real `orbit serve` in a process of its own, over the measured database."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import httpx

from orbit.tasks.fence import CommitMode
from seapost.model.errors import SeapostError

START_SECONDS_MAX: Final = 30.0
STOP_SECONDS_MAX: Final = 20.0
POLL_SECONDS: Final = 0.05
_PROGRAM: Final = ("-c", "from orbit.cli.main import main; main()", "serve", "--no-access-log")


@contextmanager
def serving(dsn: str, commit: CommitMode) -> Generator[str]:
    """The base address of a server that is ready, while the block runs."""
    port = _free_port()
    process = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, *_PROGRAM, "--port", str(port), "--commit", str(commit)],
        env={**os.environ, "ORBIT_DATABASE_URL": dsn},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        base_url = f"http://127.0.0.1:{port}"
        _wait_until_ready(base_url, process)
        yield base_url
    finally:
        process.terminate()
        try:
            _ = process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            _ = process.wait()


def _wait_until_ready(base_url: str, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < end and process.poll() is None:
        try:
            if httpx.get(f"{base_url}/readyz").status_code == httpx.codes.OK:
                return
        except httpx.TransportError:
            pass
        time.sleep(POLL_SECONDS)
    raise SeapostError(f"The server of the benchmark did not become ready (exit code {process.poll()}).")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])
