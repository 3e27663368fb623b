"""The shape of the machine and the versions of what ran, without names or places."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any, Final

import psycopg

from seapost.telemetry.metrics import release

SERVER_SETTINGS: Final = (
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "wal_sync_method",
    "shared_buffers",
    "max_wal_size",
    "max_connections",
    "jit",
)
KIBIBYTES: Final = 1_048_576


def shape() -> dict[str, str]:
    """Cores, memory, operating system and processor family."""
    return {
        "cores": str(os.cpu_count() or 0),
        "memory": _memory(),
        "system": f"{platform.system()} on {platform.machine()}",
        "load before the run": f"{os.getloadavg()[0]:.1f}",
        "python": platform.python_version(),
        "seapost": release(),
    }


def server(dsn: str) -> dict[str, str]:
    """PostgreSQL's version and the settings that decide a measurement."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        found: dict[str, str] = {"postgresql": _one(connection, "server_version")}
        return found | {name: _one(connection, name) for name in SERVER_SETTINGS}


def _one(connection: psycopg.Connection[Any], name: str) -> str:
    row = connection.execute("select current_setting(%s)", (name,)).fetchone()
    return "" if row is None else str(row[0])


def _memory() -> str:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return "unknown"
    total = next((int(line.split()[1]) for line in lines if line.startswith("MemTotal:")), 0)
    return f"{round(total / KIBIBYTES)} GiB"
