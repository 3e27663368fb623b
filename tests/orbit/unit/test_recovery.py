"""The loop that recovers lost attempts goes on, whatever a round does (TSK-12)."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from orbit.server.recovery import Recovery
from tests.kit.eventually import eventually_async


@pytest.mark.req("orbit:TSK-12")
async def test_a_round_that_fails_is_followed_by_the_next_one() -> None:
    """A database that is away for a while does not end the loop."""
    outcomes = [RuntimeError("away"), 2, 0, 1]
    rounds: list[int | Exception] = []

    async def recover() -> int:
        outcome = outcomes[len(rounds) % len(outcomes)]
        rounds.append(outcome)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    running = asyncio.create_task(Recovery(recover, every_seconds=0.001).run())
    await eventually_async(lambda: len(rounds) >= 8)
    assert not running.done()
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
