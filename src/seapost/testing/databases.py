"""Real databases for tests: one server per test process, migrated templates, a clone per test.

The server comes out of the wheel, made for throwing away; or it is one that already runs, as a superuser, which several
test processes may share. A clone takes about 30 ms. Nothing here is for production data.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import uuid
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

import psycopg
from psycopg import AsyncConnection, Connection, conninfo, sql

from seapost.database.embedded import EmbeddedServer
from seapost.database.installer import GuardLevel, migrate
from seapost.outbox import routes
from seapost.store import status

if TYPE_CHECKING:
    from seapost.outbox.application import Application

ACTOR: Final = "seapost.testing"
DEFECTS_SHOWN: Final = 3


@dataclass
class TestDatabase:
    """One database of its own for one test; connections made here are closed with it.

    Attributes:
        name: of the database on its server.
        dsn: connection string, as a superuser.
        guards: level that it was migrated to; None when it holds no schema of ours.
    """

    __test__ = False

    name: str
    dsn: str
    guards: GuardLevel | None = None
    _connections: ExitStack = field(default_factory=ExitStack, repr=False)
    _async_connections: list[AsyncConnection] = field(default_factory=list[AsyncConnection], repr=False)

    def connect(self, role: str | None = None, *, autocommit: bool = False) -> Connection:
        """Open a connection, as `role` when one is named (`producer` is short for `seapost_producer`)."""
        connection = psycopg.connect(self.dsn, autocommit=autocommit)
        self._connections.callback(connection.close)
        if role is not None:
            connection.execute(_set_role(role))
            if not autocommit:
                connection.commit()
        return connection

    async def connect_async(self, role: str | None = None, *, autocommit: bool = False) -> AsyncConnection:
        """Asynchronous twin of `connect`."""
        connection = await AsyncConnection.connect(self.dsn, autocommit=autocommit)
        self._async_connections.append(connection)
        if role is not None:
            await connection.execute(_set_role(role))
            if not autocommit:
                await connection.commit()
        return connection

    def route(self, application: Application) -> None:
        """Register the application's routes and make them the ones that new events freeze."""
        with ThreadPoolExecutor(1) as thread:  # not in the caller's event loop, if there is one
            thread.submit(asyncio.run, self._route(application)).result()

    def assert_places(self) -> None:
        """Fail unless every delivery is in exactly one place and every fact has its partners (view `audit_places`)."""
        with ThreadPoolExecutor(1) as thread:
            defects = thread.submit(asyncio.run, self._defects()).result()
        assert not defects, f"audit_places reports {defects[:DEFECTS_SHOWN]}"  # noqa: S101 - what a test calls it for

    def kill(self, process_id: int) -> None:
        """Terminate one backend of this database and return when it is gone."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute("select pg_terminate_backend(%s, 10000)", (process_id,))

    def close(self) -> None:
        """Close every connection; asynchronous ones by hand, since their event loop has ended."""
        self._connections.close()
        for connection in self._async_connections:
            connection.pgconn.finish()

    async def _route(self, application: Application) -> None:
        async with await AsyncConnection.connect(self.dsn) as connection:
            wanted = await routes.plan(connection, application)
            await routes.apply(
                connection,
                wanted.definition,
                source_release=application.name,
                actor=ACTOR,
                fair_lanes=application.fair_lanes,
            )

    async def _defects(self) -> list[status.Defect]:
        async with await AsyncConnection.connect(self.dsn) as connection:
            return await status.audit(connection, limit=DEFECTS_SHOWN)


def _set_role(role: str) -> sql.Composed:
    name = role if "_" in role else f"seapost_{role}"
    return sql.SQL("set role {}").format(sql.Identifier(name))


class DatabaseServer:
    """Makes and drops databases on one server; templates are migrated on first use."""

    def __init__(self, dsn: str, embedded: EmbeddedServer | None = None) -> None:
        self.embedded = embedded
        self._dsn = dsn
        self._run = uuid.uuid4().hex[:8]
        self._templates: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name in self._templates.values():
            self._drop(name)

    def dsn(self, database: str = "postgres") -> str:
        """Connection string of one database, as a superuser."""
        parameters = conninfo.conninfo_to_dict(self._dsn)
        parameters["dbname"] = database
        return conninfo.make_conninfo("", **parameters)

    def create(self, template: GuardLevel | None = None) -> TestDatabase:
        """Make an empty database, or a clone of the migrated template of a guard level."""
        name = f"seapost_test_{uuid.uuid4().hex[:12]}"
        self._create(name, "template0" if template is None else self._kernel(template))
        return TestDatabase(name, self.dsn(name), template)

    def clone(
        self, template: str, migrated: Callable[[str], object], *, base: GuardLevel | None = None
    ) -> TestDatabase:
        """Make a clone of the template called `template`.

        Args:
            migrated: fills the template on its first use, given its DSN.
            base: the guard level of a migrated database to fill; without it an empty one.
        """
        name = f"seapost_test_{uuid.uuid4().hex[:12]}"
        source = "template0" if base is None else self._kernel(base)
        self._create(name, self._template(template, migrated, source))
        return TestDatabase(name, self.dsn(name))

    def copy(self, database: TestDatabase) -> TestDatabase:
        """Make a copy of a database, as a backup would be; nobody may be connected to it."""
        name = f"seapost_test_{uuid.uuid4().hex[:12]}"
        self._create(name, database.name)
        return TestDatabase(name, self.dsn(name), database.guards)

    def drop(self, database: TestDatabase) -> None:
        """Close what the test opened and drop the database, whoever is still connected."""
        database.close()
        self._drop(database.name)

    def _kernel(self, level: GuardLevel) -> str:
        return self._template(level, lambda dsn: migrate(dsn, guards=level), "template0")

    def _template(self, label: str, migrated: Callable[[str], object], source: str) -> str:
        name = self._templates.get(label)
        if name is None:
            name = f"seapost_template_{label}_{self._run}"
            self._create(name, source)
            self._templates[label] = name
            migrated(self.dsn(name))
        return name

    def _create(self, name: str, template: str) -> None:
        self._execute(
            sql.SQL("create database {} template {} strategy file_copy encoding 'UTF8'").format(
                sql.Identifier(name), sql.Identifier(template)
            )
        )

    def _drop(self, name: str) -> None:
        self._execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))

    def _execute(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.dsn(), autocommit=True) as connection:
            connection.execute(statement)


@contextmanager
def serve_databases(dsn: str | None = None) -> Generator[DatabaseServer]:
    """A server for one test process: the one that `dsn` names as a superuser, else a throw-away one from the wheel."""
    if dsn:
        with DatabaseServer(dsn) as databases:
            yield databases
        return
    directory = open_directory()
    try:
        with EmbeddedServer(directory / "data", durable=False) as embedded:
            yield DatabaseServer(embedded.dsn(), embedded)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def open_directory() -> Path:
    """Make a short temporary folder that the server's own user can enter, which pytest's are not for root."""
    directory = Path(tempfile.mkdtemp(prefix="seapost-"))
    directory.chmod(0o755)
    return directory
