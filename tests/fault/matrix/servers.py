"""The servers under the matrix, each started when the first round needs it, and two databases for each round."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from seapost.database.embedded import EmbeddedServer
from seapost.database.installer import GuardLevel
from tests.fault.matrix.stage import Beneath, Home, Homes
from tests.kit.database import DatabaseServer, TestDatabase, open_directory

OWN_SETTINGS: Final = {"max_connections": "80", "fsync": "off"}
"""What is written survives the death of the server, which is what a crash is here; that of the machine is not tried."""
SMALL_BYTES: Final = 256 * 1024 * 1024
SMALL_SETTINGS: Final = {"max_wal_size": "48MB", "min_wal_size": "32MB", "shared_buffers": "32MB"}


class Servers:
    """All servers of a run; entering it makes a folder, leaving it stops what was started.

    Args:
        shared: a server to use as the shared one; None: one of its own.
    """

    def __init__(self, shared: DatabaseServer | None = None) -> None:
        self._shared = shared
        self._servers: dict[Home, DatabaseServer] = {}
        self._stack = ExitStack()
        self._directory = Path()

    def __enter__(self) -> Self:
        self._directory = open_directory()
        self._stack.callback(shutil.rmtree, self._directory, ignore_errors=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @contextmanager
    def databases(self, homes: Homes) -> Generator[tuple[TestDatabase, TestDatabase, Beneath]]:
        """Two fresh databases where they are to lie, and the servers under them."""
        servers = [self._server(home) for home in homes]
        made = [server.create(GuardLevel.LEAN) for server in servers]
        try:
            yield made[0], made[1], (servers[0].embedded, servers[1].embedded)
        finally:
            for server, database in zip(servers, made, strict=True):
                if server.embedded is not None:
                    revive(server.embedded)
                server.drop(database)

    def _server(self, home: Home) -> DatabaseServer:
        if home not in self._servers:
            self._servers[home] = self._open(home)
        return self._servers[home]

    def _open(self, home: Home) -> DatabaseServer:
        if home is Home.SHARED and self._shared is not None:
            return self._shared
        folder = self._directory / home
        match home:
            case Home.SHARED:
                server = EmbeddedServer(folder, durable=False)
            case Home.OWN:
                server = EmbeddedServer(folder, settings=OWN_SETTINGS)
            case Home.SMALL:
                self._stack.enter_context(small_disk(folder))
                server = EmbeddedServer(folder / "data", settings=SMALL_SETTINGS)
        self._stack.enter_context(server)
        return self._stack.enter_context(DatabaseServer(server.dsn(), server))


def revive(server: EmbeddedServer) -> None:
    """Start a server again that has died by itself."""
    if server.process_id is None:
        server.restart(immediate=True)


# A disk that can be filled --------------------------------------------------------------------------------


@contextmanager
def small_disk(folder: Path) -> Generator[Path]:
    """Mount a small file system in memory at the folder.

    Raises:
        PermissionError: this machine does not let us mount; the text is what `mount` said.
    """
    folder.mkdir(mode=0o755, parents=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={SMALL_BYTES},mode=755", "tmpfs", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise PermissionError(f"mount cannot be run: {error}") from error
    if done.returncode != 0:
        raise PermissionError(done.stderr.strip() or f"mount ended with {done.returncode}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], capture_output=True, check=False)


@cache
def why_no_small_disk() -> str | None:
    """Why no small disk can be made here; None when it can."""
    directory = open_directory()
    try:
        with small_disk(directory / "disk"):
            return None
    except PermissionError as error:
        return f"no small file system can be mounted here ({error})"
    finally:
        shutil.rmtree(directory, ignore_errors=True)


class Ballast:
    """A file that leaves no room beside it on its disk."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "ballast"

    def fill(self) -> None:
        """Take all room that is left."""
        handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        block = bytes(64 * 1024)
        try:
            for size in (len(block), 4096, 1):
                self._write(handle, block[:size])
        finally:
            os.close(handle)

    def free(self) -> None:
        """Give the room back."""
        self._path.unlink(missing_ok=True)

    @staticmethod
    def _write(handle: int, block: bytes) -> None:
        try:
            while os.write(handle, block) == len(block):
                pass
        except OSError:  # full
            return
