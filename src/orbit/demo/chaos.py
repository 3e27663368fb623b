"""The chaos: a plan made from a seed, and the hand that carries it out.

All blows fall in the first seconds. A delivery that was leased to a killed process comes back when its lease of 30
seconds is over, and that cannot be made shorter, so the run ends soon after the last of these leases.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from psycopg import AsyncConnection

from orbit.demo.platform import KILLED, PAUSED, Platform
from orbit.demo.processes import Processes
from orbit.sdk import AsyncManagementClient

SERVER: Final = "server"
WORKERS: Final = ("worker-1", "worker-2")
BLOWS_SECONDS: Final = 13.0
PAUSE_AT: Final = 0.30
RESUME_AT: Final = 0.75
IN_FLIGHT_SECONDS_MAX: Final = 3.0
IN_FLIGHT_MIN: Final = 3
"""A blow that hits nothing proves nothing."""
LOOK_SECONDS: Final = 0.02

_FRESH: Final = """
select count(*) from orbit.event_deliveries
where subscription_id = %s and state = 'LEASED' and lease_expires_at > clock_timestamp() + interval '29.5 seconds'"""
"""Leases of the last half second: older ones may belong to a process that is dead."""


@dataclass(frozen=True, slots=True)
class Act:
    """One line of the plan: what happens to whom, so many seconds after the first flight."""

    at_seconds: float
    what: str
    target: str


@dataclass(frozen=True, slots=True)
class Incident:
    """What was done, when, to whom, and what it hit."""

    at_seconds: float
    what: str
    target: str
    effect: str


def make_plan(seed: int, *, kills: int, seconds: float = BLOWS_SECONDS) -> list[Act]:
    """Kill the one subscriber again and again, each worker once and the server once; pause and resume the other one.

    Without kills of the subscriber nobody is killed, and the run need not wait for any lease.
    """
    rng = random.Random(seed)
    victims = [KILLED.name] * kills + [*WORKERS, SERVER] if kills else []
    rng.shuffle(victims)
    slot = seconds / (len(victims) + 1)
    acts = [Act(slot * (place + 0.6 + rng.uniform(0.0, 0.8)), "SIGKILL", name) for place, name in enumerate(victims)]
    acts += [Act(seconds * PAUSE_AT, "pause", PAUSED.name), Act(seconds * RESUME_AT, "resume", PAUSED.name)]
    return sorted(acts, key=lambda act: act.at_seconds)


class Chaos:
    """Carries out a plan.

    Args:
        subscriptions: id by subscriber.
        observer: a session of its own, to see what a blow will hit.
    """

    def __init__(
        self,
        platform: Platform,
        processes: Processes,
        observer: AsyncConnection[Any],
        *,
        subscriptions: Mapping[str, str],
    ) -> None:
        self._platform = platform
        self._processes = processes
        self._observer = observer
        self._subscriptions = subscriptions
        self.incidents: list[Incident] = []

    async def carry_out(self, plan: list[Act]) -> None:
        """Do everything that is planned, each thing at its time."""
        loop = asyncio.get_running_loop()
        started = loop.time()

        def note(act: Act, effect: str) -> None:
            self.incidents.append(Incident(loop.time() - started, act.what, act.target, effect))

        for act in plan:
            await asyncio.sleep(max(0.0, started + act.at_seconds - loop.time()))
            match act.what:
                case "SIGKILL":
                    await self._kill(act, note)
                case _:
                    note(act, await self._switch(act.what))

    async def _kill(self, act: Act, note: Callable[[Act, str], None]) -> None:
        """Kill a process; the subscriber while deliveries are in its hands."""
        effect = ""
        if act.target == KILLED.name:
            effect = f"with {await self._in_flight()} deliveries in its hands"
        if await asyncio.to_thread(self._processes.kill, act.target):
            note(act, effect)

    async def _in_flight(self) -> int:
        """Wait a little until the subscriber holds fresh deliveries; return how many."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + IN_FLIGHT_SECONDS_MAX
        while True:
            row = await (await self._observer.execute(_FRESH, (self._subscriptions[KILLED.name],))).fetchone()
            fresh = 0 if row is None else int(row[0])
            if fresh >= IN_FLIGHT_MIN or loop.time() > deadline:
                return fresh
            await asyncio.sleep(LOOK_SECONDS)

    async def _switch(self, what: str) -> str:
        """Pause or resume, by the SDK, as an operator would."""
        async with AsyncManagementClient(self._platform.base_url, self._platform.tokens[PAUSED.name]) as client:
            subscription = await client.get_subscription(self._subscriptions[PAUSED.name])
            change = client.pause_subscription if what == "pause" else client.resume_subscription
            after = await change(
                self._subscriptions[PAUSED.name], expected_revision=subscription.revision, reason="the demo's operator"
            )
        return f"revision {after.revision}, {after.pending_count} pending"
