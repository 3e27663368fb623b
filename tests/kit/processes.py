"""Starting, killing, stopping and waking real processes from a test, and waiting for what they report."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.kit.commands import environment
from tests.kit.eventually import eventually
from tests.kit.orders import Order
from tests.kit.tree import ROOT

LOG_LINES: Final = 15


class Nursery:
    """The program that forks; one for each test process."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.kit.nursery"],
            cwd=ROOT,
            env=environment({"TZ": "America/New_York"}),  # the process's zone must not matter (F19)
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._workers: dict[int, Worker] = {}
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def start(self, order: Order, folder: Path) -> Worker:
        """Fork one process; its files are called after it."""
        number = len(self._workers) + 1
        place = folder / f"{number}-{order.name}"
        order = replace(order, report=f"{place}.report", log=f"{place}.log")
        worker = Worker(order)
        self._workers[number] = worker
        assert self._process.stdin is not None
        self._process.stdin.write(f'{{"number": {number}, "order": {order.to_line()}}}\n')
        self._process.stdin.flush()
        eventually(lambda: worker.process_id or self._process.poll() is not None, what=f"the start of {order.name}")
        assert worker.process_id, "the nursery has died; its errors are above"
        return worker

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            report = json.loads(line)
            worker = self._workers[report["number"]]
            match report["state"]:
                case "started":
                    worker.process_id = report["code"]
                case "ended":
                    worker.code = report["code"]
                case state:
                    worker.is_stopped = state == "stopped"


class Worker:
    """One forked process.

    Attributes:
        code: how it ended, None while it lives; below 0 is the signal that ended it.
    """

    def __init__(self, order: Order) -> None:
        self.order = order
        self.process_id = 0
        self.code: int | None = None
        self.is_stopped = False

    @property
    def lives(self) -> bool:
        """Whether it has not ended."""
        return self.code is None

    @property
    def reports(self) -> list[str]:
        """What it has reported so far."""
        try:
            return Path(self.order.report).read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return []

    @property
    def log(self) -> str:
        """What it has logged so far."""
        try:
            return Path(self.order.log).read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""

    @property
    def owner(self) -> str:
        """The dispatcher's name for this start."""
        return next(line for line in self.reports if line.startswith("owner ")).removeprefix("owner ")

    def signal(self, number: signal.Signals) -> None:
        """Send one signal, if it lives."""
        if self.lives:
            os.kill(self.process_id, number)

    def kill(self) -> None:
        """End it at once; return when it is gone."""
        self.signal(signal.SIGKILL)
        self.await_end()

    def stop(self) -> None:
        """Freeze it; return when it is frozen."""
        self.signal(signal.SIGSTOP)
        self.await_stopped()

    def wake(self) -> None:
        """Let a frozen one go on."""
        self.signal(signal.SIGCONT)
        self._await(lambda: not self.is_stopped, "awake")

    def end(self) -> int:
        """Ask it to stop in order and wait; returns its exit code."""
        self.signal(signal.SIGTERM)
        return self.await_end()

    def await_end(self) -> int:
        """Wait until it is gone, by whatever cause."""
        self._await(lambda: False, "gone")
        assert self.code is not None
        return self.code

    def await_stopped(self) -> None:
        """Wait until it is frozen."""
        self._await(lambda: self.is_stopped, "frozen")
        assert self.is_stopped, f"ended instead of freezing: {self}"

    def await_report(self, word: str, *, count: int = 1) -> None:
        """Wait until it has reported the word so many times; fails when it ends before."""
        self._await(lambda: self.reports.count(word) >= count, word)
        assert self.reports.count(word) >= count, f"ended before {word!r}: {self}"

    def _await(self, question: Callable[[], bool], what: str) -> None:
        """Wait for an answer or for the end; on failure show what the process has said."""
        try:
            eventually(lambda: question() or not self.lives, what=what)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self}") from None

    def __str__(self) -> str:
        tail = "\n".join(self.log.splitlines()[-LOG_LINES:])
        return f"{self.order.part} {self.order.name} (code {self.code}, reports {self.reports[-5:]})\n{tail}\n"
