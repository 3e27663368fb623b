r"""Receive task results into an inbox of our own: each result is applied once, however often it is delivered.

    ORBIT_TOKEN=… python -m examples.orbit.result_inbox --base-url http://127.0.0.1:8080 \
        --subscription sub_… --db inbox.db

The handler commits first, and only then does the consumer acknowledge. Between the two this process may die: the result
is delivered again, the inbox knows it, and nothing is applied twice. `--db` takes a file (SQLite) or an address
(PostgreSQL).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import sys
import time

from examples.orbit.inbox_store import FAILPOINT_VARIABLE, Store, failpoint, open_store
from orbit.sdk import AsyncEventConsumer, OrbitSdkError, ReceivedEvent


def main() -> int:
    """Run until a signal, a terminal error, or `--until-idle` seconds without a result."""
    parser = argparse.ArgumentParser(description="Receive task results into an inbox.")
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--subscription", required=True)
    parser.add_argument("--db", required=True, help="an SQLite file or a postgresql:// address")
    parser.add_argument("--capacity", type=int, default=8, help="results handled at once, 1 to 32")
    parser.add_argument("--until-idle", type=float, metavar="SECONDS", help="stop after so long without a result")
    options = parser.parse_args()
    token = os.environ.get("ORBIT_TOKEN")
    if not token:
        parser.error("ORBIT_TOKEN holds no token")
    with contextlib.closing(open_store(options.db)) as store:
        try:
            asyncio.run(Receiver(store, options.until_idle).run(options, token))
        except OrbitSdkError as error:
            print(f"result_inbox: {error}", file=sys.stderr)
            return 1
    return 0


class Receiver:
    """Hands each result to the store, and says what became of it."""

    def __init__(self, store: Store, idle_seconds: float | None) -> None:
        self._store = store
        self._idle_seconds = idle_seconds
        self._last_at = time.monotonic()

    async def handle(self, event: ReceivedEvent) -> None:
        """Store one result; returning is what lets the consumer acknowledge it."""
        failpoint("before_tx")
        is_new = await asyncio.to_thread(self._store.apply, event)
        failpoint("after_commit")
        print(json.dumps({"event_id": event.event_id, "sequence": event.sequence, "new": is_new}), flush=True)
        self._last_at = time.monotonic()

    async def run(self, options: argparse.Namespace, token: str) -> None:
        """Consume until somebody says stop."""
        consumer = AsyncEventConsumer(
            options.base_url, token, options.subscription, self.handle, capacity=options.capacity
        )
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        async with asyncio.TaskGroup() as group:
            helpers = [group.create_task(self._stop(consumer, stop)), group.create_task(self._idle(consumer, stop))]
            if os.environ.get(FAILPOINT_VARIABLE) == "after_ack_sent":
                helpers.append(group.create_task(_after_first_ack(consumer)))
            try:
                await consumer.run()
            finally:
                for helper in helpers:
                    helper.cancel()

    async def _stop(self, consumer: AsyncEventConsumer, stop: asyncio.Event) -> None:
        await stop.wait()
        await consumer.stop()

    async def _idle(self, consumer: AsyncEventConsumer, stop: asyncio.Event) -> None:
        """Stop when nothing came for long and nothing is being handled."""
        while self._idle_seconds is not None:
            await asyncio.sleep(0.05)
            if consumer.stats.running:
                self._last_at = time.monotonic()
            elif time.monotonic() - self._last_at > self._idle_seconds:
                stop.set()
                return


async def _after_first_ack(consumer: AsyncEventConsumer) -> None:
    """For the regression only: stop everything as soon as an acknowledgement has been answered."""
    while not consumer.stats.acked:  # noqa: ASYNC110 - a receiver that is not being killed has no use for a signal
        await asyncio.sleep(0)
    failpoint("after_ack_sent")


if __name__ == "__main__":
    sys.exit(main())
