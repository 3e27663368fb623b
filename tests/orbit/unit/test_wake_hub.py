"""Wake-ups inside a process: who hears them, what is kept, and that nothing stays behind (WSS-17)."""

from __future__ import annotations

import asyncio

import pytest

from orbit.journal.wake import WakeHub

NEVER = 3600.0


@pytest.mark.req("orbit:WSS-17")
async def test_a_wake_up_reaches_its_queue_and_its_subscription_and_nobody_else() -> None:
    """Two listeners of one queue hear a result; a subscription's change is heard by its own listener only."""
    hub = WakeHub()
    with hub.listen("q1", "s1") as one, hub.listen("q1", "s2") as two, hub.listen("q2", "s3") as three:
        hub.wake_queue("q1")
        assert [await one.wait(0), await two.wait(0), await three.wait(0)] == [True, True, False]
        hub.wake_subscription("s2")
        assert [await one.wait(0), await two.wait(0), await three.wait(0)] == [False, True, False]
        hub.wake_queue(None)
        hub.wake_subscription(None)
        hub.wake_queue("unknown")
        assert [await one.wait(0), await two.wait(0), await three.wait(0)] == [False, False, False]


@pytest.mark.req("orbit:WSS-17")
async def test_a_wake_up_ends_a_wait_and_one_before_the_wait_is_kept() -> None:
    """No wake-up is lost between two waits; several before one wait are one."""
    hub = WakeHub()
    with hub.listen("q", "s") as listener:
        waiting = asyncio.create_task(listener.wait(NEVER))
        await asyncio.sleep(0)
        hub.wake_queue("q")
        assert await waiting
        hub.wake_queue("q")
        hub.wake_subscription("s")
        assert await listener.wait(NEVER)
        assert not await listener.wait(0.001)


async def test_a_cancelled_wait_can_be_followed_by_another() -> None:
    """The wake-up that comes afterwards is heard."""
    hub = WakeHub()
    with hub.listen("q", "s") as listener:
        waiting = asyncio.create_task(listener.wait(NEVER))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        hub.wake_queue("q")
        assert await listener.wait(NEVER)


@pytest.mark.req("F52")
async def test_nothing_stays_behind_when_listeners_leave() -> None:
    """No listener, no task, no entry."""
    hub = WakeHub()
    tasks = len(asyncio.all_tasks())
    with hub.listen("q", "s1") as listener, hub.listen("q", "s2"):
        assert hub.listening == 2
        await listener.wait(0.001)
        assert len(asyncio.all_tasks()) == tasks
    assert hub.listening == 0
    assert vars(hub) == {"_of_queue": {}, "_of_subscription": {}}
