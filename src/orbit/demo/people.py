"""The people of the demo: a producer who submits flights and cancels some, and an operator who decides on the unclear.

Both speak HTTP, with idempotency keys made from the flight's number: whatever the chaos does to the server, a request
that is repeated has one effect.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any, Final, cast

import httpx
from psycopg import AsyncConnection

from orbit.demo.flights import Fate, Flight, fate_of, result_text_of
from orbit.demo.processes import DemoFailed
from orbit.model.codes import ErrorCode
from orbit.model.states import EffectPolicy, Resolution

PAUSE_SECONDS: Final = 0.2
LOOK_SECONDS: Final = 0.3
SUBMITTERS: Final = 6
ATTEMPTS_MAX: Final = 20
"""Enough for every worker that dies over a flight."""

_UNCLEAR: Final = "select task_id, revision, input_json from orbit.tasks where state = 'needs_review'"


def resolution_of(number: int) -> Resolution:
    """What the operator finds out about an unclear flight."""
    return (Resolution.SUCCEEDED, Resolution.FAILED, Resolution.CANCELLED)[number % 3]


class Office:
    """Sends requests for one of them until they are answered.

    Args:
        client: with base address and token.
    """

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def ask(self, path: str, body: str, *, key: str | None = None) -> tuple[int, dict[str, Any]]:
        """Post a body, again and again with the same key while the server is away; return status and answer."""
        headers = {"Content-Type": "application/json"} | ({} if key is None else {"Idempotency-Key": key})
        while True:
            try:
                answer = await self._client.post(path, content=body, headers=headers)
            except httpx.TransportError:
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            if answer.status_code == httpx.codes.SERVICE_UNAVAILABLE:
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            return answer.status_code, cast("dict[str, Any]", answer.json())


class UnexpectedAnswer(DemoFailed):
    """The service refused what it must not refuse."""


async def produce(office: Office, flights: Sequence[Flight], *, seconds: float) -> None:
    """Submit every flight, spread over some time, a few requests at once, and cancel those that never left.

    Raises:
        UnexpectedAnswer: a submission or a cancellation was refused.
    """
    loop = asyncio.get_running_loop()
    started = loop.time()
    line = iter(enumerate(flights))

    async def submit_in_turn() -> None:
        for place, flight in line:
            await asyncio.sleep(max(0.0, started + place * seconds / len(flights) - loop.time()))
            await _submit(office, flight)

    async with asyncio.TaskGroup() as group:
        for _ in range(SUBMITTERS):
            _ = group.create_task(submit_in_turn())


async def _submit(office: Office, flight: Flight) -> None:
    fate = fate_of(flight.task_input)
    body = {
        "queue": flight.queue,
        "input": flight.task_input,
        "effect_policy": EffectPolicy.UNSAFE if fate is Fate.REVIEWED else EffectPolicy.SAFE,
        "max_attempts": ATTEMPTS_MAX,
    }
    status, task = await office.ask("/v1/tasks", json.dumps(body), key=f"submit-{flight.number}")
    if status != httpx.codes.CREATED:
        raise UnexpectedAnswer(f"submission of flight {flight.number}: {task}")
    if fate is Fate.CANCELLED:
        await _cancel(office, task["task_id"], task["revision"])


async def _cancel(office: Office, task_id: str, revision: int) -> None:
    """Cancel a task, whatever revision a worker has brought it to meanwhile."""
    while True:
        body = json.dumps({"expected_revision": revision, "reason": "the flight was cancelled"})
        status, answer = await office.ask(f"/v1/tasks/{task_id}/cancel", body, key=f"cancel-{task_id}-{revision}")
        if status == httpx.codes.OK:
            return
        if answer.get("code") != ErrorCode.REVISION_CONFLICT:
            raise UnexpectedAnswer(f"cancellation of {task_id}: {answer}")
        revision = int(answer["current_revision"])


async def review(office: Office, observer: AsyncConnection[Any]) -> None:
    """Decide on every task that needs review, until cancelled.

    Raises:
        UnexpectedAnswer: a decision was refused.
    """
    while True:
        rows = await (await observer.execute(_UNCLEAR)).fetchall()
        for task_id, revision, input_json in rows:
            await _resolve(office, str(task_id), int(revision), json.loads(input_json))
        await asyncio.sleep(LOOK_SECONDS)


async def _resolve(office: Office, task_id: str, revision: int, task_input: dict[str, str | int]) -> None:
    outcome = resolution_of(int(task_input["number"]))
    result = f'"result":{result_text_of(task_input)},' if outcome is Resolution.SUCCEEDED else ""
    body = f'{{"expected_revision":{revision},"outcome":"{outcome}",{result}"reason":"looked into the outbox"}}'
    status, answer = await office.ask(f"/v1/tasks/{task_id}/resolve", body, key=f"resolve-{task_id}-{revision}")
    if status != httpx.codes.OK:
        raise UnexpectedAnswer(f"resolution of {task_id}: {answer}")
