"""The server that is measured, and databases on it: an embedded PostgreSQL with fsync on, or the one of BENCH_DSN."""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final
from urllib.parse import quote, urlencode
from uuid import uuid4

import psycopg
from psycopg import conninfo, sql

from seapost.database.embedded import EmbeddedServer

ROOMY: Final[Mapping[str, str]] = MappingProxyType(
    {"shared_buffers": "1GB", "max_wal_size": "8GB", "jit": "off", "max_connections": "300"}
)
"""Enough memory that one workload fits, no checkpoint in the middle of another."""

COUNTED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "autovacuum": "off",
        "checkpoint_timeout": "1d",
        "full_page_writes": "off",
        "jit": "off",
        "max_wal_size": "8GB",
        "shared_buffers": "512MB",
        "wal_writer_delay": "10s",
        "bgwriter_lru_maxpages": "0",
    }
)
"""Nothing happens on this server that the workload did not ask for; so the same work gives the same counters."""


@contextmanager
def measured_server(dsn: str | None, settings: Mapping[str, str] = ROOMY) -> Generator[str]:
    """The connection string of a superuser, while the block runs; `dsn` names one that is there already."""
    if dsn is not None:
        yield dsn
        return
    with tempfile.TemporaryDirectory(prefix="seapost-bench-") as directory:
        Path(directory).chmod(0o755)  # as root, the server runs as a user of its own and must get in
        with EmbeddedServer(Path(directory) / "data", settings=settings) as server:
            yield server.dsn()


@contextmanager
def fresh_database(dsn: str) -> Generator[str]:
    """An empty database of its own; it is dropped with whoever is still connected."""
    name = f"seapost_bench_{uuid4().hex[:12]}"
    with psycopg.connect(dsn, autocommit=True) as admin:
        _ = admin.execute(sql.SQL("create database {} template template0").format(sql.Identifier(name)))
    try:
        yield _url(dsn, name)
    finally:
        with psycopg.connect(dsn, autocommit=True) as admin:
            _ = admin.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))


def _url(dsn: str, database: str) -> str:
    """The same server as a URL, the one form that every driver reads; sockets and hosts alike as parameters."""
    given = {name: str(value) for name, value in conninfo.conninfo_to_dict(dsn).items() if value is not None}
    user, password = given.pop("user", "postgres"), given.pop("password", "")
    place = {name: given[name] for name in ("host", "port", "sslmode") if name in given}
    secret = f":{quote(password, safe='')}" if password else ""
    return f"postgresql://{quote(user, safe='')}{secret}@/{database}?{urlencode(place)}"
