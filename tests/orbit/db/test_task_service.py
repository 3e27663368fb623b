"""The service over the real functions: bodies, wake-ups, recovery before a claim, and the two ways to commit."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final, TypedDict

import pytest
from psycopg import AsyncConnection
from psycopg.conninfo import make_conninfo

from orbit.access.token import TokenDigest, secret_digest
from orbit.journal.wake import WakeHub
from orbit.model.codes import ErrorCode
from orbit.model.errors import OrbitError
from orbit.store import tasks as store
from orbit.store.answer import Answer
from orbit.store.database import Database
from orbit.tasks.fence import CommitMode, session_dsn
from orbit.tasks.service import Tasks
from tests.kit.database import TestDatabase
from tests.kit.orbit.platform import ANY_REQUEST, Platform, assert_tasks_whole, found

RECORD_COMMITS: Final = """
create table public.commits (action text, synchronous text);
create function public.record_commit() returns trigger language plpgsql as $$
begin
    insert into public.commits values (new.action, current_setting('synchronous_commit'));
    return null;
end $$;
create trigger record after insert on orbit.audit_log for each row execute function public.record_commit();
grant insert on public.commits to public;"""
SYNCHRONOUS: Final = "-c synchronous_commit=on"
"""What a server has by default; the one of the tests is faster."""


class Identity(TypedDict):
    """What makes a request repeatable."""

    idempotency_key: str
    request_sha256: str


class Desk:
    """The service with a token, and a session to look on."""

    def __init__(self, tasks: Tasks, token: TokenDigest, platform: Platform, wakes: WakeHub) -> None:
        self.tasks = tasks
        self.token = token
        self.platform = platform
        self.wakes = wakes
        self._keys = 0

    def key(self) -> Identity:
        """A fresh identity of a request."""
        self._keys += 1
        return Identity(idempotency_key=f"desk-{self._keys}", request_sha256=ANY_REQUEST)

    async def submit(self) -> str:
        """Submit a task; its id."""
        answer = await self.tasks.submit(self.token, queue="billing", input_json="{}", **self.key())
        return json.loads(answer.body)["task_id"]

    async def claim(self, maximum: int = 1) -> list[dict[str, Any]]:
        """Claim."""
        text = await self.tasks.claim(self.token, queue="billing", worker_id="w-1", maximum=maximum)
        return json.loads(text)["items"]

    async def confirm(self, claimed: dict[str, Any], outcome: str = "succeeded", **more: Any) -> Answer:
        """Confirm."""
        return await self.tasks.confirm(
            self.token,
            attempt_id=claimed["attempt_id"],
            secret_sha256=secret_digest(claimed["lease_secret"]),
            outcome=outcome,
            **more,
        )


@asynccontextmanager
async def _desk(database: TestDatabase, mode: CommitMode = CommitMode.PLAIN) -> AsyncGenerator[Desk]:
    owner = database.connect(autocommit=True)
    platform = Platform(owner, found(owner))
    wakes = WakeHub()
    dsn = session_dsn(make_conninfo(database.dsn, options=SYNCHRONOUS), mode)
    async with Database(dsn, size_max=4, role="orbit_server") as opened:
        yield Desk(Tasks(opened, wakes, mode), TokenDigest(platform.place.token_sha256), platform, wakes)
    assert_tasks_whole(owner)


@pytest.mark.req("orbit:TSK-09", "orbit:TSK-18", "orbit:SRC-19", "orbit:WSS-17", "orbit:IDM-09")
@pytest.mark.parametrize("mode", list(CommitMode))
async def test_a_task_goes_through_the_service(orbit_database: TestDatabase, mode: CommitMode) -> None:
    """Submit, replay, claim with exact input, heartbeat, confirm with exact result and wake-up, replay without."""
    async with _desk(orbit_database, mode) as desk:
        text, key = ' {"n":1.00}\n', desk.key()
        first = await desk.tasks.submit(desk.token, queue="billing", input_json=text, **key)
        again = await desk.tasks.submit(desk.token, queue="billing", input_json=text, **key)
        assert (first.status, first.replayed, again.status, again.replayed) == (201, False, 201, True)
        assert first.body == again.body
        text = await desk.tasks.claim(desk.token, queue="billing", worker_id="w-1", maximum=4)
        assert text.endswith(',"input":{"n":1.00}}]}')
        (claimed,) = json.loads(text)["items"]
        assert list(claimed) == ["task_id", "attempt_id", "number", "lease_secret", "lease_expires_at", "input"]
        deadline = await desk.tasks.heartbeat(
            desk.token, attempt_id=claimed["attempt_id"], secret_sha256=secret_digest(claimed["lease_secret"])
        )
        assert deadline.tzinfo is not None
        with desk.wakes.listen(desk.platform.queue_id, "sub_1") as listener:
            answer = await desk.confirm(claimed, result_json=" 1.00 ")
            assert await listener.wait(0)
            replay = await desk.confirm(claimed, result_json="1.00")
            assert not await listener.wait(0)
        assert (answer.status, answer.replayed, replay.body, replay.replayed) == (200, False, answer.body, True)
        body = await desk.tasks.get(desk.token, task_id=claimed["task_id"])
        assert body.endswith(',"result":1.00}')


@pytest.mark.req("orbit:TSK-12", "orbit:TSK-13", "orbit:TSK-14")
@pytest.mark.parametrize("mode", list(CommitMode))
async def test_a_claim_takes_back_lost_attempts_of_its_queue_first(
    orbit_database: TestDatabase, mode: CommitMode
) -> None:
    """At most 16 per claim, each waking the readers of its queue; `recover` takes the rest; then cancel and resolve."""
    async with _desk(orbit_database, mode) as desk:
        tasks = [await desk.submit() for _ in range(20)]
        for _ in range(2):
            await desk.claim(10)
        desk.platform.connection.execute("update orbit.task_attempts set lease_expires_at = clock_timestamp()")
        with desk.wakes.listen(desk.platform.queue_id, "sub_1") as listener:
            assert await desk.claim() == []
            assert await listener.wait(0)
            assert len(desk.platform.journal()) == 16
            assert await desk.tasks.recover() == 4
            assert await desk.tasks.recover() == 0
            assert await listener.wait(0)
        answer = await desk.tasks.resolve(
            desk.token, task_id=tasks[0], expected_revision=3, outcome="failed", result_json=None, result_given=False,
            reason="checked", **desk.key(),
        )  # fmt: skip
        assert json.loads(answer.body)["state"] == "failed"
        late = await desk.submit()
        cancelled = await desk.tasks.cancel(desk.token, task_id=late, expected_revision=1, **desk.key())
        assert json.loads(cancelled.body)["state"] == "cancelled"
        with pytest.raises(OrbitError) as refused:
            await desk.tasks.cancel(desk.token, task_id=late, expected_revision=2, **desk.key())
        assert refused.value.code is ErrorCode.TASK_STATE_CONFLICT


@pytest.mark.req("orbit:TSK-12", "orbit:LCK-11")
async def test_recovery_leaves_an_attempt_that_stays_locked_for_later(orbit_database: TestDatabase) -> None:
    """A locked task costs its own lock timeouts only; the other lost attempts are recovered."""
    async with _desk(orbit_database) as desk:
        for _ in range(2):
            await desk.submit()
        first, _ = await desk.claim(2)
        owner = desk.platform.connection
        owner.execute("update orbit.task_attempts set lease_expires_at = clock_timestamp()")
        owner.execute("alter function orbit.attempt_recover_v1 set lock_timeout = '50ms'")
        holder = orbit_database.connect()
        holder.execute("select from orbit.tasks where task_id = %s for update", (first["task_id"],))
        assert await desk.tasks.recover() == 1
        holder.rollback()
        assert await desk.tasks.recover() == 1


@pytest.mark.req("orbit:JRN-17", "orbit:SRC-07")
@pytest.mark.parametrize("mode", list(CommitMode))
async def test_only_results_commit_early_and_only_with_the_fence(
    orbit_database: TestDatabase, mode: CommitMode
) -> None:
    """Confirmation, cancel, resolve and recovery commit asynchronously behind the fence; everything else never does."""
    early = "off" if mode is CommitMode.FENCED else "on"
    async with _desk(orbit_database, mode) as desk:
        owner = desk.platform.connection
        owner.execute(RECORD_COMMITS)
        tasks = [await desk.submit() for _ in range(3)]
        confirmed, recovered, cancelled = await desk.claim(3)
        await desk.confirm(confirmed, "failed", effect="unknown")
        await desk.tasks.cancel(desk.token, task_id=cancelled["task_id"], expected_revision=2, **desk.key())
        await desk.tasks.resolve(
            desk.token, task_id=tasks[0], expected_revision=3, outcome="succeeded", result_json="1", result_given=True,
            reason="checked", **desk.key(),
        )  # fmt: skip
        owner.execute(
            "update orbit.task_attempts set lease_expires_at = clock_timestamp() where attempt_id = %s",
            (recovered["attempt_id"],),
        )
        assert await desk.tasks.recover() == 1
        rows = owner.execute("select action, synchronous from public.commits where action like 'task.%'").fetchall()
        results = {"task.result.confirmed", "task.cancelled", "task.resolved", "task.attempt.recovered"}
        assert len(rows) == 10
        assert {action for action, _ in rows} == results | {"task.submitted", "task.claimed"}
        assert rows == [(action, early if action in results else "on") for action, _ in rows]


@pytest.mark.req("orbit:JRN-17", "orbit:SRC-07")
async def test_no_answer_of_a_result_leaves_before_the_fence(
    orbit_database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the fence held, a receipt, its replay, a conflict and a reading wait although committed; then all come."""
    held = asyncio.Event()
    real = store.fence

    async def fence(connection: AsyncConnection[Any]) -> None:
        await held.wait()
        await real(connection)

    async with _desk(orbit_database, CommitMode.FENCED) as desk:
        await desk.submit()
        (claimed,) = await desk.claim()
        monkeypatch.setattr(store, "fence", fence)
        with desk.wakes.listen(desk.platform.queue_id, "sub_1") as listener:
            answer = asyncio.create_task(desk.confirm(claimed, result_json="1"))
            assert await listener.wait(10)  # committed: the consumers may pull, their lease flushes
        replay = asyncio.create_task(desk.confirm(claimed, result_json="1"))
        conflict = asyncio.create_task(desk.confirm(claimed, result_json="2"))
        reading = asyncio.create_task(desk.tasks.get(desk.token, task_id=claimed["task_id"]))
        done, _ = await asyncio.wait([answer, replay, conflict, reading], timeout=0.2)
        assert done == set()
        assert len(desk.platform.journal()) == 1
        held.set()
        assert (await answer).replayed is False
        assert (await replay).replayed is True
        with pytest.raises(OrbitError) as refused:
            await conflict
        assert refused.value.code is ErrorCode.RESULT_CONFLICT
        assert '"state":"succeeded"' in await reading
