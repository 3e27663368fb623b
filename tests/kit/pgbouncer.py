"""PgBouncer in transaction mode in front of the test server, with and without prepared statements.

The program comes from the system (Debian: `apt-get install pgbouncer`). It refuses to run as root, so root starts it as
whoever may reach the server's socket. A machine without it skips.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg
import pytest
from psycopg import conninfo

from tests.kit.database import DatabaseServer, open_directory
from tests.kit.eventually import eventually
from tests.kit.serving import free_port

PROGRAM: Final = "pgbouncer"
FOLDERS: Final = ("/usr/sbin", "/usr/local/sbin")
PREPARED_MAX: Final = 100
PREPARED_SINCE: Final = (1, 21)
POOL_SIZE: Final = 4
STOP_SECONDS_MAX: Final = 10

_CONFIGURATION: Final = """
[databases]
* = {server}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
{prepared}
default_pool_size = {size}
max_client_conn = 200
server_idle_timeout = 5
query_wait_timeout = 30
logfile = {folder}/log
"""


@dataclass(frozen=True, slots=True)
class PgBouncer:
    """A running pooler.

    Attributes:
        prepared: whether it keeps named prepared statements (`max_prepared_statements` above 0).
    """

    port: int
    prepared: bool

    def dsn(self, direct: str) -> str:
        """The connection string of the same database through the pooler."""
        given = conninfo.conninfo_to_dict(direct)
        return conninfo.make_conninfo("", host="127.0.0.1", port=self.port, user=given["user"], dbname=given["dbname"])


def find() -> str | None:
    """The program, or None on a machine without it."""
    return shutil.which(PROGRAM, path=os.pathsep.join((os.environ.get("PATH", ""), *FOLDERS)))


@contextmanager
def running(server_dsn: str, *, prepared: bool) -> Generator[PgBouncer]:
    """Run a pooler before the server of this connection string; skips without the program."""
    program = find()
    if program is None:
        pytest.skip("pgbouncer is not installed")
    version = _version(program)
    if prepared and version < PREPARED_SINCE:
        pytest.skip(f"pgbouncer {'.'.join(map(str, version))} keeps no prepared statements; 1.21 does")
    folder = open_directory()
    port = free_port()
    settings = folder / "pgbouncer.ini"
    settings.write_text(
        _CONFIGURATION.format(
            server=_server(server_dsn),
            port=port,
            prepared=_prepared_setting(version, prepared=prepared),
            size=POOL_SIZE,
            folder=folder,
        )
    )
    command = [program, str(settings)]
    if os.geteuid() == 0:
        user = _unprivileged(server_dsn)
        shutil.chown(folder, user)
        command[1:1] = ["-u", user]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        pooler = PgBouncer(port, prepared)
        eventually(lambda: _answers(process, pooler.dsn(server_dsn), folder), what="an answer of PgBouncer")
        yield pooler
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _version(program: str) -> tuple[int, ...]:
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"(\d+)\.(\d+)", said)
    assert found is not None, said
    return tuple(map(int, found.groups()))


def _prepared_setting(version: tuple[int, ...], *, prepared: bool) -> str:
    """Older releases refuse to start over a setting that they do not know."""
    if version < PREPARED_SINCE:
        return ""
    return f"max_prepared_statements = {PREPARED_MAX if prepared else 0}"


def _server(dsn: str) -> str:
    given = conninfo.conninfo_to_dict(dsn)
    return " ".join(f"{name}={given[name]}" for name in ("host", "port", "user", "password") if given.get(name))


def _unprivileged(dsn: str) -> str:
    """The owner of the server's socket folder, which is open to nobody else; over TCP any user will do."""
    host = str(conninfo.conninfo_to_dict(dsn).get("host") or "")
    if host.startswith("/"):
        owner = Path(host).stat().st_uid
        if owner != 0:
            return pwd.getpwuid(owner).pw_name
    return "nobody"


def _answers(process: subprocess.Popen[bytes], dsn: str, folder: Path) -> bool:
    if process.poll() is not None:
        log = folder / "log"
        said = log.read_text() if log.exists() else "nothing"
        raise AssertionError(f"PgBouncer ended with code {process.returncode} and said: {said}")
    with suppress(psycopg.OperationalError), psycopg.connect(dsn, connect_timeout=2) as connection:
        return connection.execute("select 1").fetchone() == (1,)
    return False


@pytest.fixture(scope="session")
def pgbouncer_plain(database_server: DatabaseServer) -> Iterator[PgBouncer]:
    """Run a pooler that keeps no prepared statements (`max_prepared_statements = 0`)."""
    with running(database_server.dsn(), prepared=False) as pooler:
        yield pooler


@pytest.fixture(scope="session")
def pgbouncer_prepared(database_server: DatabaseServer) -> Iterator[PgBouncer]:
    """Run a pooler that keeps named prepared statements (`max_prepared_statements` above 0)."""
    with running(database_server.dsn(), prepared=True) as pooler:
        yield pooler


@pytest.fixture(params=["plain", "prepared"])
def pgbouncer(request: pytest.FixtureRequest) -> PgBouncer:
    """Run the test behind each of the two poolers."""
    return request.getfixturevalue(f"pgbouncer_{request.param}")
