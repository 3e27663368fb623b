"""`seapost` and `orbit` as their users run them: real processes, with nothing of this one's environment in the way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self

from tests.kit.eventually import eventually

PROGRAM: Final = Path(sys.executable).with_name("seapost")
ORBIT: Final = Path(sys.executable).with_name("orbit")
SECONDS_MAX: Final = 60.0


@dataclass(frozen=True, slots=True)
class Finished:
    """What a command left behind."""

    code: int
    stdout: str
    stderr: str

    @property
    def document(self) -> Any:  # noqa: ANN401 - JSON is what the command made of it
        """Standard output as the one JSON document that it must be."""
        return json.loads(self.stdout)


def environment(changes: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a command: that of this process without any setting of ours."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SEAPOST_", "ORBIT_", "PG"))}
    return {**kept, "PYTHONUNBUFFERED": "1", "COLUMNS": "200", **(changes or {})}


def seapost(*arguments: str, folder: Path, env: Mapping[str, str] | None = None, stdin: str = "") -> Finished:
    """Run one command of `seapost` to its end."""
    return finished(PROGRAM, arguments, folder=folder, env=env, stdin=stdin)


def orbit(*arguments: str, folder: Path, env: Mapping[str, str] | None = None) -> Finished:
    """Run one command of `orbit` to its end."""
    return finished(ORBIT, arguments, folder=folder, env=env)


def finished(
    program: Path, arguments: Sequence[str], *, folder: Path, env: Mapping[str, str] | None, stdin: str = ""
) -> Finished:
    """Run one command of a program to its end."""
    done = subprocess.run(
        [program, *arguments],
        cwd=folder,
        env=environment(env),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    return Finished(done.returncode, done.stdout, done.stderr)


class Running:
    """A command that goes on; its lines are read as they come, and it never outlives the block."""

    def __init__(
        self, *arguments: str, folder: Path, env: Mapping[str, str] | None = None, program: Path = PROGRAM
    ) -> None:
        self._process = subprocess.Popen(
            [program, *arguments],
            cwd=folder,
            env=environment(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.stdout: list[str] = []
        self.stderr: list[str] = []
        self._readers = [
            threading.Thread(target=self._read, args=(self._process.stdout, self.stdout), daemon=True),
            threading.Thread(target=self._read, args=(self._process.stderr, self.stderr), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        _ = self._process.wait()
        for reader in self._readers:
            reader.join()
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()

    @property
    def process_id(self) -> int:
        """Process id of the command."""
        return self._process.pid

    def signal(self, number: signal.Signals) -> None:
        """Send one signal."""
        self._process.send_signal(number)

    def finish(self) -> Finished:
        """Wait for the end."""
        code = self._process.wait(SECONDS_MAX)
        for reader in self._readers:
            reader.join()
        return Finished(code, "".join(self.stdout), "".join(self.stderr))

    def logged(self, event: str) -> dict[str, Any]:
        """Wait for the first log record with this `event`; fails when the command ends without it."""

        def look() -> dict[str, Any] | None:
            for line in list(self.stderr):
                if line.startswith("{") and (record := json.loads(line))["event"] == event:
                    return record
            if self._process.poll() is not None:
                raise AssertionError(f"ended with {self._process.returncode} before {event}: {''.join(self.stderr)}")
            return None

        record = eventually(look, what=f"the log record {event}")
        assert record is not None
        return record

    def printed(self, test: Callable[[str], bool]) -> str:
        """Wait for the first line of standard output that passes the test."""
        line = eventually(lambda: next((line for line in list(self.stdout) if test(line)), None), what="a line")
        assert line is not None
        return line

    @staticmethod
    def _read(stream: IO[str], lines: list[str]) -> None:
        """Keep each line as it comes; the list is looked at meanwhile."""
        for line in stream:
            lines += [line]
