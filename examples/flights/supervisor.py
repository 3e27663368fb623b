"""The supervisor: starts the processes, starts again what died, and counts what it killed itself.

A kill counts only when the operating system has confirmed it: the process was reaped, and SIGKILL was what ended it.
Every process leads a session of its own, so that Ctrl-C reaches the demo alone, which then ends the others in order.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from examples.flights.interrupts import held_back

REAP_SECONDS_MAX: Final = 10.0
STOP_SECONDS_MAX: Final = 15.0
CRASHES_MAX: Final = 5
LOG_LINES_SHOWN: Final = 30


class DemoFailed(Exception):
    """The demo could not be run to its end; the message says what to look at."""


@dataclass
class Worker:
    """One process that must run: its command, and the process that runs now.

    Attributes:
        restarts: whether it is started again when it ends; the producer ends by itself.
        crashes: ends that nobody here caused.
        killed: when SIGKILL ended it, in monotonic seconds.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    restarts: bool = True
    process: subprocess.Popen[bytes] | None = None
    is_stopped: bool = False
    crashes: int = 0
    starts: int = 0
    killed: list[float] = field(default_factory=list[float])

    @property
    def is_running(self) -> bool:
        """Whether the process exists and has not ended."""
        return self.process is not None and self.process.poll() is None


class Supervisor:
    """Args: folder: where the processes write their logs; environment: what all of them inherit."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._environment = dict(environment)
        self.workers: dict[str, Worker] = {}

    def start(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], *, restarts: bool = True
    ) -> Worker:
        """Start a process under a name of its own."""
        worker = Worker(name, command, environment, self._folder / f"{name}.log", restarts=restarts)
        self.workers[name] = worker
        self._launch(worker)
        return worker

    @property
    def kills(self) -> int:
        """How many processes SIGKILL has ended at our hand."""
        return sum(len(worker.killed) for worker in self.workers.values())

    @property
    def crashes(self) -> int:
        """How many processes ended by themselves and should not have."""
        return sum(worker.crashes for worker in self.workers.values())

    def kill(self, name: str) -> bool:
        """End a process with SIGKILL; return whether that is what ended it."""
        worker = self.workers[name]
        process = worker.process
        if process is None or process.poll() is not None:
            return False
        process.kill()
        if process.wait(REAP_SECONDS_MAX) != -signal.SIGKILL:
            return False
        worker.killed.append(time.monotonic())
        self._launch(worker)
        return True

    def stop(self, name: str) -> None:
        """Halt a process with SIGSTOP where it stands, and return when it stands still."""
        worker = self.workers[name]
        if worker.process is not None and worker.is_running:
            worker.process.send_signal(signal.SIGSTOP)
            worker.is_stopped = True

    def wake(self, name: str) -> None:
        """Let a halted process go on as if nothing had happened."""
        worker = self.workers[name]
        if worker.process is not None and worker.is_running:
            worker.process.send_signal(signal.SIGCONT)
        worker.is_stopped = False

    def tend(self) -> None:
        """Start again what ended by itself; give up on a process that does so time and again.

        Raises:
            DemoFailed: a process does not stay up; the message holds the end of its log.
        """
        for worker in self.workers.values():
            if worker.process is None or worker.is_running or (not worker.restarts and worker.process.returncode == 0):
                continue
            worker.crashes += 1
            if worker.crashes > CRASHES_MAX or not worker.restarts:
                code = worker.process.returncode
                message = f"{worker.name} ended with exit code {code}; the end of its log:\n{_last_lines(worker.log)}"
                raise DemoFailed(message)
            self._launch(worker)

    def end(self, names: Sequence[str]) -> dict[str, int]:
        """Ask processes to end and wait for them; return their exit codes. Who does not end in time is killed."""
        ending = [(name, self.workers[name]) for name in names if self.workers[name].process is not None]
        for name, worker in ending:
            self.wake(name)
            if worker.process is not None and worker.is_running:
                worker.process.terminate()
        deadline = time.monotonic() + STOP_SECONDS_MAX
        codes: dict[str, int] = {}
        for name, worker in ending:
            process = worker.process
            if process is None:
                continue
            try:
                codes[name] = process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                codes[name] = process.wait(REAP_SECONDS_MAX)
            worker.process = None
        return codes

    def close(self) -> None:
        """End everything at once; for the way out, whatever happened."""
        for worker in self.workers.values():
            if worker.process is not None and worker.is_running:
                worker.process.kill()
        for worker in self.workers.values():
            if worker.process is not None:
                _ = worker.process.wait(REAP_SECONDS_MAX)
                worker.process = None

    def _launch(self, worker: Worker) -> None:
        worker.starts += 1
        worker.is_stopped = False
        with worker.log.open("ab") as log, held_back():
            worker.process = subprocess.Popen(
                list(worker.command),
                env={**self._environment, **worker.environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )


class Patience:
    """A limit on waiting, and the short pause between two looks."""

    PAUSE_SECONDS: Final = 0.02

    def __init__(self, seconds_max: float) -> None:
        self._until = time.monotonic() + seconds_max
        self._pause = threading.Event()

    @property
    def is_over(self) -> bool:
        """Whether the limit has passed."""
        return time.monotonic() > self._until

    def pause(self) -> None:
        """Let the others have the processor before the next look."""
        _ = self._pause.wait(self.PAUSE_SECONDS)


def inherited_environment() -> dict[str, str]:
    """Our environment without what would configure Seapost or PostgreSQL behind the demo's back."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SEAPOST_", "PG"))}
    return kept | {"PYTHONUNBUFFERED": "1"}


def _last_lines(path: Path) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(lines[-LOG_LINES_SHOWN:])
