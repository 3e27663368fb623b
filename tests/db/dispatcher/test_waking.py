"""Sleep and wake with a real server: notifications when somebody sleeps, polling always, sweeps for what is late."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from seapost.dispatcher.claim import Claimer
from seapost.model.delivery import Claim
from seapost.model.outcome import Outcome
from tests.kit import builders
from tests.kit.builders import BILLING, PLACED
from tests.kit.database import TestDatabase
from tests.kit.dispatching import (
    QUICK,
    QUICK_PROCESS,
    ScriptedTransport,
    acknowledge_all,
    all_acknowledged,
    open_context,
    serving,
)
from tests.kit.eventually import eventually_async
from tests.kit.kernel import Kernel
from tests.kit.monotonic import ManualClock

DEAF_POLLING = replace(QUICK_PROCESS, poll_seconds=(60.0,), recover_every_seconds=3_600.0)
"""Polls so rarely that only a notification can explain a delivery within a test."""


def _declared(kernel: Kernel) -> bool:
    """Whether a dispatcher of the destination has declared itself asleep."""
    return kernel.value(
        "select exists (select from pg_locks as l join pg_database as d on d.oid = l.database"
        " where d.datname = current_database() and l.locktype = 'advisory' and l.granted"
        " and (l.classid::bigint << 32 | l.objid::bigint) = seapost.dispatcher_sleep_key(%s))",
        BILLING,
    )


async def _asleep(kernel: Kernel) -> None:
    """Wait until the dispatcher has declared; whatever is appended from now on notifies."""
    await eventually_async(lambda: _declared(kernel), what="the declaration")


async def test_a_sleeping_dispatcher_is_woken_by_an_append(database: TestDatabase, lean_kernel: Kernel) -> None:
    """With polls a minute apart, events appended one after the other are delivered at once."""
    async with serving(database, (QUICK, ScriptedTransport()), settings=DEAF_POLLING):
        for number in range(1, 4):
            await _asleep(lean_kernel)
            lean_kernel.append_new()
            await all_acknowledged(lean_kernel, number)


async def test_two_dispatchers_share_a_destination(database: TestDatabase, lean_kernel: Kernel) -> None:
    """Both claim, nothing is delivered twice, and each start knows its owner."""
    first, second = ScriptedTransport(), ScriptedTransport()
    settings = replace(QUICK, batch_size=5)
    async with serving(database, (settings, first)) as one, serving(database, (settings, second)) as other:
        assert one.dispatcher.owner != other.dispatcher.owner

        async def appended_until_both_have_worked() -> bool:
            lean_kernel.append_new(PLACED, 20)
            return bool(first.calls) and bool(second.calls)

        await eventually_async(appended_until_both_have_worked)
        await eventually_async(lambda: lean_kernel.count("delivery_acknowledgement") == lean_kernel.count("delivery"))
    delivered = [claim.fence.event_id for claim in first.delivered + second.delivered]
    assert len(delivered) == len(set(delivered)) == lean_kernel.count("event")
    owners = lean_kernel.rows("select distinct owner from seapost.delivery_attempt_start")
    assert {owner for (owner,) in owners} == {one.dispatcher.owner, other.dispatcher.owner}


async def test_a_second_dispatcher_hears_the_first_ones_declaration(
    database: TestDatabase, lean_kernel: Kernel
) -> None:
    """Only one can declare; when it is busy with a call, the other one declares and is woken."""
    async with serving(database, (QUICK, ScriptedTransport()), settings=DEAF_POLLING) as one:
        await _asleep(lean_kernel)
        async with serving(database, (QUICK, ScriptedTransport()), settings=DEAF_POLLING) as other:
            await eventually_async(
                lambda: other.dispatcher.listener is not None and other.dispatcher.listener.connected
            )
            await one.end()
            lean_kernel.append_new()
            await all_acknowledged(lean_kernel, 1)


@pytest.mark.req("F72")
async def test_a_killed_listener_costs_only_the_poll_interval(database: TestDatabase, lean_kernel: Kernel) -> None:
    """Events appended while nobody listens are delivered by polling; the listener comes back and is heard again."""
    async with serving(database, (QUICK, ScriptedTransport())) as service:
        listener = service.dispatcher.listener
        assert listener is not None
        for number in range(1, 4):
            await eventually_async(lambda: listener.process_id)
            assert listener.process_id is not None
            made = listener.connections
            database.kill(listener.process_id)
            lean_kernel.append_new()
            await all_acknowledged(lean_kernel, number)
            await eventually_async(lambda made=made: listener.connections > made)


@pytest.mark.req("F72")
async def test_a_reconnected_listener_sweeps(database: TestDatabase, lean_kernel: Kernel) -> None:
    """With polls a minute apart, what was appended in the gap is found when the listener is back."""
    async with serving(database, (QUICK, ScriptedTransport()), settings=DEAF_POLLING) as service:
        listener = service.dispatcher.listener
        assert listener is not None
        await _asleep(lean_kernel)
        assert listener.process_id is not None
        database.kill(listener.process_id)
        lean_kernel.append_new()
        await all_acknowledged(lean_kernel, 1)


async def test_polling_alone_delivers(database: TestDatabase, lean_kernel: Kernel) -> None:
    """Without any listening connection everything arrives."""
    async with serving(database, (QUICK, ScriptedTransport()), listening=False):
        lean_kernel.append_new(PLACED, 3)
        await all_acknowledged(lean_kernel, 3)


@pytest.mark.req("AMB-48")
async def test_a_late_commit_below_the_hint_is_claimed_by_the_next_sweep(
    database: TestDatabase, lean_kernel: Kernel
) -> None:
    """A row that commits late with an old time is invisible to the hint and found within the sweep interval."""
    clock = ManualClock()
    settings = replace(QUICK, sweep_seconds=1.0)
    late = builders.envelope()
    writer = database.connect()
    writer.execute("select seapost.outbox_append_v1(%s)", ([late],))
    async with open_context(database, clock=clock) as context:
        claimer = Claimer(context, settings)
        lean_kernel.append_new(PLACED, 3)
        first = await claimer.run_once(100)
        assert first is not None
        assert len(first.claims) == 3
        writer.commit()
        assert await claimer.run_once(100) is None, "the hint looks above the late row"
        clock.advance(1.0)
        second = await claimer.run_once(100)
        assert second is not None
        assert [claim.fence.event_id for claim in second.claims] == [builders.event_id_of(late)]


@pytest.mark.req("AMB-48")
async def test_a_running_dispatcher_finds_a_late_commit(database: TestDatabase, lean_kernel: Kernel) -> None:
    """The same with all loops running: the late event is delivered although nothing newer ever comes."""
    writer = database.connect()
    writer.execute("select seapost.outbox_append_v1(%s)", ([builders.envelope()],))
    async with serving(database, (QUICK, ScriptedTransport())):
        lean_kernel.append_new(PLACED, 3)
        await all_acknowledged(lean_kernel, 3)
        writer.commit()
        await all_acknowledged(lean_kernel, 4)


@pytest.mark.req("CLM-02", "F20")
async def test_suspects_and_ordinary_deliveries_take_turns(database: TestDatabase, lean_kernel: Kernel) -> None:
    """Neither starves the other, and a batch never mixes them."""
    lean_kernel.append_new(PLACED, 4)
    lean_kernel.retry(*lean_kernel.claim(limit=4), lost=True)
    lean_kernel.append_new(PLACED, 4)
    kinds: list[bool] = []
    async with open_context(database) as context:
        claimer = Claimer(context, QUICK)
        for _ in range(8):
            batch = await claimer.run_once(2)
            if batch is None:
                break
            assert {claim.lost_count > 0 for claim in batch.claims} == {batch.suspects}
            kinds.append(batch.suspects)
            lean_kernel.acknowledge(*batch.claims)
            claimer.finished(batch)
    assert kinds == [True, False, True, False, True, True]


@pytest.mark.req("F20")
async def test_one_batch_of_suspects_is_out_at_a_time(database: TestDatabase, lean_kernel: Kernel) -> None:
    """Suspects wait while others of their destination are out: two deaths at once would blame the innocent, too."""
    lean_kernel.append_new(PLACED, 4)
    lean_kernel.retry(*lean_kernel.claim(limit=4), lost=True)
    async with open_context(database) as context:
        claimer = Claimer(context, QUICK)
        first = await claimer.run_once(2)
        assert first is not None
        assert first.suspects
        assert await claimer.run_once(2) is None
        lean_kernel.acknowledge(*first.claims)
        claimer.finished(first)
        assert await claimer.run_once(2) is not None


async def test_a_batch_of_one_destination_only(database: TestDatabase, lean_kernel: Kernel) -> None:
    """A dispatcher claims only for the destinations that it was given."""
    seen: set[str] = set()

    async def look(claims: Sequence[Claim]) -> Sequence[Outcome]:
        seen.update(claim.destination for claim in claims)
        return await acknowledge_all(claims)

    lean_kernel.append_new(builders.SHIPPED, 3)
    async with serving(database, (QUICK, ScriptedTransport(look))):
        await all_acknowledged(lean_kernel, 3)
    assert seen == {BILLING}
