"""The set-up of a run: a server, five databases, thirteen processes; and how they come up and end in order."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import httpx
import psycopg
from psycopg import sql

from oceanway.billing.finalization.gate import ROUTES, CommandChain, open_gate
from oceanway.demo.processes import DemoFailed, Processes
from oceanway.installation.databases import named_dsn
from oceanway.installation.layout import PROCESSES, SERVED, Database, Kind
from seapost.database.embedded import EmbeddedServer

if TYPE_CHECKING:
    from oceanway.installation.layout import Process

HOST: Final = "127.0.0.1"
PRIVATE: Final = "private"
SERVER_SETTINGS: Final[Mapping[str, str]] = {"max_connections": "200", "shared_buffers": "256MB"}
READY_SECONDS_MAX: Final = 60.0
INIT_SECONDS_MAX: Final = 120.0
PAUSE_SECONDS: Final = 0.03
WORKERS: Final = tuple(one for one in PROCESSES if one.kind in {Kind.SERVE, Kind.DISPATCH, Kind.WORK})
OCEANWAY: Final = ("-c", "from oceanway.cli.main import main; main()")
"""The `oceanway` program, wherever this Python finds it."""

_SETTINGS: Final = """\
[dispatch]
batch_size = 200
lease_seconds = 5
timeout_seconds = 10
backoff_base_seconds = 0.1
backoff_max_seconds = 1
breaker_open_seconds = 0.3

[work]
batch = 50
lease_seconds = 5
idle_seconds_max = 0.2
failure_seconds_max = 1
"""


@dataclass(frozen=True, slots=True)
class Platform:
    """Where a run happens.

    Attributes:
        folder: settings, keys, logs and ledger; private.
        config: the settings file of every process.
        dsns: the five databases, with all rights.
        addresses: where each owner listens.
    """

    folder: Path
    config: Path
    dsns: Mapping[Database, str]
    addresses: Mapping[str, str]

    @property
    def ledger(self) -> Path:
        """What the driver writes down, for the auditor."""
        return self.folder / "ledger.jsonl"


@contextmanager
def open_folder() -> Generator[Path]:
    """A folder for the run: open at the top, so that the database's own user can pass, private where secrets lie."""
    folder = Path(tempfile.mkdtemp(prefix="oceanway-demo-"))
    try:
        folder.chmod(0o755)
        (folder / PRIVATE).mkdir(mode=0o700)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def open_platform(
    folder: Path, server_dsn: str | None, server_settings: Mapping[str, str] = SERVER_SETTINGS
) -> Generator[Platform]:
    """Make the databases, on the server named or on one made for the run; gone afterwards, with everything in them."""
    with ExitStack() as stack:
        if server_dsn is None:
            server = stack.enter_context(EmbeddedServer(folder / "data", settings=server_settings))
            server_dsn = server.dsn()
        prefix = f"oceanway_demo_{secrets.token_hex(4)}"
        _ = stack.callback(_drop_databases, server_dsn, prefix)
        yield _prepare(folder / PRIVATE, server_dsn, prefix)


def _prepare(folder: Path, server_dsn: str, prefix: str) -> Platform:
    dsns = {one: named_dsn(server_dsn, f"{prefix}_{one}") for one in Database}
    addresses = {owner: f"http://{HOST}:{port}" for owner, port in zip(SERVED, _free_ports(len(SERVED)), strict=True)}
    config = folder / "oceanway.toml"
    databases = "".join(f"{name} = {_quoted(dsn)}\n" for name, dsn in dsns.items())
    owners = "".join(f"{owner} = {_quoted(address)}\n" for owner, address in addresses.items())
    with os.fdopen(os.open(config, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        _ = file.write(f"[databases]\n{databases}\n[addresses]\n{owners}\n{_SETTINGS}")
    command = [sys.executable, *OCEANWAY, "init", "--server", server_dsn, "--prefix", prefix, "--config", str(config)]
    done = subprocess.run(  # noqa: S603 - our own program
        command, env=environment(), capture_output=True, text=True, timeout=INIT_SECONDS_MAX, check=False
    )
    if done.returncode != 0:
        raise DemoFailed(f"the databases cannot be prepared: {done.stderr.strip()}")
    _open_gate(dsns[Database.BILLING])
    return Platform(folder, config, dsns, addresses)


def _open_gate(dsn: str) -> None:
    """Let finalization enter cases: this day has an operator with every step of the command chain (CASE-25)."""
    chain = CommandChain(frozenset(ROUTES), decision_store=True, command_handler=True)
    with psycopg.connect(dsn) as connection:
        open_gate(connection, chain, actor="oceanway.demo")


def environment() -> dict[str, str]:
    """Our environment without what would configure OceanWay or PostgreSQL behind the demo's back."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("OCEANWAY_", "SEAPOST_"))}
    return {key: value for key, value in kept.items() if not key.startswith("PG") or key == "PGPASSWORD"}


def start(platform: Platform, processes: Processes) -> None:
    """Start every worker, and return when the owners answer and the others live.

    Raises:
        DemoFailed: one does not come up; the message holds the end of its log.
    """
    for one in WORKERS:
        processes.start(one.workload, one.kind.value, one.subject, "--config", str(platform.config))
    deadline = time.monotonic() + READY_SECONDS_MAX
    waiting = dict(platform.addresses)
    pause = Event()
    with httpx.Client(timeout=5.0, trust_env=False) as client:
        while waiting:
            processes.tend()
            for owner in [name for name, address in waiting.items() if _is_ready(client, address)]:
                del waiting[owner]
            if time.monotonic() > deadline:
                logs = "\n".join(processes.members[f"{Kind.SERVE}.{owner}"].last_lines() for owner in waiting)
                raise DemoFailed(f"not ready after {READY_SECONDS_MAX:.0f} s: {', '.join(waiting)}\n{logs}")
            _ = pause.wait(PAUSE_SECONDS)


def stop(processes: Processes) -> dict[str, int]:
    """End the workers in order: who makes work first, who serves last; the exit codes."""
    codes: dict[str, int] = {}
    for kind in (Kind.WORK, Kind.DISPATCH, Kind.SERVE):
        codes |= processes.end([one.workload for one in WORKERS if one.kind is kind])
    return codes


def dispatchers() -> Mapping[str, Process]:
    """The dispatchers by name."""
    return {one.workload: one for one in WORKERS if one.kind is Kind.DISPATCH}


def _is_ready(client: httpx.Client, address: str) -> bool:
    parts = urlsplit(address)
    try:
        return client.get(f"{parts.scheme}://{parts.netloc}/readyz").status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False


def _free_ports(count: int) -> list[int]:
    """Ports that nobody uses now, all different: each is held until the last is found."""
    with ExitStack() as held:
        found = [held.enter_context(socket.create_server((HOST, 0))) for _ in range(count)]
        return [int(one.getsockname()[1]) for one in found]


def _drop_databases(server_dsn: str, prefix: str) -> None:
    with psycopg.connect(server_dsn, autocommit=True) as connection:
        for database in Database:
            statement = sql.SQL("drop database if exists {} with (force)")
            _ = connection.execute(statement.format(sql.Identifier(f"{prefix}_{database}")))


def _quoted(text: str) -> str:
    """A TOML basic string."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
