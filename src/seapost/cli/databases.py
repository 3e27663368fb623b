"""Connections for commands: from the settings to an open, checked session, with an embedded server started when needed.

Connections of one process (F79): a command that looks or changes something uses one; `dispatch` its pool and one that
listens; `serve` its pool. An embedded server belongs to nobody: the last process that leaves stops it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

import psycopg
from psycopg import AsyncConnection, sql

from seapost.cli.settings import DatabaseSettings
from seapost.database.embedded import EmbeddedServer
from seapost.database.installer import check_schema_async
from seapost.database.pool import (
    PREPARE_THRESHOLD,
    RoleTimeouts,
    check_dsn,
    configure_session_async,
    part_dsn,
    redact_dsn,
    refuse_role,
)
from seapost.model.errors import InvalidSetting

Session = AsyncConnection[Any]


def dsn_of(database: DatabaseSettings, section: str = "database") -> str:
    """The connection string of a database; starts its embedded server when it has one and none runs.

    Raises:
        InvalidSetting: the settings name no database, or a malformed one.
    """
    if database.embedded is not None:
        return _embedded_dsn(database)
    if database.dsn is None:
        variable = f"SEAPOST_{section.upper()}_DSN"
        flag = "--dsn, " if section == "database" else ""
        raise InvalidSetting(
            f"{section}.dsn: no database is named; give {flag}{variable}, or write it into seapost.toml."
        )
    return check_dsn(database.dsn.get_secret_value())


def direct_dsn_of(database: DatabaseSettings, section: str = "database") -> str:
    """The connection string for what needs the server itself; `dsn` where no other is given. Errors as `dsn_of`."""
    if database.direct_dsn is not None:
        return check_dsn(database.direct_dsn.get_secret_value())
    return dsn_of(database, section)


def _embedded_dsn(database: DatabaseSettings) -> str:
    assert database.embedded is not None  # noqa: S101 - asked just before
    server = EmbeddedServer(database.embedded)
    server.start()
    _ensure_database(server, database.name)
    return server.dsn(database.name)


def _ensure_database(server: EmbeddedServer, name: str) -> None:
    with psycopg.connect(part_dsn(server.dsn(), "init"), autocommit=True) as connection:
        if connection.execute("select from pg_catalog.pg_database where datname = %s", (name,)).fetchone() is None:
            with suppress(psycopg.errors.DuplicateDatabase):
                connection.execute(sql.SQL("create database {} encoding 'UTF8'").format(sql.Identifier(name)))


def database_name(dsn: str) -> str:
    """The database as a message may show it: without secrets."""
    return redact_dsn(dsn)


@asynccontextmanager
async def connected(
    dsn: str,
    *,
    part: str,
    timeouts: RoleTimeouts,
    role: str | None = None,
    behind_pooler: bool = False,
    check: bool = True,
) -> AsyncGenerator[Session]:
    """One session in autocommit mode on a database that holds this release's schema.

    Args:
        check: False leaves out what it holds: that is for the caller to find out.

    Raises:
        psycopg.OperationalError: the server cannot be reached.
        SchemaMissing, SchemaNewer, MigrationChanged: it holds another schema.
    """
    async with await AsyncConnection.connect(
        part_dsn(dsn, part), autocommit=True, prepare_threshold=None if behind_pooler else PREPARE_THRESHOLD
    ) as connection:
        if behind_pooler:
            refuse_role(role)
        else:
            await configure_session_async(connection, timeouts, role=role)
        if check:
            await check_schema_async(connection)
        yield connection


def looking(database: DatabaseSettings, section: str = "database") -> AbstractAsyncContextManager[Session]:
    """A session for a command that only looks: short time limits (F83)."""
    return _session(database, section, "status", database.read_timeouts)


def acting(database: DatabaseSettings, section: str = "database") -> AbstractAsyncContextManager[Session]:
    """A session for a command that changes something."""
    return _session(database, section, "operator", database.timeouts)


def examining(database: DatabaseSettings, section: str = "database") -> AbstractAsyncContextManager[Session]:
    """A session for the command that finds out what the database holds; it may take as long as work may."""
    return _session(database, section, "doctor", database.timeouts, check=False)


@asynccontextmanager
async def _session(
    database: DatabaseSettings, section: str, part: str, timeouts: RoleTimeouts, *, check: bool = True
) -> AsyncGenerator[Session]:
    dsn = dsn_of(database, section)
    async with connected(
        dsn, part=part, timeouts=timeouts, role=database.role, behind_pooler=database.behind_pooler, check=check
    ) as connection:
        yield connection
