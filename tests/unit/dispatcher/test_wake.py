"""The sleep protocol: declare, claim once more, then wait in stages; the answer is always read."""

from __future__ import annotations

import asyncio
import random
import time

import psycopg
import pytest

from seapost.dispatcher.stopping import Stopping
from seapost.dispatcher.wake import Wake


class FakeListener:
    """A listening session whose answers a test sets."""

    def __init__(self) -> None:
        self.connected = True
        self.connections = 1
        self.answers: list[bool] = []
        self.declared = 0
        self.withdrawn = 0
        self.error: Exception | None = None

    async def declare(self, destination: str) -> bool:
        """Answer the next declaration; True when no answer was set."""
        del destination
        self.declared += 1
        if self.error is not None:
            raise self.error
        return self.answers.pop(0) if self.answers else True

    async def withdraw(self, destination: str) -> bool:
        """Count a withdrawal."""
        del destination
        self.withdrawn += 1
        return True


def _wake(listener: FakeListener | None, *polls: float, stopping: Stopping | None = None) -> Wake:
    return Wake(
        "billing",
        listener,
        poll_seconds=polls or (3_600.0,),
        stopping=stopping or Stopping(give_back_seconds=1.0, clock=time.monotonic),
        rng=random.Random(1),
    )


async def _waits(wake: Wake) -> asyncio.Task[None]:
    """A rest that has reached its wait."""
    task = asyncio.create_task(wake.rest())
    for _ in range(5):
        await asyncio.sleep(0)
    assert not task.done()
    return task


async def test_it_declares_and_asks_for_one_more_claim() -> None:
    """The first rest declares and returns at once: what committed before did not notify."""
    listener = FakeListener()
    wake = _wake(listener)
    await wake.rest()
    assert wake.declared
    waiting = await _waits(wake)
    wake.nudge()
    await waiting
    assert listener.declared == 1


async def test_a_refused_declaration_claims_again() -> None:
    """While an append looks at the declaration, the dispatcher does not sleep undeclared; it claims and declares."""
    listener = FakeListener()
    listener.answers = [False, False, True]
    wake = _wake(listener)
    for _ in range(3):
        await wake.rest()
    assert listener.declared == 3
    assert wake.declared


async def test_another_dispatcher_with_the_declaration_is_no_reason_to_spin() -> None:
    """Refused time and again, it waits in stages, and hears the notification that goes to everyone."""
    listener = FakeListener()
    listener.answers = [False] * 10
    wake = _wake(listener)
    await wake.rest()
    await wake.rest()
    waiting = await _waits(wake)
    wake.nudge()
    await waiting
    assert not wake.declared


async def test_a_notification_before_the_wait_is_not_forgotten() -> None:
    """A notification that arrives during the last claim ends the wait before it begins."""
    wake = _wake(FakeListener())
    await wake.rest()
    wake.nudge()
    await asyncio.wait_for(wake.rest(), 5)


async def test_it_polls_in_stages() -> None:
    """Without any notification the waits end by themselves, each at most as long as its stage."""
    wake = _wake(FakeListener(), 0.001, 0.002, 0.003)
    await wake.rest()
    started = time.monotonic()
    for _ in range(6):
        await wake.rest()
    assert time.monotonic() - started >= 0.9 * (0.001 + 0.002 + 4 * 0.003)


@pytest.mark.req("F72")
async def test_a_lost_session_loses_the_declaration() -> None:
    """Deaf, it polls without declaring; with a new session it declares again."""
    listener = FakeListener()
    wake = _wake(listener, 0.001)
    await wake.rest()
    listener.connected = False
    assert not wake.declared
    await wake.rest()
    assert listener.declared == 1
    listener.connected = True
    listener.connections = 2
    await wake.rest()
    assert wake.declared
    assert listener.declared == 2


async def test_a_busy_destination_withdraws() -> None:
    """Two claims in a row that find something, or no lane left to wait, end the declaration."""
    listener = FakeListener()
    wake = _wake(listener, 0.001)
    await wake.rest()
    await wake.rest()
    await wake.claimed(lanes_left=True)
    assert wake.declared
    await wake.claimed(lanes_left=True)
    assert not wake.declared
    assert listener.withdrawn == 1
    await wake.rest()
    await wake.rest()
    await wake.claimed(lanes_left=False)
    assert listener.withdrawn == 2


async def test_an_error_of_the_declaration_leaves_polling() -> None:
    """A missing right to declare costs the notifications, never the deliveries."""
    listener = FakeListener()
    listener.error = psycopg.errors.InsufficientPrivilege()
    wake = _wake(listener, 0.001)
    for _ in range(5):
        await wake.rest()
    assert not wake.declared


async def test_without_a_listener_it_polls() -> None:
    """A dispatcher behind a connection pooler has no listening connection and still works."""
    wake = _wake(None, 0.001)
    await wake.rest()
    await wake.claimed(lanes_left=False)
    assert not wake.declared


async def test_it_does_not_wait_once_told_to_stop() -> None:
    """The order to stop ends every wait, whenever it came."""
    stopping = Stopping(give_back_seconds=1.0, clock=time.monotonic)
    stopping.request()
    wake = _wake(None, 3_600.0, stopping=stopping)
    await asyncio.wait_for(wake.rest(), 5)
