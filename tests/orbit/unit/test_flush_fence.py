"""The flush fence lets nobody through on a flush that began before he came (JRN-17)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from orbit.model.codes import ErrorCode
from orbit.model.errors import OrbitError
from orbit.store.database import Database
from orbit.tasks.fence import CommitMode, FlushFence, session_dsn


class Disk:
    """Stands where the database is: each flush ends when the test says so."""

    def __init__(self) -> None:
        self.begun: list[asyncio.Future[None]] = []

    async def run(self, work: Callable[[Any], Awaitable[object]]) -> None:
        """Begin a flush."""
        del work
        future = asyncio.get_running_loop().create_future()
        self.begun.append(future)
        await future


async def _turn() -> None:
    """Let every task run as far as it can."""
    for _ in range(20):
        await asyncio.sleep(0)


def _fence() -> tuple[Disk, FlushFence]:
    disk = Disk()
    return disk, FlushFence(cast("Database", disk))


@pytest.mark.req("orbit:JRN-17", "orbit:SRC-07")
async def test_who_comes_during_a_flush_waits_for_the_next_one_with_all_others() -> None:
    """One caller begins; ten that come meanwhile share one further flush, which begins only after theirs."""
    disk, fence = _fence()
    first = asyncio.create_task(fence.passed())
    await _turn()
    others = [asyncio.create_task(fence.passed()) for _ in range(10)]
    await _turn()
    assert len(disk.begun) == 1
    disk.begun[0].set_result(None)
    await _turn()
    assert first.done()
    assert not any(task.done() for task in others)
    assert len(disk.begun) == 2
    latest = asyncio.create_task(fence.passed())
    disk.begun[1].set_result(None)
    await _turn()
    assert all(task.done() for task in others)
    assert not latest.done()
    disk.begun[2].set_result(None)
    await latest
    assert fence.commits == 3


@pytest.mark.req("orbit:JRN-17")
@pytest.mark.parametrize("end", ["fails", "is cancelled"])
async def test_a_flush_that_does_not_end_well_lets_nobody_through(end: str) -> None:
    """Who made it gets the error; those behind make another one and wait for it."""
    disk, fence = _fence()
    first = asyncio.create_task(fence.passed())
    await _turn()
    second = asyncio.create_task(fence.passed())
    third = asyncio.create_task(fence.passed())
    await _turn()
    if end == "fails":
        disk.begun[0].set_exception(OrbitError(ErrorCode.SERVICE_NOT_READY))
        with pytest.raises(OrbitError):
            await first
    else:
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
    await _turn()
    assert not second.done()
    assert len(disk.begun) == 2
    disk.begun[1].set_result(None)
    await asyncio.gather(second, third)
    assert fence.commits == 1


@pytest.mark.req("orbit:JRN-17")
def test_the_mode_is_an_option_of_the_sessions_that_wins() -> None:
    """Other options of the connection string stay; the mode comes last, so that it wins."""
    dsn = session_dsn("postgresql://u@h/d?options=-c%20jit%3Doff%20-c%20orbit.commit%3Dfenced", CommitMode.PLAIN)
    assert "-c jit=off -c orbit.commit=fenced -c orbit.commit=plain" in dsn
    assert "orbit.commit=fenced" in session_dsn("postgresql://u@h/d", CommitMode.FENCED)
