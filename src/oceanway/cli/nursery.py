"""Forks the processes of an installation: imports happen once, so that a start takes some milliseconds.

Reads one line of JSON for each process to start, `{"number": n, "arguments": [...], "log": "..."}`; the arguments are
a command line of `oceanway`. Reports `{"number": n, "state": "started" | "ended", "code": ...}`: the process id of one
that started, the exit code of one that ended, below 0 the signal that ended it. Each process is its own: it shares no
connection, no thread and no key with another one. When the input ends, whoever is left is killed.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NoReturn

from oceanway.cli import dispatching, serving, working
from oceanway.cli.composition import CONSUMERS, owner_tree, receipts, release
from oceanway.cli.main import run
from oceanway.contracts.base import Contract
from oceanway.installation.layout import DATABASE_OF

if TYPE_CHECKING:
    from types import FrameType

BYTES_READ_MAX: Final = 65_536
LATER: Final = (
    "oceanway.billing.catch_up.worker",
    "oceanway.billing.finalization.worker",
    "oceanway.metering.worker",
    "oceanway.cli.health",
    "seapost.server.receiver",
    *(module for module, _ in CONSUMERS.values()),
)
"""What the processes would import when they start."""


class Nursery:
    """The processes started so far, by process id."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._woken, self._waker = os.pipe()
        os.set_blocking(self._waker, False)

    def run(self) -> None:
        """Serve until the input ends."""
        _ = signal.signal(signal.SIGCHLD, _stand_there)
        for number in (signal.SIGINT, signal.SIGTERM):  # whoever started us ends our input, which is enough
            _ = signal.signal(number, signal.SIG_IGN)
        _ = signal.set_wakeup_fd(self._waker)
        rest = b""
        while True:
            ready, _, _ = select.select([0, self._woken], [], [])
            if self._woken in ready:
                _ = os.read(self._woken, BYTES_READ_MAX)
                self._look()
            if 0 in ready:
                read = os.read(0, BYTES_READ_MAX)
                if not read:
                    break
                *lines, rest = (rest + read).split(b"\n")
                for line in lines:
                    self._start(json.loads(line))
        for process_id in self._numbers:
            os.kill(process_id, signal.SIGKILL)

    def _start(self, order: dict[str, Any]) -> None:
        process_id = os.fork()
        if process_id == 0:
            _become(order["arguments"], order["log"])
        self._numbers[process_id] = order["number"]
        _tell(number=order["number"], state="started", code=process_id)

    def _look(self) -> None:
        """Report every end since the last look."""
        while self._numbers:
            process_id, status = os.waitpid(-1, os.WNOHANG)
            if process_id == 0:
                return
            number = self._numbers.pop(process_id)
            _tell(number=number, state="ended", code=os.waitstatus_to_exitcode(status))


def _stand_there(_number: int, _frame: FrameType | None) -> None:
    """A handler has to be there for the descriptor to be woken."""


def _tell(**report: object) -> None:
    _ = os.write(1, json.dumps(report).encode() + b"\n")


def _become(arguments: list[str], log: str) -> NoReturn:
    """Be the ordered process, which leads a session of its own; never returns."""
    code = 1
    try:
        _ = signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM):
            _ = signal.signal(number, signal.SIG_DFL)
        _ = os.setsid()
        written = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((nothing, 0), (written, 1), (written, 2)):
            _ = os.dup2(source, target)
        code = run(arguments)
        _ = sys.stderr.flush()
    finally:
        os._exit(code)


def _prepare() -> None:
    """Load everything once, and make nothing that a fork would share: no thread, no connection, no random state."""
    _ = (release(), receipts(), dispatching, serving, working)
    for owner in DATABASE_OF:
        _ = owner_tree(owner)
    for module in LATER:
        _ = import_module(module)
    for contract in _below(Contract):
        _ = contract.model_rebuild()  # or each process would complete for itself what it meets first
    _ = gc.collect()
    gc.freeze()


def _below(kind: type[Contract]) -> set[type[Contract]]:
    return {found for one in kind.__subclasses__() for found in (one, *_below(one))}


if __name__ == "__main__":
    _prepare()
    Nursery().run()
