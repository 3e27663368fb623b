"""Readiness is known for two seconds at most, checked once for everybody, and never in the way of a request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

import pytest

from orbit.server.readiness import UNREACHABLE, Readiness
from tests.kit.eventually import eventually_async

REASON: Final = ("a migration is dirty",)


class Probe:
    """A check whose answers, and whose clock, the test sets."""

    def __init__(self) -> None:
        self.seconds = 100.0
        self.answer: tuple[str, ...] | Exception = ()
        self.checks = 0
        self.open = asyncio.Event()
        self.open.set()

    async def check(self) -> tuple[str, ...]:
        """Answer as the test said, once the gate is open."""
        self.checks += 1
        await self.open.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@asynccontextmanager
async def probed() -> AsyncGenerator[tuple[Probe, Readiness]]:
    """A readiness over a probe; no check is left running."""
    probe = Probe()
    readiness = Readiness(probe.check, clock=lambda: probe.seconds)
    try:
        yield probe, readiness
    finally:
        await readiness.close()


@pytest.mark.req("orbit:OPS-05")
async def test_a_result_is_kept_for_less_than_two_seconds() -> None:
    """Within a second nobody checks again; after two somebody must."""
    async with probed() as (probe, readiness):
        assert readiness.known is None
        assert await readiness.reasons() == ()
        probe.answer, probe.seconds = REASON, 100.9
        assert await readiness.reasons() == ()
        assert probe.checks == 1
        probe.seconds = 102.0
        assert readiness.known is None
        assert await readiness.reasons() == REASON


@pytest.mark.req("orbit:OPS-05")
async def test_an_ageing_result_is_renewed_behind_the_requests() -> None:
    """After one second the old result is still served, while one check runs for all."""
    async with probed() as (probe, readiness):
        assert await readiness.reasons() == ()
        probe.answer, probe.seconds = REASON, 101.5
        probe.open.clear()
        assert [readiness.known for _ in range(5)] == [()] * 5
        probe.open.set()
        await eventually_async(lambda: readiness.known == REASON)
        assert probe.checks == 2


@pytest.mark.req("orbit:OPS-05")
async def test_everybody_who_waits_shares_one_check() -> None:
    """A hundred requests after a pause are one question to the database; one that gives up ends it for nobody."""
    async with probed() as (probe, readiness):
        probe.open.clear()
        waiting = [asyncio.create_task(readiness.reasons()) for _ in range(100)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        probe.open.set()
        assert await asyncio.gather(*waiting[1:]) == [()] * 99
        assert probe.checks == 1


@pytest.mark.req("orbit:OPS-05")
async def test_a_check_that_fails_is_a_reason_that_says_nothing_of_the_failure() -> None:
    """What the driver says may quote a connection string."""
    async with probed() as (probe, readiness):
        probe.answer = RuntimeError("postgresql://user:hush@host")
        assert await readiness.reasons() == (UNREACHABLE,)
