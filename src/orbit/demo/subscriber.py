"""A subscriber process: `python -m orbit.demo.subscriber BASE_URL SUBSCRIPTION FILE CAPACITY PAUSE_MS`.

The token is in ORBIT_TOKEN. It writes down what it got, stores each result in its inbox and returns; the consumer then
acknowledges. It may be killed at any moment, and does nothing about results that come again but to look into the inbox.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from orbit.demo.inbox import Inbox
from orbit.history.operations import Claim, Leased, digest_of
from orbit.history.recorder import HistoryRecorder
from orbit.model.limits import LEASE_SECONDS
from orbit.model.states import ResultType
from orbit.sdk import AsyncEventConsumer, ReceivedEvent

MILLISECONDS = 1000


@dataclass(frozen=True, slots=True)
class Subscriber:
    """The handler.

    Attributes:
        pause_seconds: how long it takes over a result.
    """

    inbox: Inbox
    recorder: HistoryRecorder
    pause_seconds: float

    async def handle(self, event: ReceivedEvent) -> None:
        """Store one result; half of the time passes before the commit and half after it, so that kills hit both."""
        self._write_down(event)
        await asyncio.sleep(self.pause_seconds / 2)
        snapshot = event.snapshot
        _ = self.inbox.apply(event, snapshot["task_id"], snapshot["revision"], snapshot["state"])
        await asyncio.sleep(self.pause_seconds / 2)

    def _write_down(self, event: ReceivedEvent) -> None:
        """Write down what was leased to this process, its proof and snapshot as digests."""
        until = datetime.fromisoformat(event.lease_expires_at)
        leased = Leased(
            delivery=event.delivery_id,
            event=event.event_id,
            sequence=event.sequence,
            epoch=event.lease_epoch,
            attempts=event.attempts,
            lease_expires_at=until,
            event_type=ResultType(event.event_type),
            proof=digest_of(event.proof.lease_secret),
            snapshot=digest_of(event.snapshot_text),
        )
        _ = self.recorder.note(
            Claim,
            begin=until - timedelta(seconds=LEASE_SECONDS),
            subscription=event.subscription_id,
            connection=self.recorder.process,
            leased=(leased,),
        )


async def main(base_url: str, subscription_id: str, file: Path, capacity: int, pause_seconds: float) -> None:
    """Receive until SIGTERM."""
    history = file.with_name("clients.jsonl")
    with closing(Inbox(file)) as inbox, HistoryRecorder(history, process=file.stem) as recorder:
        handler = Subscriber(inbox, recorder, pause_seconds).handle
        consumer = AsyncEventConsumer(base_url, os.environ["ORBIT_TOKEN"], subscription_id, handler, capacity=capacity)
        loop = asyncio.get_running_loop()
        running = asyncio.create_task(consumer.run())
        stops: set[asyncio.Task[None]] = set()
        loop.add_signal_handler(signal.SIGTERM, lambda: stops.add(asyncio.create_task(consumer.stop())))
        await running
        _ = await asyncio.gather(*stops)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]) / MILLISECONDS))
