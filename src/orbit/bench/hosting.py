"""The server that is measured, and a migrated database on it: durable, as in production, or one that a DSN names."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final
from uuid import uuid4

import psycopg
from psycopg import AsyncConnection, conninfo, sql

from orbit.store.schema import orbit_tree
from seapost.database.embedded import EmbeddedServer
from seapost.database.installer import migrate

ROOMY: Final[Mapping[str, str]] = MappingProxyType(
    {
        "shared_buffers": "512MB",
        "max_wal_size": "8GB",
        "max_connections": "200",
        "jit": "off",
        "track_commit_timestamp": "on",
    }
)
"""No checkpoint in the middle; fsync, synchronous commit and full page writes stay on. Commit times are kept."""

SHOWN: Final = (
    "server_version",
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "wal_sync_method",
    "shared_buffers",
    "max_wal_size",
    "track_commit_timestamp",
)


@contextmanager
def bench_server(dsn: str | None) -> Generator[str]:
    """The connection string of a superuser while the block runs; `dsn` names a server that is there already."""
    if dsn is not None:
        yield dsn
        return
    with tempfile.TemporaryDirectory(prefix="orbit-bench-") as directory:
        Path(directory).chmod(0o755)  # as root, the server runs as a user of its own and must get in
        with EmbeddedServer(Path(directory) / "data", settings=ROOMY) as server:
            yield server.dsn()


@contextmanager
def bench_database(server: str) -> Generator[str]:
    """A migrated database of its own; it is dropped with whoever is still connected."""
    name = f"orbit_bench_{uuid4().hex[:12]}"
    with psycopg.connect(server, autocommit=True) as admin:
        _ = admin.execute(sql.SQL("create database {} template template0").format(sql.Identifier(name)))
    dsn = conninfo.make_conninfo(server, dbname=name)
    try:
        _ = migrate(dsn, tree=orbit_tree())
        yield dsn
    finally:
        with psycopg.connect(server, autocommit=True) as admin:
            _ = admin.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))


def server_settings(dsn: str) -> dict[str, str]:
    """PostgreSQL's version and the settings that decide a measurement."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        return {name: _setting(connection, name) for name in SHOWN}


def _setting(connection: psycopg.Connection[Any], name: str) -> str:
    row = connection.execute("select current_setting(%s)", (name,)).fetchone()
    return "" if row is None else str(row[0])


def with_options(dsn: str, options: Mapping[str, str]) -> str:
    """The connection string with further settings of the session."""
    own = conninfo.conninfo_to_dict(dsn).get("options") or ""
    given = " ".join(f"-c {name}={value}" for name, value in options.items())
    return conninfo.make_conninfo(dsn, options=f"{own} {given}".strip())


@asynccontextmanager
async def old_snapshot(dsn: str) -> AsyncGenerator[None]:
    """An old snapshot, as a dump or a long report holds one."""
    async with await AsyncConnection.connect(dsn, application_name="orbit-old-snapshot") as connection:
        _ = await connection.execute("set transaction isolation level repeatable read")
        _ = await connection.execute("select count(*) from orbit.namespaces")
        yield
