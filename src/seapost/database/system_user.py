"""The system user that runs the embedded server when we are root, for PostgreSQL refuses to run as root."""

from __future__ import annotations

import fcntl
import os
import pwd
import subprocess
import tempfile
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from seapost.model.errors import UnsupportedDatabase

SYSTEM_USER: Final = "embedded_postgres"
USER_TRIES_MAX: Final = 20
USER_PAUSE_SECONDS: Final = 0.1


@dataclass(frozen=True, slots=True)
class SystemUser:
    """Who runs the server when we are root; `initdb` needs a user with a name."""

    name: str
    user_id: int
    group_id: int


def wheel_user() -> SystemUser:
    """The system user that the wheel names, made when it does not exist yet.

    One process at a time makes it: of several `useradd` that run at once, more than one can succeed, each with an id
    of its own, and only the last id stays. Another program may still be in the way for a moment.
    """
    failure: Exception | None = None
    for _ in range(USER_TRIES_MAX):
        try:
            with _turn_to_make_users():
                entry = _find_or_make_user()
        except (OSError, subprocess.CalledProcessError) as error:
            failure = error
            threading.Event().wait(USER_PAUSE_SECONDS)
        else:
            return SystemUser(entry.pw_name, entry.pw_uid, entry.pw_gid)
    raise UnsupportedDatabase(
        f"PostgreSQL does not run as root and the system user {SYSTEM_USER} could not be made; "
        "make it, or run as another user."
    ) from failure


@contextmanager
def _turn_to_make_users() -> Generator[None]:
    """Hold a lock of the whole machine; it is on a folder that exists everywhere, so nothing is left behind."""
    folder = os.open(tempfile.gettempdir(), os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _find_or_make_user() -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(SYSTEM_USER)
    except KeyError:
        subprocess.run(["useradd", "--system", SYSTEM_USER], check=True, capture_output=True)  # noqa: S603, S607 - fixed command, its folder differs
        return pwd.getpwnam(SYSTEM_USER)
