"""The protocol of a measured system, and what its process says. Imports nothing but the standard library.

Every time is `time.monotonic()`, which processes of one machine share.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

PAYLOAD_BYTES: Final = 1_024
IDLE_SECONDS: Final = 1.5
QUIET_SECONDS: Final = 0.05
SHARED_LOOK_SECONDS: Final = 0.02
LOOK_SECONDS: Final = 0.002
SETTLE_SECONDS_MAX: Final = 30.0


@dataclass(frozen=True, slots=True)
class Drained:
    """One drain.

    Attributes:
        handled: jobs whose handler ran to its end in this process.
        first: when the first one reached its handler.
        last: when the last one was recorded as done.
    """

    handled: int
    first: float
    last: float


class System(Protocol):
    """One system in its own process, on a database of its own."""

    settings: str
    """What was chosen beyond the defaults, in words for the report."""

    def versions(self) -> dict[str, str]:
        """Versions of the packages that do the work."""
        ...

    async def setup(self, dsn: str, *, install: bool) -> None:
        """Connect, and make the schema when `install`: several processes may share one database."""
        ...

    async def append(self, count: int, batch: int) -> float:
        """Append so many jobs of `PAYLOAD_BYTES`, `batch` per transaction; the seconds that it took."""
        ...

    async def drain(self, count: int, *, shared: bool) -> Drained:
        """Work until `count` jobs are done; `shared`: with other processes, until nothing came for a while."""
        ...

    async def latency(self, count: int, per_second: float) -> list[float]:
        """Append one job at a time at this rate to a waiting worker; milliseconds from that call to the handler."""
        ...

    async def clear(self) -> None:
        """Take away what waits; never measured."""
        ...

    async def close(self) -> None:
        """Give everything back."""
        ...


@dataclass(slots=True)
class Handler:
    """What every system's handler does: read the payload as JSON, count, and note when it came."""

    handled: int = 0
    first: float = 0.0
    last: float = 0.0
    arrived: dict[int, float] = field(default_factory=dict[int, float])

    def reset(self) -> None:
        """Start a new measurement."""
        self.handled, self.first, self.last = 0, 0.0, 0.0
        self.arrived.clear()

    def text(self, payload: str | bytes) -> None:
        """Handle a payload in JSON."""
        self.value(json.loads(payload))

    def value(self, payload: dict[str, object]) -> None:
        """Handle a payload that the system has read already."""
        now = time.monotonic()
        if not self.handled:
            self.first = now
        self.handled += 1
        self.last = now
        number = payload["number"]
        if isinstance(number, int) and number < 0:
            self.arrived[number] = now

    async def until(self, count: int, *, shared: bool) -> None:
        """Return when `count` jobs were handled, or none came for a while when others work too."""
        seen, since = -1, time.monotonic()
        while self.handled < count:
            if self.handled != seen:
                seen, since = self.handled, time.monotonic()
            elif shared and time.monotonic() - since > (QUIET_SECONDS if self.handled else IDLE_SECONDS):
                return
            elif time.monotonic() - since > SETTLE_SECONDS_MAX:
                message = f"stopped at {self.handled} of {count} jobs"
                raise TimeoutError(message)
            await asyncio.sleep(LOOK_SECONDS)

    async def drained(self, left: Callable[[], Awaitable[int]], *, shared: bool) -> Drained:
        """The drain of a worker that still runs; it ends when the database has nothing left to do."""
        deadline = time.monotonic() + SETTLE_SECONDS_MAX
        while await left():
            if time.monotonic() > deadline:
                message = "handled jobs were not recorded as done"
                raise TimeoutError(message)
            await asyncio.sleep(SHARED_LOOK_SECONDS if shared else LOOK_SECONDS)
        return Drained(self.handled, self.first, time.monotonic())

    async def paced(self, count: int, per_second: float, append: Callable[[int], Awaitable[object]]) -> list[float]:
        """Call `append` with -1, -2, … at a steady rate; milliseconds from each call to its handler."""
        called: dict[int, float] = {}
        start = time.monotonic()
        for place in range(1, count + 1):
            await asyncio.sleep(max(0.0, start + place / per_second - time.monotonic()))
            called[-place] = time.monotonic()
            _ = await append(-place)
        deadline = time.monotonic() + SETTLE_SECONDS_MAX
        while len(self.arrived) < count and time.monotonic() < deadline:  # noqa: ASYNC110 - measured, not told
            await asyncio.sleep(LOOK_SECONDS)
        return [(self.arrived[number] - moment) * 1_000 for number, moment in called.items() if number in self.arrived]


def payload(number: int) -> dict[str, object]:
    """A payload whose JSON has about `PAYLOAD_BYTES`."""
    empty = len(json.dumps({"number": number, "filler": ""}))
    return {"number": number, "filler": "x" * (PAYLOAD_BYTES - empty)}


def payload_text(number: int) -> str:
    """The same as JSON."""
    return json.dumps(payload(number))
