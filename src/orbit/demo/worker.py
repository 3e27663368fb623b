"""A worker process: `python -m orbit.demo.worker BASE_URL NAME HISTORY`, token in ORBIT_TOKEN.

It classes flights, says of some that it cannot, of others that it does not know whether its letter went out, and writes
down each confirmation with its begin and end. It may be killed at any moment.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Final

from orbit.demo.flights import QUEUES, Fate, failure_text_of, fate_of, result_text_of
from orbit.history.operations import Confirm, digest_of
from orbit.history.recorder import HistoryRecorder
from orbit.sdk import AsyncWorker, OrbitApiError, OrbitSdkError, Receipt, TaskClaim

CLAIMED_MAX: Final = 8
IDLE_SECONDS: Final = 0.1


class FlightWorker:
    """Claims from both queues and confirms what each flight's fate says."""

    def __init__(self, worker: AsyncWorker, recorder: HistoryRecorder) -> None:
        self._worker = worker
        self._recorder = recorder

    async def run_once(self) -> int:
        """Claim a few tasks of each queue and confirm them; return how many there were."""
        claims = [claim for queue in QUEUES for claim in await self._worker.claim(queue, max=CLAIMED_MAX)]
        async with asyncio.TaskGroup() as group:
            for claim in claims:
                _ = group.create_task(self._work(claim))
        return len(claims)

    async def _work(self, claim: TaskClaim) -> None:
        fate = fate_of(claim.input)
        if fate is Fate.CANCELLED:
            return  # the flight will be cancelled any moment; there is nothing to say of it
        operation = self._recorder.begin(Confirm, task=claim.task_id, attempt=claim.attempt_id)
        try:
            receipt = await self._confirm(claim, fate)
        except OrbitApiError:
            return  # the attempt was lost while this process was slow or the server away; somebody else has the task
        _ = self._recorder.end(
            operation,
            event=receipt.event_id,
            event_type=receipt.event_type,
            sequence=receipt.sequence,
            receipt=digest_of(receipt.model_dump_json()),
        )

    async def _confirm(self, claim: TaskClaim, fate: Fate) -> Receipt:
        match fate:
            case Fate.FAILED:
                return await self._worker.confirm(claim, outcome="failed", result_text=failure_text_of(claim.input))
            case Fate.REVIEWED:
                return await self._worker.confirm(claim, outcome="failed", effect="unknown")
            case Fate.REQUEUED if claim.number == 1:
                return await self._worker.confirm(claim, outcome="failed", retryable=True)
            case _:
                return await self._worker.confirm(claim, outcome="succeeded", result_text=result_text_of(claim.input))


async def main(base_url: str, name: str, history: Path) -> None:
    """Work until SIGTERM; an unreachable server is waited for."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    with HistoryRecorder(history, process=name) as recorder:
        async with AsyncWorker(base_url, os.environ["ORBIT_TOKEN"], worker_id=name) as worker:
            flights = FlightWorker(worker, recorder)
            while not stop.is_set():
                try:
                    found = await flights.run_once()
                except OrbitSdkError:
                    found = 0
                if not found:
                    await asyncio.sleep(IDLE_SECONDS)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], Path(sys.argv[3])))
