"""The task platform as the server uses it: exact texts in, bodies as text out (section 14).

Every change is one call of one SQL function (LCK-14). After its commit whoever waits for results of the queue is woken
(WSS-17), and only then, where results are committed without waiting for the disk, the flush fence decides when the
answer may leave. Nothing here keeps state of a task: a second server on the same database is as good as this one.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from orbit.access.token import new_secret
from orbit.model.codes import ErrorCode
from orbit.model.errors import OrbitError
from orbit.model.limits import RECOVERED_PER_CLAIM_MAX, WORKER_CLAIM_MAX
from orbit.store import tasks as store
from orbit.tasks.exact_text import checked_text
from orbit.tasks.fence import CommitMode, FlushFence
from orbit.tasks.floors import ClaimFloors
from orbit.wire.times import time_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from datetime import datetime
    from typing import Any

    from psycopg import AsyncConnection

    from orbit.access.token import TokenDigest
    from orbit.journal.wake import WakeHub
    from orbit.store.answer import Answer, Settled
    from orbit.store.database import Database

RECOVERY_BATCH: Final = 256
"""Lost attempts that `recover` asks for at once."""


class Tasks:
    """All operations on tasks and attempts.

    Args:
        database: its sessions must commit as `commit_mode` says (`fence.session_dsn`).
        wakes: who hears of new results.
        commit_mode: whether answers wait for the flush by themselves or at the fence.

    Every method raises OrbitError with the codes of section 20 that the specification names for the operation.
    """

    def __init__(self, database: Database, wakes: WakeHub, commit_mode: CommitMode = CommitMode.PLAIN) -> None:
        self._database = database
        self._wakes = wakes
        self._fence = FlushFence(database) if commit_mode is CommitMode.FENCED else None
        self._floors = ClaimFloors()

    async def submit(
        self,
        token: TokenDigest,
        *,
        queue: str,
        input_json: str,
        effect_policy: str | None = None,
        max_attempts: int | None = None,
        idempotency_key: str,
        request_sha256: str,
    ) -> Answer:
        """Take a task in; 201 with its body."""
        exact = checked_text(input_json, ErrorCode.REQUEST_TOO_LARGE)
        order = store.Submission(queue, exact, effect_policy, max_attempts, idempotency_key, request_sha256)
        return await self._database.run(lambda connection: store.submit(connection, token.sha256, order))

    async def get(self, token: TokenDigest, *, task_id: str) -> str:
        """Return the body of a task; with the fence, never a state that a crash could take back."""
        body = await self._database.run(lambda connection: store.get(connection, token.sha256, task_id))
        await self._on_disk()
        return body

    async def claim(self, token: TokenDigest, *, queue: str, worker_id: str, maximum: int) -> str:
        """Begin up to `maximum` attempts; lost attempts of the queue are recovered before (TSK-12).

        Returns:
            The body of the response, with the secrets, which exist nowhere else.
        """
        if not 1 <= maximum <= WORKER_CLAIM_MAX:
            raise OrbitError(ErrorCode.VALIDATION_FAILED, f"max is 1 to {WORKER_CLAIM_MAX}")
        lost = await self._database.run(
            lambda connection: store.expired(connection, RECOVERED_PER_CLAIM_MAX, token.sha256, queue)
        )
        await self._recover_each(lost)
        secrets, digests = zip(*(new_secret() for _ in range(maximum)), strict=True)
        key = (token.sha256, queue)
        bound = self._floors.bound(key)
        claimed = await self._claim(token, queue, worker_id, digests, bound)
        if not claimed and bound is not None and self._floors.may_look_again(key):
            claimed = await self._claim(token, queue, worker_id, digests, None)
        items = (_claim_body(task, secret) for task, secret in zip(claimed, secrets, strict=False))
        return '{"items":[' + ",".join(items) + "]}"

    async def heartbeat(self, token: TokenDigest, *, attempt_id: str, secret_sha256: bytes) -> datetime:
        """Move the deadline of an attempt to now plus the queue's lease; returns it."""
        return await self._database.run(
            lambda connection: store.heartbeat(connection, token.sha256, attempt_id, secret_sha256)
        )

    async def confirm(
        self,
        token: TokenDigest,
        *,
        attempt_id: str,
        secret_sha256: bytes,
        outcome: str,
        effect: str = "none",
        retryable: bool = False,
        result_json: str | None = None,
    ) -> Answer:
        """Confirm the result of an attempt; 200 with the receipt, the original one for a repetition (SRC-08)."""
        exact = None if result_json is None else checked_text(result_json, ErrorCode.RESULT_TOO_LARGE)
        order = store.Confirmation(attempt_id, secret_sha256, outcome, effect, retryable, exact)
        return await self._settle(lambda connection: store.confirm(connection, token.sha256, order))

    async def cancel(
        self,
        token: TokenDigest,
        *,
        task_id: str,
        expected_revision: int,
        reason: str | None = None,
        idempotency_key: str,
        request_sha256: str,
    ) -> Answer:
        """Cancel a task; 200 with its body."""
        order = store.Cancellation(task_id, expected_revision, reason, idempotency_key, request_sha256)
        return await self._settle(lambda connection: store.cancel(connection, token.sha256, order))

    async def resolve(
        self,
        token: TokenDigest,
        *,
        task_id: str,
        expected_revision: int,
        outcome: str,
        result_json: str | None,
        result_given: bool,
        reason: str,
        idempotency_key: str,
        request_sha256: str,
    ) -> Answer:
        """Give a task that needs review its authoritative result; 200 with its body.

        An absent result (`result_given` false) keeps the earlier one; JSON null is a result like any other (TSK-18).
        """
        exact = checked_text("null" if result_json is None else result_json, ErrorCode.RESULT_TOO_LARGE)
        order = store.ResolutionOrder(
            task_id, expected_revision, outcome, exact, result_given, reason, idempotency_key, request_sha256
        )
        return await self._settle(lambda connection: store.resolve(connection, token.sha256, order))

    async def recover(self) -> int:
        """Recover the lost attempts of the whole database (TSK-12); returns how many there were.

        An attempt whose rows stay locked is left for the next time.
        """
        recovered = 0
        while True:
            lost = await self._database.run(lambda connection: store.expired(connection, RECOVERY_BATCH))
            done = await self._recover_each(lost)
            recovered += done
            if done == 0 or len(lost) < RECOVERY_BATCH:
                return recovered

    async def _recover_each(self, attempt_ids: Sequence[str]) -> int:
        recovered = 0
        for attempt_id in attempt_ids:
            try:
                recovery = await self._database.run(
                    lambda connection, attempt_id=attempt_id: store.recover(connection, attempt_id)
                )
            except OrbitError as error:
                if error.code is not ErrorCode.SERVICE_BUSY:
                    raise
                continue
            self._wakes.wake_queue(recovery.wake_queue_id)
            recovered += recovery.recovered
        return recovered

    async def _claim(
        self, token: TokenDigest, queue: str, worker_id: str, digests: Sequence[bytes], bound: datetime | None
    ) -> list[store.ClaimedTask]:
        order = store.WorkerClaim(queue, worker_id, len(digests), digests, bound)
        claimed = await self._database.run(lambda connection: store.claim(connection, token.sha256, order))
        first = claimed[0].available_at if claimed else None
        self._floors.note((token.sha256, queue), bounded=bound is not None, first=first)
        return claimed

    async def _settle(self, work: Callable[[AsyncConnection[Any]], Awaitable[Settled]]) -> Answer:
        """Commit a result, wake whoever waits for it, and let the answer go when it is on disk.

        A refusal waits as well: it tells of a state, which a crash must not take back either.
        """
        try:
            settled = await self._database.run(work)
            self._wakes.wake_queue(settled.wake_queue_id)
            return settled.answer
        finally:
            await self._on_disk()

    async def _on_disk(self) -> None:
        if self._fence is not None:
            await self._fence.passed()


def _claim_body(task: store.ClaimedTask, secret: str) -> str:
    head = json.dumps(
        {
            "task_id": task.task_id,
            "attempt_id": task.attempt_id,
            "number": task.number,
            "lease_secret": secret,
            "lease_expires_at": time_text(task.lease_expires_at),
        },
        separators=(",", ":"),
    )
    return f'{head[:-1]},"input":{task.input_json}}}'
