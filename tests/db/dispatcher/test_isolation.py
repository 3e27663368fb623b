"""A destination that hangs takes nothing that another one needs: connections, lanes, threads, turns (F23)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from seapost.dispatcher import intake
from seapost.model.delivery import Claim
from seapost.model.outcome import ErrorCode, Outcome, Retryable
from tests.kit.builders import PLACED, ROUTES
from tests.kit.database import TestDatabase
from tests.kit.dispatching import (
    QUICK,
    HeldConsumer,
    ScriptedTransport,
    acknowledge_all,
    all_acknowledged,
    destination,
    serving,
)
from tests.kit.eventually import eventually_async
from tests.kit.kernel import Kernel
from tests.kit.tenants import append_of, fair, tenant_in

pytestmark = pytest.mark.req("CLM-11", "F23")

DEAD = "dead.happened@1"
DEAD_DESTINATIONS = 50


async def test_fifty_hanging_destinations_hold_up_nobody(database: TestDatabase, lean_kernel: Kernel) -> None:
    """With every lane of fifty destinations stuck in calls that never end, over a pool of eight connections, a healthy
    destination delivers two hundred events, and its claims wait for none of those calls.
    """
    names = [f"dead-{number}" for number in range(DEAD_DESTINATIONS)]
    lean_kernel.route("2", {**ROUTES, DEAD: names})
    lean_kernel.append_new(DEAD, 4)
    hanging = HeldConsumer()
    dead = [(replace(destination(name), batch_size=2), ScriptedTransport(hanging)) for name in names]
    alive = ScriptedTransport()
    async with serving(database, *dead, (replace(QUICK, batch_size=10), alive)):
        await eventually_async(lambda: all(len(transport.calls) == 2 for _, transport in dead), what="every lane stuck")
        for _ in range(4):
            lean_kernel.append_new(PLACED, 50)
        await all_acknowledged(lean_kernel, 200)
        assert [len(transport.calls) for _, transport in dead] == [2] * DEAD_DESTINATIONS
        hanging.released.set()
        await all_acknowledged(lean_kernel, 200 + 4 * DEAD_DESTINATIONS)
    assert {len(call) for call in alive.calls} <= set(range(1, 11))


async def test_a_destination_makes_no_more_calls_at_once_than_it_has_lanes(
    database: TestDatabase, lean_kernel: Kernel
) -> None:
    """However much is due, a hanging destination holds its lanes' batches and leaves the rest unclaimed."""
    lean_kernel.append_new(PLACED, 100)
    hanging = HeldConsumer()
    transport = ScriptedTransport(hanging)
    async with serving(database, (replace(QUICK, batch_size=5, lanes=3), transport)):
        await eventually_async(lambda: len(transport.calls) == 3, what="three calls")
        assert lean_kernel.count("delivery_lease") == 15
        hanging.released.set()
        await all_acknowledged(lean_kernel, 100)


@pytest.mark.req("F29")
async def test_the_lane_that_waits_for_a_probe_wakes_with_its_answer(
    database: TestDatabase, lean_kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long the pause while a probe is out, its answer ends it: failed probes follow one another at the pace of
    the breaker, and the first good one lets all lanes go on.
    """
    monkeypatch.setattr(intake, "PAUSE_SECONDS_MAX", 3_600.0)
    down = True

    async def consumer(claims: Sequence[Claim]) -> Sequence[Outcome]:
        await asyncio.sleep(0.02)  # a probe that takes a moment, so that the other lane comes to wait for it
        return [Retryable(ErrorCode.CAPACITY_PROTECTED)] * len(claims) if down else await acknowledge_all(claims)

    transport = ScriptedTransport(consumer)
    lean_kernel.append_new(PLACED, 40)
    settings = replace(QUICK, batch_size=4, lanes=2, breaker_failures=1, breaker_open_seconds=0.01)
    async with serving(database, (settings, transport)):
        await eventually_async(lambda: len(transport.calls) >= 12, what="probe after probe")
        down = False
        await all_acknowledged(lean_kernel, 40)


async def test_a_quiet_tenant_is_in_the_next_call(database: TestDatabase, lean_kernel: Kernel) -> None:
    """With a loud tenant's thousands waiting and both lanes in a call, an event of a quiet one is in one of the next
    two claims: it waits for no more than the calls that are out.
    """
    fair(lean_kernel, 64)
    loud, quiet = (tenant_in(lean_kernel, lane, 64) for lane in (3, 60))
    append_of(lean_kernel, loud, 3_000)
    hanging = HeldConsumer()
    transport = ScriptedTransport(hanging)
    async with serving(database, (replace(QUICK, batch_size=100, lanes=2), transport)):
        await eventually_async(lambda: len(transport.calls) == 2, what="both lanes in a call")
        (event_id,) = append_of(lean_kernel, quiet)
        hanging.released.set()
        await eventually_async(
            lambda: event_id in {c.fence.event_id for c in transport.delivered}, what="the lone event"
        )
        number = next(n for n, call in enumerate(transport.calls) if event_id in {c.fence.event_id for c in call})
        assert number in {2, 3}
        await all_acknowledged(lean_kernel, 3_001)


async def test_two_dispatchers_never_call_with_suspects_at_once(database: TestDatabase, lean_kernel: Kernel) -> None:
    """Of one destination, one process at a time works on suspects; the other one goes on with what is ordinary."""
    ids = lean_kernel.append_new(PLACED, 6)
    lean_kernel.retry(*lean_kernel.claim(), lost=True, delay=timedelta())
    calling = most = 0

    async def consumer(claims: Sequence[Claim]) -> Sequence[Outcome]:
        nonlocal calling, most
        is_suspect = claims[0].lost_count > 0
        calling += is_suspect
        most = max(most, calling)
        await asyncio.sleep(0)
        answers = await acknowledge_all(claims)
        calling -= is_suspect
        return answers

    one, two = ScriptedTransport(consumer), ScriptedTransport(consumer)
    settings = replace(QUICK, batch_size=8)
    async with serving(database, (settings, one)), serving(database, (settings, two)):
        await all_acknowledged(lean_kernel, len(ids))
    assert most == 1
    assert {len(call) for call in (*one.calls, *two.calls)} == {1}
