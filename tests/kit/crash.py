"""Crash points: places in the walk of a delivery at which a test lets a real process kill or stop itself.

They are laid around public seams by the program that is to die (`tests.kit.worker`); the product knows nothing of them.
Each point that is passed is written to the process's report file at once, which is how a test waits for it.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import Any, Final

from seapost.model.delivery import Claim
from seapost.model.outcome import Outcome
from seapost.store import delivery, inbox
from seapost.transport.protocol import Transport


class Point(StrEnum):
    """Where a process can end, in the order of the walk."""

    CLAIM_UNSENT = "claim unsent"
    CLAIM_COMMITTED = "claim committed"
    CALL_STARTED = "call started"
    RECEIVED = "received"
    RECEIPT_WRITTEN = "receipt written"
    EFFECT_WRITTEN = "effect written"
    EFFECT_COMMITTED = "effect committed"
    ANSWERED = "answered"
    SETTLE_UNSENT = "settle unsent"
    SETTLE_COMMITTED = "settle committed"


class Blow(StrEnum):
    """What the process does to itself there."""

    KILL = "kill"
    STOP = "stop"


_SIGNALS: Final = {Blow.KILL: signal.SIGKILL, Blow.STOP: signal.SIGSTOP}


@dataclass(frozen=True, slots=True)
class Trap:
    """The n-th time (from 1) the process comes by `point`, it gets `blow`."""

    point: Point
    nth: int = 1
    blow: Blow = Blow.KILL


class Points:
    """The points of one process."""

    def __init__(self, report: Path, trap: Trap | None = None) -> None:
        self._report = os.open(report, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._trap = trap
        self._passed: Counter[Point] = Counter()
        self._lock = Lock()

    def say(self, word: str) -> None:
        """Report something, in one write that survives the process."""
        os.write(self._report, f"{word}\n".encode())

    def reach(self, point: Point) -> None:
        """Report the point and spring the trap if it is laid here; after SIGSTOP this returns at SIGCONT."""
        with self._lock:
            self._passed[point] += 1
            nth = self._passed[point]
        if point is not Point.CLAIM_UNSENT:  # polling would fill the report with it
            self.say(point)
        if self._trap is not None and (self._trap.point, self._trap.nth) == (point, nth):
            os.kill(os.getpid(), _SIGNALS[self._trap.blow])

    def lay(self) -> None:
        """Put the points of the database's seams into this process's copy of the store."""
        self._around(delivery, "claim", Point.CLAIM_UNSENT, Point.CLAIM_COMMITTED, only_if_result=True)
        self._around(delivery, "acknowledge", Point.SETTLE_UNSENT, Point.SETTLE_COMMITTED)
        self._around(inbox, "receive_at_async", None, Point.RECEIPT_WRITTEN)
        receive = inbox.receive_at

        def receive_and_reach(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - as the original
            result = receive(*arguments, **named)
            self.reach(Point.RECEIPT_WRITTEN)
            return result

        _replace(inbox, "receive_at", receive_and_reach)

    def _around(
        self, module: ModuleType, name: str, before: Point | None, after: Point, *, only_if_result: bool = False
    ) -> None:
        original: Callable[..., Awaitable[Any]] = getattr(module, name)

        async def around(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - as the original
            if before is not None:
                self.reach(before)
            result = await original(*arguments, **named)
            if result or not only_if_result:
                self.reach(after)
            return result

        _replace(module, name, around)


def _replace(module: ModuleType, name: str, function: Callable[..., Any]) -> None:
    setattr(module, name, function)


class PointedTransport:
    """A transport with a point before and after each call."""

    def __init__(self, inner: Transport, points: Points) -> None:
        self._inner = inner
        self._points = points

    async def deliver(self, claims: Sequence[Claim], *, timeout_seconds: float) -> Sequence[Outcome]:
        """Pass the call on."""
        self._points.reach(Point.CALL_STARTED)
        outcomes = await self._inner.deliver(claims, timeout_seconds=timeout_seconds)
        self._points.reach(Point.ANSWERED)
        return outcomes

    async def aclose(self) -> None:
        """Close the real one."""
        await self._inner.aclose()
