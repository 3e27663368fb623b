"""The endpoints of the task platform (section 14)."""

from __future__ import annotations

from fastapi import Request, Response

from orbit.access.token import secret_digest
from orbit.server.http.answering import answered, ok, path_id
from orbit.server.http.calls import read_call, read_caller, read_keyed_call
from orbit.tasks.service import Tasks
from orbit.wire import bodies
from orbit.wire.times import time_text

TASKS = "/v1/tasks"


class TaskEndpoints:
    """Submit, read, cancel and resolve; claim, keep and confirm attempts."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks

    async def submit(self, request: Request) -> Response:
        """Submit a task."""
        call = await read_keyed_call(request, bodies.TaskSubmit)
        answer = await self._tasks.submit(
            call.token,
            queue=call.body.queue,
            input_json=call.body.input,
            effect_policy=call.body.effect_policy,
            max_attempts=call.body.max_attempts,
            **call.identity,
        )
        return answered(answer, TASKS, "task_id")

    async def get(self, request: Request) -> Response:
        """Read a task."""
        token = read_caller(request)
        return ok(await self._tasks.get(token, task_id=path_id(request, "task_id")))

    async def cancel(self, request: Request) -> Response:
        """Cancel a task."""
        call = await read_keyed_call(request, bodies.TaskCancel)
        answer = await self._tasks.cancel(
            call.token,
            task_id=path_id(request, "task_id"),
            expected_revision=call.body.expected_revision,
            reason=call.body.reason,
            **call.identity,
        )
        return answered(answer)

    async def resolve(self, request: Request) -> Response:
        """Give a task in review its authoritative result."""
        call = await read_keyed_call(request, bodies.TaskResolve)
        answer = await self._tasks.resolve(
            call.token,
            task_id=path_id(request, "task_id"),
            expected_revision=call.body.expected_revision,
            outcome=call.body.outcome,
            result_json=call.body.result,
            result_given="result" in call.body.model_fields_set,
            reason=call.body.reason,
            **call.identity,
        )
        return answered(answer)

    async def claim(self, request: Request) -> Response:
        """Give a worker tasks."""
        call = await read_call(request, bodies.WorkerClaim)
        body = call.body
        return ok(
            await self._tasks.claim(call.token, queue=body.queue, worker_id=body.worker_id, maximum=body.max or 1)
        )

    async def heartbeat(self, request: Request) -> Response:
        """Keep an attempt's lease."""
        call = await read_call(request, bodies.AttemptHeartbeat)
        expires_at = await self._tasks.heartbeat(
            call.token,
            attempt_id=path_id(request, "attempt_id"),
            secret_sha256=secret_digest(call.body.lease_secret),
        )
        return ok(f'{{"lease_expires_at":"{time_text(expires_at)}"}}')

    async def confirm(self, request: Request) -> Response:
        """Confirm the result of an attempt."""
        call = await read_call(request, bodies.AttemptConfirm)
        answer = await self._tasks.confirm(
            call.token,
            attempt_id=path_id(request, "attempt_id"),
            secret_sha256=secret_digest(call.body.lease_secret),
            outcome=call.body.outcome,
            effect=call.body.effect or "none",
            retryable=bool(call.body.retryable),
            result_json=call.body.result,
        )
        return answered(answer)
