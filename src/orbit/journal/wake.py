"""Wake-ups inside one process: who committed a result, a resume or a retry tells the pulls that wait here (WSS-17).

A wake-up is only a hint. Whoever waits looks into the database by itself from time to time (WSS-08), so a lost one
costs that time and nothing else; other processes never hear of it. The hub starts no task and holds nothing but the
listeners that are open.

Everything here belongs to one event loop: call `wake_queue` and `wake_subscription` after the commit, from a
coroutine of that loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager


class Listener:
    """One waiting pull. A wake-up that comes while nobody waits is kept for the next `wait`."""

    __slots__ = ("_waiter", "_woken")

    def __init__(self) -> None:
        self._woken = False
        self._waiter: asyncio.Future[None] | None = None

    def wake(self) -> None:
        """End the present or the next `wait`."""
        self._woken = True
        if self._waiter is not None:
            _release(self._waiter)

    async def wait(self, timeout_seconds: float) -> bool:
        """Wait for a wake-up, at most `timeout_seconds`; one waiter at a time.

        Returns:
            Whether there was a wake-up, before or during the wait; it is used up by this.
        """
        if not self._woken and timeout_seconds > 0:
            loop = asyncio.get_running_loop()
            waiter = self._waiter = loop.create_future()
            alarm = loop.call_later(timeout_seconds, _release, waiter)
            try:
                await waiter
            finally:
                alarm.cancel()
                self._waiter = None
        woken, self._woken = self._woken, False
        return woken


class WakeHub:
    """Brings the wake-ups of a process to its listeners."""

    def __init__(self) -> None:
        self._of_queue: dict[str, set[Listener]] = {}
        self._of_subscription: dict[str, set[Listener]] = {}

    @property
    def listening(self) -> int:
        """How many listeners are open."""
        return sum(len(listeners) for listeners in self._of_subscription.values())

    def wake_queue(self, queue_id: str | None) -> None:
        """A result of the queue was committed; None (no result was made) wakes nobody."""
        for listener in self._of_queue.get(queue_id or "", ()):
            listener.wake()

    def wake_subscription(self, subscription_id: str | None) -> None:
        """The subscription was resumed or one of its deliveries retried; None wakes nobody."""
        for listener in self._of_subscription.get(subscription_id or "", ()):
            listener.wake()

    @contextmanager
    def listen(self, queue_id: str, subscription_id: str) -> Generator[Listener]:
        """Hear of the queue's results and the subscription's changes until the block ends."""
        listener = Listener()
        places = ((self._of_queue, queue_id), (self._of_subscription, subscription_id))
        for listeners, key in places:
            listeners.setdefault(key, set()).add(listener)
        try:
            yield listener
        finally:
            for listeners, key in places:
                listeners[key].discard(listener)
                if not listeners[key]:
                    del listeners[key]


def _release(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
