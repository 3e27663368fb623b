"""The processes of a run: started, killed, started again, and ended with the run, whatever happens."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from seapost.model.errors import SeapostError

LOG_LINES_SHOWN: Final = 15
CRASHES_MAX: Final = 3
STOP_SECONDS_MAX: Final = 12.0
REAP_SECONDS_MAX: Final = 10.0


class DemoFailed(SeapostError):
    """The demo could not be run to its end; nothing is proved either way."""


@dataclass(slots=True)
class Member:
    """One process of the run, through all its lives.

    Attributes:
        kills: how often SIGKILL has ended it at our hand.
        crashes: how often it ended by itself and should not have.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    process: subprocess.Popen[bytes] | None = None
    starts: int = 0
    kills: int = 0
    crashes: int = 0

    @property
    def is_running(self) -> bool:
        """Whether it lives."""
        return self.process is not None and self.process.poll() is None

    def last_lines(self) -> str:
        """The end of its log."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-LOG_LINES_SHOWN:])


@dataclass(slots=True)
class Processes:
    """All processes of a run.

    Args:
        folder: where their logs go; private, because secrets pass through their environment.
    """

    folder: Path
    members: dict[str, Member] = field(default_factory=dict[str, Member])
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def start(self, name: str, *arguments: str, environment: Mapping[str, str]) -> None:
        """Start this Python with arguments as a process."""
        command = [sys.executable, *arguments]
        inherited = {
            key: value for key, value in os.environ.items() if not key.startswith(("ORBIT_", "SEAPOST_", "PG"))
        }
        member = Member(name, command, inherited | dict(environment), self.folder / f"{name}.log")
        self.members[name] = member
        self._launch(member)

    def kill(self, name: str) -> bool:
        """End a process with SIGKILL and start it again; return whether the signal is what ended it."""
        member = self.members[name]
        with self._lock:  # or `tend` would meet the corpse, and start a second one
            if member.process is None or member.process.poll() is not None:
                return False
            member.process.kill()
            if member.process.wait(REAP_SECONDS_MAX) != -signal.SIGKILL:
                return False
            member.kills += 1
            self._launch(member)
            return True

    @property
    def kills(self) -> int:
        """How many processes SIGKILL has ended."""
        return sum(member.kills for member in self.members.values())

    def tend(self) -> None:
        """Start again what ended by itself.

        Raises:
            DemoFailed: a process does not stay up; the message holds the end of its log.
        """
        with self._lock:
            for member in self.members.values():
                if member.process is None or member.is_running:
                    continue
                member.crashes += 1
                if member.crashes > CRASHES_MAX:
                    raise DemoFailed(
                        f"{member.name} ended with exit code {member.process.returncode}; the end of its log:\n"
                        f"{member.last_lines()}"
                    )
                self._launch(member)

    def end(self, *names: str) -> None:
        """Ask processes to end, wait, and kill who does not."""
        ending = [self.members[name] for name in names if name in self.members]
        for member in ending:
            if member.is_running and member.process is not None:
                member.process.terminate()
        deadline = time.monotonic() + STOP_SECONDS_MAX
        for member in ending:
            if member.process is not None:
                try:
                    _ = member.process.wait(max(0.1, deadline - time.monotonic()))
                except subprocess.TimeoutExpired:
                    member.process.kill()
                    _ = member.process.wait(REAP_SECONDS_MAX)
                member.process = None

    def close(self) -> None:
        """End everything at once: the way out."""
        for member in self.members.values():
            if member.process is not None:
                member.process.kill()
        for member in self.members.values():
            if member.process is not None:
                _ = member.process.wait(REAP_SECONDS_MAX)
                member.process = None

    def _launch(self, member: Member) -> None:
        member.starts += 1
        with member.log.open("ab") as log:
            member.process = subprocess.Popen(  # noqa: S603 - our own modules
                list(member.command),
                env=dict(member.environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
