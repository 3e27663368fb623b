"""Real databases for tests: one server per test process, a migrated template per guard level, a clone per test.

The server comes out of the wheel, made for throwing away. `SEAPOST_TEST_DSN` names another server, as a
superuser; several test processes may share that one. A clone takes about 30 ms.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import psycopg
import pytest
from psycopg import AsyncConnection, Connection, conninfo, sql

from seapost.database.embedded import EmbeddedServer
from seapost.database.installer import GuardLevel, migrate

SERVER_VARIABLE: Final = "SEAPOST_TEST_DSN"


def assert_places(connection: Connection) -> None:
    """Fail unless every delivery is in exactly one place and every fact has its partners."""
    broken = connection.execute("select * from seapost.audit_places").fetchall()
    assert not broken, f"{len(broken)} rows in audit_places, for instance {broken[:3]}"


@dataclass
class TestDatabase:
    """One database of its own for one test; connections made here are closed with it."""

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

    def assert_places(self) -> None:
        """Check the invariants on a connection of its own, over one snapshot."""
        with psycopg.connect(self.dsn) as connection:
            assert_places(connection)

    def kill(self, process_id: int) -> None:
        """Terminate one backend of this database and return when it is gone."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute("select pg_terminate_backend(%s, 10000)", (process_id,))

    def close(self) -> None:
        """Close every connection; asynchronous ones by hand, since their event loop has ended."""
        self._connections.close()
        for connection in self._async_connections:
            connection.pgconn.finish()


def _set_role(role: str) -> sql.Composed:
    name = role if role.startswith("seapost_") else f"seapost_{role}"
    return sql.SQL("set role {}").format(sql.Identifier(name))


class DatabaseServer:
    """Makes and drops databases on one server; templates are migrated on first use."""

    def __init__(self, dsn: str, embedded: EmbeddedServer | None) -> None:
        self.embedded = embedded
        self._dsn = dsn
        self._run = uuid.uuid4().hex[:8]
        self._templates: dict[GuardLevel, str] = {}

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
        self._create(name, "template0" if template is None else self._template(template))
        return TestDatabase(name, self.dsn(name), template)

    def copy(self, database: TestDatabase) -> TestDatabase:
        """Make a copy of a database, as a backup would be; nobody may be connected to it."""
        name = f"seapost_test_{uuid.uuid4().hex[:12]}"
        self._create(name, database.name)
        return TestDatabase(name, self.dsn(name), database.guards)

    def drop(self, database: TestDatabase) -> None:
        """Close what the test opened and drop the database, whoever is still connected."""
        database.close()
        self._drop(database.name)

    def _template(self, level: GuardLevel) -> str:
        name = self._templates.get(level)
        if name is None:
            name = f"seapost_template_{level}_{self._run}"
            self._create(name, "template0")
            self._templates[level] = name
            migrate(self.dsn(name), guards=level)
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


def open_directory() -> Path:
    """Make a short temporary folder that the server's own user can enter, which pytest's are not for root."""
    directory = Path(tempfile.mkdtemp(prefix="seapost-"))
    directory.chmod(0o755)
    return directory


@pytest.fixture(scope="session")
def database_server() -> Iterator[DatabaseServer]:
    """Serve the whole test process: a server of its own, or the one that SEAPOST_TEST_DSN names."""
    dsn = os.environ.get(SERVER_VARIABLE)
    if dsn:
        with DatabaseServer(dsn, None) as databases:
            yield databases
        return
    directory = open_directory()
    try:
        with EmbeddedServer(directory / "data", durable=False) as embedded:
            yield DatabaseServer(embedded.dsn(), embedded)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def empty_database(database_server: DatabaseServer) -> Iterator[TestDatabase]:
    """Give a database without our schema."""
    database = database_server.create()
    yield database
    database_server.drop(database)


@pytest.fixture
def database(database_server: DatabaseServer) -> Iterator[TestDatabase]:
    """Give a migrated database at guard level lean, the default of users."""
    clone = database_server.create(GuardLevel.LEAN)
    yield clone
    database_server.drop(clone)


@pytest.fixture
def strict_database(database_server: DatabaseServer) -> Iterator[TestDatabase]:
    """Give a migrated database at guard level strict."""
    clone = database_server.create(GuardLevel.STRICT)
    yield clone
    database_server.drop(clone)


@pytest.fixture(params=list(GuardLevel), ids=str)
def each_guard_database(database_server: DatabaseServer, request: pytest.FixtureRequest) -> Iterator[TestDatabase]:
    """Run the test twice: on a migrated database at guard level lean and on one at strict."""
    clone = database_server.create(GuardLevel(request.param))
    yield clone
    database_server.drop(clone)
