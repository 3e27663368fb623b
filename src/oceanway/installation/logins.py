"""A login role for each process, a member of exactly what the process needs, with a password of its own (GEN-07).

Passwords are made here, reach the server as SCRAM verifiers and stay in one file that only its user may read.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg import conninfo

from oceanway.installation import store
from oceanway.installation.layout import PROCESSES, Database, Kind, Process
from oceanway.installation.settings import password_file
from seapost.database.pool import check_dsn

if TYPE_CHECKING:
    from psycopg import Connection

PASSWORD_BYTES: Final = 32
MODE: Final = 0o600


def processes_of(database: Database) -> tuple[Process, ...]:
    """The processes that log in to a database."""
    return tuple(process for process in PROCESSES if process.database is database)


def ensure_logins(dsn: str, database: Database, folder: Path) -> list[str]:
    """Make the login roles of one database and let nobody else in; the roles that were made or got a new password.

    Args:
        dsn: as a superuser, or as whoever may create roles and grant those of the trees.
        folder: where the file with the passwords lies.
    """
    name = str(conninfo.conninfo_to_dict(check_dsn(dsn)).get("dbname", ""))
    passwords = _Passwords(password_file(folder))
    changed: list[str] = []
    with psycopg.connect(dsn, autocommit=True) as connection, connection.transaction():
        for process in processes_of(database):
            if _ensure_login(connection, process, name, passwords):
                changed.append(process.login)
            for role in process.roles:
                store.grant_role(connection, role, process.login)
            if process.kind in {Kind.WORK, Kind.DRIVE}:
                store.grant_registry(connection, process.login)
        store.confine(connection, name, [process.login for process in processes_of(database)])
        passwords.save()
    return changed


def _ensure_login(connection: Connection[Any], process: Process, database: str, passwords: _Passwords) -> bool:
    exists = store.login_role_exists(connection, process.login)
    if exists and passwords.knows(database, process.login):
        return False
    verifier = connection.pgconn.encrypt_password(
        passwords.make(database, process.login), process.login.encode(), b"scram-sha-256"
    ).decode()
    if exists:
        store.set_password(connection, process.login, verifier)
    else:
        store.create_login_role(connection, process.login, verifier)
    return True


class _Passwords:
    """The lines of one password file: `*:*:database:role:password`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self._changed = False

    def knows(self, database: str, role: str) -> bool:
        return any(line.startswith(_start(database, role)) for line in self._lines)

    def make(self, database: str, role: str) -> bytes:
        password = secrets.token_urlsafe(PASSWORD_BYTES)
        self._lines = [*_without(self._lines, _start(database, role)), _start(database, role) + password]
        self._changed = True
        return password.encode()

    def save(self) -> None:
        if not self._changed:
            return
        self._path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        new = self._path.with_suffix(".new")
        new.unlink(missing_ok=True)
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE), "w", encoding="utf-8") as file:
            _ = file.write("".join(f"{line}\n" for line in self._lines))
        _ = new.replace(self._path)


def _start(database: str, role: str) -> str:
    escaped = database.replace("\\", "\\\\").replace(":", "\\:")
    return f"*:*:{escaped}:{role}:"


def _without(lines: Iterable[str], start: str) -> list[str]:
    return [line for line in lines if not line.startswith(start)]
