"""Clients for those who submit tasks and those who work on them (section 17)."""

from __future__ import annotations

from orbit.sdk import tasks
from orbit.sdk.clients import AsyncHttpClient, HttpClient, async_operation, operation
from orbit.sdk.values import TaskClaim


class AsyncWorker(AsyncHttpClient):
    """Submits tasks, claims them and confirms their results.

    Args:
        worker_id: what the attempts are recorded under.
        timeout: seconds for each step of one try.
    """

    def __init__(self, base_url: str, token: str, *, worker_id: str, timeout: float = 10.0) -> None:
        super().__init__(base_url, token, timeout=timeout)
        self._worker_id = worker_id

    submit = async_operation(tasks.submit)
    heartbeat = async_operation(tasks.heartbeat)
    confirm = async_operation(tasks.confirm)

    async def claim(self, queue: str, *, max: int = 1) -> list[TaskClaim]:  # noqa: A002 - part of the interface
        """Take at most `max` ready tasks of a queue, 1 to 16, each with the secret that confirms it."""
        return await self.send(tasks.claim_tasks(queue, self._worker_id, max))


class Worker(HttpClient):
    """Submits tasks, claims them and confirms their results; as `AsyncWorker`, without `await`."""

    def __init__(self, base_url: str, token: str, *, worker_id: str, timeout: float = 10.0) -> None:
        super().__init__(base_url, token, timeout=timeout)
        self._worker_id = worker_id

    submit = operation(tasks.submit)
    heartbeat = operation(tasks.heartbeat)
    confirm = operation(tasks.confirm)

    def claim(self, queue: str, *, max: int = 1) -> list[TaskClaim]:  # noqa: A002 - part of the interface
        """Take at most `max` ready tasks of a queue, 1 to 16, each with the secret that confirms it."""
        return self.send(tasks.claim_tasks(queue, self._worker_id, max))
