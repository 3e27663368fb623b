"""Forks the processes that the fault tests kill: imports happen once, so that a start takes 20 ms and not a second.

Reads one line of JSON for each process to start, `{"number": n, "order": {...}}`, and reports each change of state as a
line, `{"number": n, "state": "started" | "stopped" | "continued" | "ended", "code": ...}`; a code below 0 is the signal
that ended the process. When its own input ends it kills whoever is left, so that nothing outlives the tests.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import traceback
from types import FrameType
from typing import Any

from tests.kit.orders import Order
from tests.kit.worker import work


class Nursery:
    """The processes started so far, by process id."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._woken, self._waker = os.pipe()
        os.set_blocking(self._waker, False)

    def run(self) -> None:
        """Serve until the input ends."""
        signal.signal(signal.SIGCHLD, _ignore)
        for number in (signal.SIGINT, signal.SIGTERM):  # an interrupted test run ends our input, which is enough
            signal.signal(number, signal.SIG_IGN)
        signal.set_wakeup_fd(self._waker)
        rest = b""
        while True:
            ready, _, _ = select.select([0, self._woken], [], [])
            if self._woken in ready:
                os.read(self._woken, 65_536)
                self._look()
            if 0 in ready:
                read = os.read(0, 65_536)
                if not read:
                    break
                *lines, rest = (rest + read).split(b"\n")
                for line in lines:
                    self._start(json.loads(line))
        for process_id in list(self._numbers):
            os.kill(process_id, signal.SIGKILL)

    def _start(self, document: dict[str, Any]) -> None:
        number = int(document["number"])
        process_id = os.fork()
        if process_id == 0:
            _play(Order.from_document(document["order"]))
        self._numbers[process_id] = number
        _tell(number=number, state="started", code=process_id)

    def _look(self) -> None:
        """Report every change since the last look."""
        while self._numbers:
            process_id, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
            if process_id == 0:
                return
            number = self._numbers[process_id]
            if os.WIFSTOPPED(status):
                _tell(number=number, state="stopped", code=0)
            elif os.WIFCONTINUED(status):
                _tell(number=number, state="continued", code=0)
            else:
                del self._numbers[process_id]
                _tell(number=number, state="ended", code=os.waitstatus_to_exitcode(status))


def _ignore(_number: int, _frame: FrameType | None) -> None:
    """A handler has to stand there for the descriptor to be woken."""


def _tell(**report: object) -> None:
    os.write(1, json.dumps(report).encode() + b"\n")


def _play(order: Order) -> None:
    """Become the ordered process; never returns."""
    code = 1
    with contextlib.suppress(BaseException):
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        log = os.open(order.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        try:
            code = work(order)
        except BaseException:  # noqa: BLE001 - the log is where a test looks for it
            traceback.print_exc()
        sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    Nursery().run()
