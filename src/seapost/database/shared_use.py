"""Who uses the embedded server: locks on two folders that the operating system gives back when a process ends.

Authority: the locks. A shared one on the data directory says "this process uses it"; whoever can make it exclusive is
alone. An exclusive one on the folder above is held while somebody starts or leaves, so that a server is never started
twice and never stopped under a process that has just found it running. Nothing is written, so nothing is left behind.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path


class SharedUse:
    """The use that this process makes of one data directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._handle: int | None = None

    @property
    def joined(self) -> bool:
        """Whether this process uses the directory."""
        return self._handle is not None

    @contextmanager
    def turn(self) -> Generator[None]:
        """Let one process at a time start or leave."""
        folder = os.open(self._directory.parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)

    def join(self) -> None:
        """Say that this process uses the directory."""
        if self._handle is None:
            self._handle = os.open(self._directory, os.O_RDONLY)
            fcntl.flock(self._handle, fcntl.LOCK_SH)

    def is_alone(self) -> bool:
        """Whether nobody else uses it; ask in a `turn`, and leave when the answer is no."""
        if self._handle is None:
            return False
        with suppress(BlockingIOError):
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        return False

    def leave(self) -> None:
        """Say that this process does not use it any more."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
