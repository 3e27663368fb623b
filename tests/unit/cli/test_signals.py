"""The order to stop: the first signal drains, the second urges, the third gives up."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from seapost.cli.signals import stop_orders


async def _cancelled() -> None:
    """Wait until the running task is cancelled, and take it back."""
    with pytest.raises(asyncio.CancelledError):
        await asyncio.Event().wait()
    task = asyncio.current_task()
    assert task is not None
    _ = task.uncancel()


@pytest.mark.req("F16")
async def test_two_signals_are_passed_on_and_the_third_cancels() -> None:
    """The worker hears the order twice; who signals a third time does not wait any longer."""
    heard: asyncio.Queue[str] = asyncio.Queue()
    with stop_orders() as orders:
        orders.passed_to(lambda: heard.put_nowait("stop"))
        for number in (signal.SIGTERM, signal.SIGINT):
            os.kill(os.getpid(), number)
            assert await heard.get() == "stop"
        os.kill(os.getpid(), signal.SIGTERM)
        await _cancelled()
    assert heard.empty()
    assert orders.gave_up


@pytest.mark.req("F16")
async def test_a_signal_before_there_is_work_ends_at_once() -> None:
    """Before anything can be held, the first signal simply ends the start."""
    with stop_orders() as orders:
        os.kill(os.getpid(), signal.SIGTERM)
        await _cancelled()
    assert orders.count == 1
    assert not orders.gave_up
