"""The platform of a run: a PostgreSQL of its own with Orbit's schema, queues, and one credential for each part."""

from __future__ import annotations

import secrets
import shutil
import socket
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg
from psycopg import conninfo, sql

from orbit.access import administration
from orbit.demo.flights import NEW_YORK, NEWARK, QUEUES
from orbit.model.states import Action
from orbit.store.database import Database
from orbit.store.schema import orbit_tree
from seapost.database.embedded import EmbeddedServer
from seapost.database.installer import migrate

NAMESPACE: Final = "demo"
APPLICATION: Final = "flights"
ATTEMPT_LEASE_SECONDS: Final = 5
SERVER_SETTINGS: Final = {"log_min_messages": "fatal", "max_connections": "60"}
OBSERVER: Final = "orbit-demo"


@dataclass(frozen=True, slots=True)
class Role:
    """A subscriber of the demo.

    Attributes:
        queue: whose results it gets.
        capacity: results that it handles at once.
        pause_ms: how long it takes over one.
        max_pending: its window.
    """

    name: str
    queue: str
    capacity: int
    pause_ms: int
    max_pending: int


SLOW: Final = Role("punctuality", NEWARK, capacity=2, pause_ms=25, max_pending=20)
KILLED: Final = Role("billing", NEW_YORK, capacity=16, pause_ms=120, max_pending=300)
PAUSED: Final = Role("care", NEW_YORK, capacity=8, pause_ms=2, max_pending=100)
ROLES: Final = (SLOW, KILLED, PAUSED)


@dataclass(frozen=True, slots=True)
class Platform:
    """Where everything is.

    Attributes:
        dsn: the database with all rights; `orbit serve` takes on a role with fewer.
        tokens: credential by part: `operator`, `worker`, and each subscriber's name.
    """

    folder: Path
    dsn: str
    port: int
    tokens: dict[str, str]

    def __repr__(self) -> str:
        """Tokens stay out of sight."""
        return f"Platform(port={self.port})"

    @property
    def base_url(self) -> str:
        """Address of the service."""
        return f"http://127.0.0.1:{self.port}"

    def inbox_file(self, role: Role) -> Path:
        """The inbox of a subscriber."""
        return self.folder / f"{role.name}.db"

    @property
    def client_history(self) -> Path:
        """What workers and subscribers write down, beside the inboxes."""
        return self.folder / "clients.jsonl"


@contextmanager
def open_folder() -> Generator[Path, None, None]:
    """A folder for the run: open at the top, so that the database's own user can pass, private where secrets lie."""
    folder = Path(tempfile.mkdtemp(prefix="orbit-demo-"))
    try:
        folder.chmod(0o755)
        (folder / "private").mkdir(mode=0o700)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def open_database(folder: Path, server_dsn: str | None) -> Generator[str, None, None]:
    """A migrated database, on the user's server or on one made for the run and as durable as any; gone afterwards."""
    name = f"orbit_demo_{secrets.token_hex(4)}"
    if server_dsn is None:
        with EmbeddedServer(folder / "data", settings=SERVER_SETTINGS) as server:
            with psycopg.connect(server.dsn(), autocommit=True) as connection:
                _ = connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
            _ = migrate(server.dsn(name), tree=orbit_tree())
            yield server.dsn(name)
        return
    with psycopg.connect(server_dsn, autocommit=True, application_name=OBSERVER) as connection:
        _ = connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        try:
            dsn = conninfo.make_conninfo(server_dsn, dbname=name)
            _ = migrate(dsn, tree=orbit_tree())
            yield dsn
        finally:
            _ = connection.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))


async def set_up(folder: Path, dsn: str) -> Platform:
    """Make namespace, application and queues, and a credential for each part that allows what it needs."""
    async with Database(dsn, size_max=2) as database:
        made = await administration.bootstrap(
            database, namespace=NAMESPACE, application=APPLICATION, queues=("spare",), credential_name="set-up"
        )
        for queue in QUEUES:
            _ = await administration.create_queue(
                database, namespace=NAMESPACE, name=queue, lease_seconds=ATTEMPT_LEASE_SECONDS
            )
        _ = await administration.revoke_credential(database, credential_id=str(made["credential_id"]))
        parts: dict[str, tuple[tuple[Action, ...], tuple[str, ...]]] = {
            "operator": (tuple(action for action in Action if action.startswith("tasks:")), QUEUES),
            "worker": ((Action.TASKS_WORK,), QUEUES),
        }
        parts |= {role.name: (administration.EVENT_ACTIONS, (role.queue,)) for role in ROLES}
        tokens: dict[str, str] = {}
        for name, (actions, queues) in parts.items():
            issued = await administration.issue_credential(
                database, application=APPLICATION, name=name, actions=actions, queues=queues
            )
            tokens[name] = str(issued["token"])
    return Platform(folder / "private", dsn, _free_port(), tokens)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])
