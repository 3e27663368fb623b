"""The scenario, and what a system must be able to do for it. Imports nothing but the standard library.

Worker A claims a job and stalls. Its claim is lost in the way in which this system loses claims, and worker B claims
the job. Then A, still alive, reports success; then B fails. Each report is made as a worker of that system makes it,
and after each the stored state is read.
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Final, Literal, Protocol

Worker = Literal["A", "B"]
TEXT_MAX: Final = 300
GONE: Final = "no row"


class Scenario(Protocol):
    """One system on an empty database of its own; one job and two workers.

    Attributes:
        packages: the distributions whose versions count.
        calls: what is called, in the system's own words.
    """

    packages: tuple[str, ...]
    calls: str

    async def open(self, dsn: str) -> None:
        """Connect and install the schema."""
        ...

    async def append(self) -> None:
        """Append the job."""
        ...

    async def claim(self, worker: Worker) -> None:
        """Claim it as a worker; raise LookupError when there is nothing to claim."""
        ...

    async def lose(self) -> None:
        """Let worker A's claim be lost."""
        ...

    async def succeed(self, worker: Worker) -> object:
        """Report success as a worker; what the call answers."""
        ...

    async def fail(self, worker: Worker) -> object:
        """Report a failure that may be tried again; what the call answers."""
        ...

    async def state(self) -> str:
        """The stored state of the job: everything that decides what happens to it next, no time of day."""
        ...

    async def close(self) -> None:
        """Give everything back."""
        ...


@dataclass(frozen=True, slots=True)
class Report:
    """What a worker said came to.

    Attributes:
        answer: what the call returned or raised.
        before: the stored state before it.
        after: the stored state after it.
    """

    answer: str
    before: str
    after: str

    @property
    def believed(self) -> bool:
        """Whether it changed what is stored."""
        return self.before != self.after


@dataclass(frozen=True, slots=True)
class Observation:
    """One system: what A's stale success and then B's failure came to."""

    calls: str
    stale: Report
    owner: Report


async def observe(scenario: Scenario, dsn: str) -> Observation:
    """Play the scenario."""
    await scenario.open(dsn)
    try:
        await scenario.append()
        await scenario.claim("A")
        await scenario.lose()
        await scenario.claim("B")
        stale = await _report(scenario, scenario.succeed("A"))
        owner = await _report(scenario, scenario.fail("B"))
        return Observation(scenario.calls, stale, owner)
    finally:
        await scenario.close()


async def _report(scenario: Scenario, call: Awaitable[object]) -> Report:
    before = await scenario.state()
    try:
        answer = repr(await call)
    except Exception as error:  # noqa: BLE001 - whatever a system raises is its answer
        answer = ": ".join([type(error).__name__, *_lines(error), *_lines(error.__cause__)])
    return Report(answer[:TEXT_MAX], before, await scenario.state())


def _lines(error: BaseException | None) -> list[str]:
    """The first line of what an error says."""
    return [] if error is None else str(error).strip().splitlines()[:1]
