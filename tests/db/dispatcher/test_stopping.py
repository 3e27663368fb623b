"""Stop: no new claim, calls may finish, the rest is given back, no lease is left (F16)."""

from __future__ import annotations

import asyncio
import signal
from dataclasses import replace

import pytest

from tests.kit.builders import PLACED
from tests.kit.database import TestDatabase
from tests.kit.dispatching import (
    END_SECONDS_MAX,
    QUICK,
    QUICK_PROCESS,
    HeldConsumer,
    ScriptedTransport,
    serving,
)
from tests.kit.kernel import Kernel

pytestmark = pytest.mark.req("F16")

PATIENT = replace(QUICK_PROCESS, drain_seconds=3_600.0)


async def _stopped(task: asyncio.Task[None]) -> None:
    await asyncio.wait_for(task, END_SECONDS_MAX)


async def test_calls_in_flight_may_finish(database: TestDatabase, lean_kernel: Kernel) -> None:
    """Ordered to stop, it claims nothing more, waits for the call and writes its receipts."""
    consumer = HeldConsumer()
    lean_kernel.append_new(PLACED, 10)
    transport = ScriptedTransport(consumer)
    async with serving(database, (replace(QUICK, batch_size=4, lanes=1), transport), settings=PATIENT) as service:
        await consumer.called.wait()
        service.dispatcher.stop()
        consumer.released.set()
        await _stopped(service.task)
    assert len(transport.calls) == 1
    assert lean_kernel.count("delivery_acknowledgement") == 4
    assert lean_kernel.count("delivery_lease") == 0
    assert lean_kernel.count("delivery_ready") == 6


@pytest.mark.parametrize("twice", [True, False], ids=["second stop", "drain is over"])
async def test_what_still_runs_is_given_back(database: TestDatabase, lean_kernel: Kernel, *, twice: bool) -> None:
    """After the drain, or at once on a second order, calls are cancelled; their attempts cost the events nothing."""
    consumer = HeldConsumer()
    lean_kernel.append_new(PLACED, 10)
    settings = PATIENT if twice else replace(QUICK_PROCESS, drain_seconds=0.05)
    transport = ScriptedTransport(consumer)
    async with serving(database, (replace(QUICK, batch_size=5), transport), settings=settings) as service:
        await consumer.called.wait()
        service.dispatcher.stop()
        if twice:
            service.dispatcher.stop()
        await _stopped(service.task)
    assert transport.cancelled == len(transport.calls)
    assert lean_kernel.count("delivery_lease") == 0
    assert lean_kernel.row(
        "select count(*), sum(failure_count), sum(lost_count), bool_and(available_at <= seapost.clock_now())"
        " from seapost.delivery_ready"
    ) == (10, 0, 0, True)
    assert lean_kernel.rows("select distinct outcome, error_code from seapost.delivery_attempt_finish") == [
        (2, "worker_stopped")
    ]


async def test_a_signal_handler_may_call_stop(database: TestDatabase, lean_kernel: Kernel) -> None:
    """SIGTERM in the event loop ends an idle dispatcher at once and in order."""
    del lean_kernel
    async with serving(database, (QUICK, ScriptedTransport()), settings=PATIENT) as service:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, service.dispatcher.stop)
        try:
            signal.raise_signal(signal.SIGTERM)
            await _stopped(service.task)
        finally:
            loop.remove_signal_handler(signal.SIGTERM)


async def test_it_ends_without_a_database(database: TestDatabase, lean_kernel: Kernel) -> None:
    """With the database out of reach, what it holds cannot be given back; it still ends within the grace time."""
    consumer = HeldConsumer()
    (event_id,) = lean_kernel.append_new()
    settings = replace(QUICK_PROCESS, drain_seconds=0.0, give_back_seconds=0.3)
    async with serving(
        database, (replace(QUICK, lease_seconds=0.5), ScriptedTransport(consumer)), settings=settings
    ) as service:
        await consumer.called.wait()
        await service.pool.close()
        service.dispatcher.stop()
        await _stopped(service.task)
    assert lean_kernel.status(event_id) == "leased"


async def test_a_stop_before_the_start_claims_nothing(database: TestDatabase, lean_kernel: Kernel) -> None:
    """An order that comes first is obeyed too."""
    lean_kernel.append_new()
    async with serving(database, (QUICK, ScriptedTransport())) as service:
        service.dispatcher.stop()
        await _stopped(service.task)
    assert lean_kernel.count("delivery_attempt_start") == 0
