"""The order to stop, from outside the process (F16).

States: running → asked (the first SIGTERM or SIGINT: stop in order) → urged (the second: give everything back now) →
given up (the third: leave at once; leases lapse by themselves). Before there is anything to stop in order, the first
signal simply ends the process, with nothing held.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
URGENT_ORDERS: Final = 2


class StopOrders:
    """Counts the orders and passes each on."""

    def __init__(self, task: asyncio.Task[object]) -> None:
        self._task = task
        self._stop: Callable[[], None] | None = None
        self.count = 0
        self.gave_up = False

    def passed_to(self, stop: Callable[[], None]) -> None:
        """From now on the first order and the second call `stop`; an order that already came calls it now."""
        self._stop = stop
        for _ in range(min(self.count, URGENT_ORDERS)):
            stop()

    def order(self) -> None:
        """One more signal."""
        self.count += 1
        if self._stop is None or self.count > URGENT_ORDERS:
            self.gave_up = self._stop is not None
            _ = self._task.cancel()
        else:
            self._stop()


@contextmanager
def stop_orders() -> Generator[StopOrders]:
    """Handle the signals of the running loop's process while the block runs."""
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - only coroutines of a task come here
    loop = asyncio.get_running_loop()
    orders = StopOrders(task)
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, orders.order)
    try:
        yield orders
    finally:
        for number in STOP_SIGNALS:
            _ = loop.remove_signal_handler(number)
