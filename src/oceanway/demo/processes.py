"""The processes of a run: started, killed, started again, and ended with the run, whatever happens.

The workers are forked from one program that has imported everything once (`oceanway.cli.nursery`), because starting
thirteen of them one by one would take longer than settling the day. Each is a process of its own all the same, with
its own session, connections and keys, and a SIGKILL ends it like any other.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Final

from seapost.model.errors import SeapostError

if TYPE_CHECKING:
    from pathlib import Path

LOG_LINES_SHOWN: Final = 15
TROUBLE_LENGTH_MAX: Final = 600
CRASHES_MAX: Final = 3
START_SECONDS_MAX: Final = 60.0
REAP_SECONDS_MAX: Final = 10.0
STOP_SECONDS_MAX: Final = 25.0


class DemoFailed(SeapostError):
    """The demo could not be run to its end; nothing is proved either way."""


@dataclass(slots=True)
class Member:
    """One process of the run, through all its lives.

    Attributes:
        arguments: the command line of `oceanway`.
        process_id: of the present life; None when it has ended.
        code: what the last life ended with.
        kills: how often SIGKILL has ended it at our hand.
        crashes: how often it ended by itself and should not have.
        wanted: whether it is started again when it ends.
    """

    name: str
    arguments: Sequence[str]
    log: Path
    process_id: int | None = None
    code: int | None = None
    starts: int = 0
    kills: int = 0
    crashes: int = 0
    wanted: bool = True

    def last_lines(self) -> str:
        """The end of its log."""
        if not self.log.exists():
            return ""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-LOG_LINES_SHOWN:])


class Processes:
    """All workers of a run, and the program that forks them.

    Args:
        folder: where their logs go.
        environment: what all of them inherit.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self.members: dict[str, Member] = {}
        self._changed = threading.Condition()
        self._log = (folder / "nursery.log").open("ab")
        self._nursery = subprocess.Popen(
            [sys.executable, "-m", "oceanway.cli.nursery"],
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,
        )
        self._numbers: list[Member] = []
        self._listener = threading.Thread(target=self._listen, args=(self._nursery.stdout,), daemon=True)
        self._listener.start()

    @property
    def kills(self) -> int:
        """How many processes SIGKILL has ended at our hand."""
        return sum(member.kills for member in self.members.values())

    def start(self, name: str, *arguments: str) -> None:
        """Start a worker under a name of its own, and return when it lives.

        Raises:
            DemoFailed: the program that forks has died.
        """
        member = Member(name, arguments, self._folder / f"{name}.log")
        self.members[name] = member
        self._launch(member)

    def kill(self, name: str) -> bool:
        """End a worker with SIGKILL and start it again; return whether that is what ended it."""
        member = self.members[name]
        with self._changed:
            process_id = member.process_id
            if process_id is None:
                return False
            os.kill(process_id, signal.SIGKILL)
            if not self._changed.wait_for(lambda: member.process_id != process_id, REAP_SECONDS_MAX):
                raise DemoFailed(f"{name} outlives SIGKILL")
            if member.code != -signal.SIGKILL:
                return False
            member.kills += 1
        self._launch(member)
        return True

    def tend(self) -> None:
        """Start again what ended by itself.

        Raises:
            DemoFailed: a process does not stay up; the message holds the end of its log.
        """
        for member in self.members.values():
            if member.process_id is not None or not member.wanted:
                continue
            member.crashes += 1
            if member.crashes > CRASHES_MAX:
                message = f"{member.name} ended with exit code {member.code}; the end of its log:"
                raise DemoFailed(f"{message}\n{member.last_lines()}")
            self._launch(member)

    def troubles(self) -> str:
        """The last warning or error of each worker, for whoever looks for what holds the run up."""
        found: list[str] = []
        for member in self.members.values():
            log = member.log.read_text(encoding="utf-8", errors="replace") if member.log.exists() else ""
            lines = [line for line in log.splitlines() if '"level": "warning"' in line or '"level": "error"' in line]
            found += [f"{member.name}: {line[:TROUBLE_LENGTH_MAX]}" for line in lines[-1:]]
        return "\n".join(found)

    def end(self, names: Sequence[str]) -> dict[str, int]:
        """Ask workers to end, wait, and kill who does not; their exit codes."""
        ending = [self.members[name] for name in names]
        with self._changed:
            for member in ending:
                member.wanted = False
                if member.process_id is not None:
                    os.kill(member.process_id, signal.SIGTERM)
            deadline = time.monotonic() + STOP_SECONDS_MAX
            for member in ending:
                if not self._ended(member, deadline - time.monotonic()) and member.process_id is not None:
                    os.kill(member.process_id, signal.SIGKILL)
                    _ = self._ended(member, REAP_SECONDS_MAX)
        return {member.name: -1 if member.code is None else member.code for member in ending}

    def close(self) -> None:
        """End everything at once: the way out."""
        for member in self.members.values():
            member.wanted = False
        if self._nursery.stdin is not None:
            self._nursery.stdin.close()
        try:
            _ = self._nursery.wait(REAP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._nursery.kill()
            _ = self._nursery.wait()
        self._listener.join(REAP_SECONDS_MAX)
        if self._nursery.stdout is not None:
            self._nursery.stdout.close()
        self._log.close()

    def _ended(self, member: Member, seconds: float) -> bool:
        return self._changed.wait_for(lambda: member.process_id is None, max(0.0, seconds))

    def _launch(self, member: Member) -> None:
        """Order one life of a worker and wait for its process id."""
        with self._changed:
            self._numbers.append(member)
            order = {"number": len(self._numbers), "arguments": list(member.arguments), "log": str(member.log)}
            member.starts += 1
            member.code = None
            try:
                assert self._nursery.stdin is not None  # noqa: S101 - it is a pipe
                _ = self._nursery.stdin.write(json.dumps(order).encode() + b"\n")
                self._nursery.stdin.flush()
            except OSError:
                raise DemoFailed(f"the workers cannot be started:\n{self._nursery_log()}") from None
            _ = self._changed.wait_for(lambda: _began(member) or self._nursery.poll() is not None, START_SECONDS_MAX)
            if not _began(member):
                raise DemoFailed(f"{member.name} cannot be started:\n{self._nursery_log()}")

    def _nursery_log(self) -> str:
        lines = (self._folder / "nursery.log").read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-LOG_LINES_SHOWN:])

    def _listen(self, reports: IO[bytes]) -> None:
        for line in reports:
            report: dict[str, Any] = json.loads(line)
            with self._changed:
                member = self._numbers[int(report["number"]) - 1]
                if report["state"] == "started":
                    member.process_id = report["code"]
                else:
                    member.process_id, member.code = None, report["code"]
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()


def _began(member: Member) -> bool:
    """Whether the life that was ordered last has begun; a short one may have ended already."""
    return member.process_id is not None or member.code is not None
