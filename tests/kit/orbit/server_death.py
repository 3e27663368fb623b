"""Killing a PostgreSQL server with everything that belongs to it, so that what was only in its memory is gone."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from seapost.database.embedded import EmbeddedServer
from tests.kit.eventually import eventually

_SOCKET_LINE: Final = 4
"""Line of `postmaster.pid`, from 0, with the folder of the sockets."""
_PARENT_FIELD: Final = 1
"""Place of the parent's id in `/proc/<id>/stat`, after the name in parentheses."""


def family_of(server: EmbeddedServer) -> list[int]:
    """Process ids of the postmaster and its children, so that they can be killed at once later."""
    postmaster = server.process_id
    assert postmaster is not None
    return [postmaster, *_children(postmaster)]


def kill_server(server: EmbeddedServer, known: Sequence[int] = ()) -> None:
    """Kill the postmaster and all its children with SIGKILL and return when none of them is left.

    Those that are `known` die first and at once; looking for the others takes some milliseconds, in which they work.
    """
    for process_id in known:
        os.kill(process_id, signal.SIGKILL)
    postmaster = server.process_id
    assert postmaster is not None
    os.kill(postmaster, signal.SIGSTOP)  # it starts no child while they are counted
    family = family_of(server)
    for process_id in family:
        os.kill(process_id, signal.SIGKILL)
    eventually(lambda: not any(_alive(process_id) for process_id in [*known, *family]), what="the end of the server")
    # where nobody waits for orphans, the dead postmaster keeps its id, and would be taken for a running server
    pid_file = server.data_directory / "postmaster.pid"
    sockets = Path(pid_file.read_text().splitlines()[_SOCKET_LINE])
    for path in [pid_file, *sockets.glob(".s.PGSQL.*")]:
        path.unlink()


def _children(parent: int) -> list[int]:
    return [int(path.name) for path in Path("/proc").glob("[0-9]*") if _parent_of(path) == parent]


def _parent_of(process: Path) -> int | None:
    try:
        fields = (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return int(fields[_PARENT_FIELD])


def _alive(process_id: int) -> bool:
    """Whether the process still runs; one that ended but was not waited for yet does not."""
    try:
        state = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in {"Z", "X"}
