"""A system's process, seen from the one that measures: requests and answers as lines of JSON."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import tempfile
import time
from contextlib import suppress
from types import TracebackType
from typing import IO, Any, Final, Self

from benchmarks.entrants import ROOT, Entrant

ANSWER_SECONDS_MAX: Final = 300.0
END_SECONDS_MAX: Final = 20.0
LOG_BYTES_MAX: Final = 2_000
READ_BYTES: Final = 1 << 16


class SystemFailed(Exception):
    """A system's process ended, did not answer in time, or answered with an error."""


class Hosted:
    """One process of one system, on a database that exists."""

    def __init__(self, entrant: Entrant) -> None:
        self.entrant = entrant
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self._process = subprocess.Popen(
            entrant.command(),
            cwd=ROOT,
            env=entrant.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )
        self._received = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def call(self, name: str, **arguments: object) -> Any:  # noqa: ANN401 - each call has its own result
        """One request and its answer."""
        self.ask(name, **arguments)
        return self.answer(name)

    def ask(self, name: str, **arguments: object) -> None:
        """Send a request; several processes can be asked before the first one answers."""
        assert self._process.stdin is not None  # noqa: S101 - a pipe was asked for
        try:
            _ = self._process.stdin.write(json.dumps({"call": name, **arguments}).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise self._failed(f"{name}: the process has ended") from None

    def answer(self, name: str, seconds_max: float = ANSWER_SECONDS_MAX) -> Any:  # noqa: ANN401 - as `call`
        """The answer to the oldest request that has none."""
        deadline = time.monotonic() + seconds_max
        while (end := self._received.find(b"\n")) < 0:
            self._receive(name, deadline)
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        answer = json.loads(line)
        if "error" in answer:
            raise self._failed(f"{name}: {answer['error']}")
        return answer["result"]

    def close(self) -> None:
        """End the process: its standard input first, then the process itself."""
        assert self._process.stdin is not None  # noqa: S101 - a pipe was asked for
        assert self._process.stdout is not None  # noqa: S101 - a pipe was asked for
        with suppress(OSError):  # it may have ended already
            self._process.stdin.close()
        try:
            _ = self._process.wait(END_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            _ = self._process.wait()
        self._process.stdout.close()
        self._log.close()

    def _receive(self, name: str, deadline: float) -> None:
        stream = self._process.stdout
        assert stream is not None  # noqa: S101 - a pipe was asked for
        with selectors.DefaultSelector() as selector:
            _ = selector.register(stream, selectors.EVENT_READ)
            if not selector.select(max(0.0, deadline - time.monotonic())):
                raise self._failed(f"{name}: no answer in time")
        data = os.read(stream.fileno(), READ_BYTES)
        if not data:
            raise self._failed(f"{name}: the process has ended")
        self._received += data

    def _failed(self, text: str) -> SystemFailed:
        _ = self._log.seek(0)
        log = self._log.read()[-LOG_BYTES_MAX:].decode(errors="replace").strip()
        return SystemFailed(f"{self.entrant.name}: {text}" + (f"\n{log}" if log else ""))
