"""Writes what a database says into a history file, so that an operator can check the own data."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import psycopg

from orbit.store.history import history_lines

MODE: Final = 0o600


def export_history(connection: psycopg.Connection[Any], path: Path, *, namespace: str | None = None) -> int:
    """Write the durable facts of one namespace, or of all, to a new file; return the number of lines.

    Digests stand for snapshots; neither secrets nor results leave the database. The connection is for this alone.

    Raises:
        FileExistsError: the file is there already; a history is never overwritten.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, MODE)
    with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123 - a descriptor has no path
        count = 0
        for line in history_lines(connection, namespace=namespace):
            _ = file.write(line + "\n")
            count += 1
    return count
