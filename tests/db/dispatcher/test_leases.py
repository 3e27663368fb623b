"""Leases while a call runs, when it runs too long, and when somebody else has taken over."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from psycopg import Connection

from seapost.dispatcher.batch import Batch, Cancelled
from seapost.dispatcher.claim import Claimer
from seapost.dispatcher.deliver import Deliverer
from seapost.dispatcher.pulse import Pulse
from seapost.dispatcher.renew import Leases, Renewer
from seapost.dispatcher.settle import Settled, Settler
from seapost.model.delivery import Claim
from seapost.model.outcome import ErrorCode, NonRetryable, Outcome, Retryable
from seapost.telemetry.metrics import Metrics
from tests.kit.builders import BILLING
from tests.kit.database import TestDatabase
from tests.kit.dispatching import (
    QUICK,
    HeldConsumer,
    ScriptedTransport,
    acknowledge_all,
    acknowledged,
    all_acknowledged,
    open_context,
    serving,
)
from tests.kit.eventually import eventually, eventually_async
from tests.kit.kernel import Kernel
from tests.kit.monotonic import ManualClock

SHORT = replace(QUICK, lease_seconds=0.3)


def _expire(kernel: Kernel) -> None:
    """Let every lease end now, and recover it."""
    kernel.run("update seapost.delivery_lease set expires_at = seapost.clock_now() - interval '1 s'")
    kernel.recover()


@pytest.mark.req("F14", "CLM-05", "CLM-12")
async def test_a_slow_call_keeps_its_lease(database: TestDatabase, lean_kernel: Kernel) -> None:
    """A call much longer than the lease is renewed and stays one attempt."""
    consumer = HeldConsumer()
    (event_id,) = lean_kernel.append_new()
    transport = ScriptedTransport(consumer)
    async with serving(database, (SHORT, transport)):
        await consumer.called.wait()
        first = lean_kernel.value("select expires_at from seapost.delivery_lease")

        def renewed_often() -> bool:
            return lean_kernel.value("select expires_at from seapost.delivery_lease") > first + timedelta(seconds=0.9)

        await eventually_async(renewed_often)
        consumer.released.set()
        await all_acknowledged(lean_kernel, 1)
    assert len(transport.calls) == 1
    assert lean_kernel.value("select attempt_count from seapost.outbox_deliveries where event_id = %s", event_id) == 1


@pytest.mark.req("CLM-09", "DLV-15", "F14")
async def test_a_lost_lease_cancels_the_call(database: TestDatabase, lean_kernel: Kernel) -> None:
    """When a renewal shows that every delivery of a call is somebody else's, the call is cancelled and forgotten."""
    consumer = HeldConsumer()
    lean_kernel.append_new()
    transport = ScriptedTransport(consumer)
    async with serving(database, (SHORT, transport)):
        await consumer.called.wait()
        transport.script = acknowledge_all
        _expire(lean_kernel)
        await eventually_async(lambda: transport.cancelled == 1)
        await all_acknowledged(lean_kernel, 1)
    finishes = lean_kernel.rows("select outcome from seapost.delivery_attempt_finish order by finished_at")
    assert finishes == [(4,), (1,)]


@pytest.mark.req("CLM-05", "CLM-09", "AMB-06", "DLV-15")
@pytest.mark.parametrize("outcome", ["acknowledged", "retryable", "non_retryable"])
async def test_a_late_settle_changes_nothing(database: TestDatabase, lean_kernel: Kernel, outcome: str) -> None:
    """After recovery and a new claim, whatever the old worker says is refused as stale, counted and dropped."""
    lean_kernel.append_new()
    async with open_context(database) as context:
        batch = await Claimer(context, QUICK).run_once(10)
        assert batch is not None
        _expire(lean_kernel)
        newer = lean_kernel.claim_one()
        outcomes: dict[str, Outcome] = {
            "acknowledged": acknowledged(batch.claims[0]),
            "retryable": Retryable(ErrorCode.TIMEOUT),
            "non_retryable": NonRetryable(ErrorCode.SCHEMA_INVALID),
        }
        metrics = Metrics()
        settler = Settler(replace(context, metrics=metrics), QUICK, Pulse("lane", context.clock))
        settled = await settler.run_once(batch, [(batch.claims[0], outcomes[outcome])])
        assert settled == Settled(stale=1)
        counted = f'seapost_settles_stale_total{{destination="{BILLING}"}} 1.0'
        assert counted in metrics.exposition().decode().splitlines()
    assert lean_kernel.row("select attempt_id, token from seapost.delivery_lease") == (
        newer.fence.attempt_id,
        newer.fence.token,
    )
    assert lean_kernel.acknowledge(newer) == []


@pytest.mark.req("AMB-06")
async def test_an_expired_lease_that_nobody_recovered_is_still_ours(
    database: TestDatabase, lean_kernel: Kernel
) -> None:
    """Time does not decide: a late acknowledgement that comes before recovery is accepted."""
    lean_kernel.append_new()
    async with open_context(database) as context:
        batch = await Claimer(context, QUICK).run_once(10)
        assert batch is not None
        lean_kernel.run("update seapost.delivery_lease set expires_at = seapost.clock_now() - interval '1 h'")
        settler = Settler(context, QUICK, Pulse("lane", context.clock))
        settled = await settler.run_once(batch, [(batch.claims[0], acknowledged(batch.claims[0]))])
        assert settled == Settled(acknowledged=1)


@pytest.mark.req("AMB-52", "PUB-03")
async def test_what_only_the_database_finds_invalid_is_postponed_alone(
    database: TestDatabase, lean_kernel: Kernel
) -> None:
    """The database compares with its frozen facts once more; the wrong row ends with ack_invalid, the rest is done."""
    lean_kernel.append_new(count=3)
    async with open_context(database) as context:
        batch = await Claimer(context, QUICK).run_once(10)
        assert batch is not None
        first, *others = batch.claims
        # As a worker would see it whose cache of members was wrong: it believes what the database must refuse.
        deceived = replace(first, member=replace(first.member, consumer_name="search_consumer"))
        settler = Settler(context, QUICK, Pulse("lane", context.clock))
        settled = await settler.run_once(batch, [(claim, acknowledged(claim)) for claim in (deceived, *others)])
        assert settled == Settled(acknowledged=2, invalid=1, postponed=1)
    assert lean_kernel.status(first.fence.event_id) == "pending"
    assert (
        lean_kernel.value("select error_code from seapost.delivery_attempt_finish where outcome = 2") == "ack_invalid"
    )


@pytest.mark.req("F14")
async def test_a_worker_that_slept_through_its_lease_calls_nobody(database: TestDatabase, lean_kernel: Kernel) -> None:
    """Stopped between claim and call for most of the lease, it starts no side effect and gives back what it has."""
    clock = ManualClock()
    (event_id,) = lean_kernel.append_new()
    transport = ScriptedTransport()
    async with open_context(database, clock=clock) as context:
        batch = await Claimer(context, QUICK).run_once(10)
        assert batch is not None
        clock.advance(0.95 * QUICK.lease_seconds)
        delivered = await Deliverer(context, QUICK, transport, Leases()).run_once(batch)
        assert transport.calls == []
        assert delivered.succeeded is None
        settled = await Settler(context, QUICK, Pulse("lane", clock)).run_once(batch, delivered.outcomes)
        assert settled == Settled(postponed=1)
    assert lean_kernel.row("select failure_count, lost_count from seapost.delivery_ready") == (0, 0)
    assert lean_kernel.status(event_id) == "pending"


@pytest.mark.req("DLV-05")
async def test_an_envelope_that_is_not_what_was_appended_is_not_delivered(
    database: TestDatabase, lean_kernel: Kernel
) -> None:
    """The bytes are hashed before the call; a difference is quarantined and no consumer sees it."""
    (event_id,) = lean_kernel.append_new()
    transport = ScriptedTransport()
    async with open_context(database) as context:
        batch = await Claimer(context, QUICK).run_once(10)
        assert batch is not None
        forged = [replace(claim, envelope=claim.envelope + b" ") for claim in batch.claims]
        batch = Batch(forged, batch.sent_at, batch.lease_seconds, batch.renew_every_seconds)
        delivered = await Deliverer(context, QUICK, transport, Leases()).run_once(batch)
        assert transport.calls == []
        await Settler(context, QUICK, Pulse("lane", context.clock)).run_once(batch, delivered.outcomes)
    assert lean_kernel.row("select event_id, reason from seapost.delivery_quarantine") == (
        event_id,
        "envelope_invariant_broken",
    )


@pytest.mark.req("CLM-05")
async def test_a_renewal_names_what_is_lost(database: TestDatabase, lean_kernel: Kernel) -> None:
    """Of a batch that lost one delivery the rest stays believed, and the lost one is left out of the settle."""
    clock = ManualClock()
    lean_kernel.append_new(count=3)
    async with open_context(database, clock=clock) as context:
        leases = Leases()
        renewer = Renewer(context, leases, QUICK.renew_every_seconds)
        batch = await Claimer(context, QUICK).run_once(10)
        assert batch is not None
        lost = batch.claims[0]
        assert lean_kernel.retry(lost) == []
        with leases.running(batch, QUICK):
            assert (await renewer.run_once()).renewed == 0, "nothing is due yet"
            clock.advance(QUICK.renew_every_seconds)
            renewal = await renewer.run_once()
        assert (renewal.renewed, renewal.lost) == (2, 1)
        assert batch.lost == {lost.fence.event_id}
        assert batch.cancelled is None
        assert batch.believed_until == pytest.approx(clock() + QUICK.lease_seconds)
        settler = Settler(context, QUICK, Pulse("lane", clock))
        settled = await settler.run_once(batch, [(claim, acknowledged(claim)) for claim in batch.claims])
        assert settled == Settled(acknowledged=2)


async def test_a_renewal_without_a_database_loses_nothing(database: TestDatabase, lean_kernel: Kernel) -> None:
    """A database that cannot be asked is no reason to cancel a call: the fence has the last word."""
    clock = ManualClock()
    lean_kernel.append_new()
    async with open_context(database, clock=clock) as context:
        leases = Leases()
        batch = await Claimer(context, QUICK).run_once(10)
        assert batch is not None
        await context.pool.close()
        clock.advance(QUICK.renew_every_seconds)
        with leases.running(batch, QUICK):
            renewal = await Renewer(context, leases, QUICK.renew_every_seconds).run_once()
        assert (renewal.renewed, renewal.lost) == (0, 0)
        assert batch.lost == set()
        assert clock() < batch.renew_at < clock() + QUICK.renew_every_seconds


@pytest.mark.req("F18")
async def test_a_settle_survives_a_killed_connection(database: TestDatabase, lean_kernel: Kernel) -> None:
    """The connection dies under the acknowledgement; it is written again on another one, in the same attempt."""
    consumer = HeldConsumer()
    (event_id,) = lean_kernel.append_new()
    transport = ScriptedTransport(consumer)
    async with serving(database, (replace(QUICK, lanes=1), transport)):
        await consumer.called.wait()
        blocker = database.connect()
        blocker.execute("select from seapost.delivery_lease for update")
        consumer.released.set()
        victim = await eventually_async(lambda: _blocked(lean_kernel.connection))
        database.kill(victim)
        blocker.rollback()
        await all_acknowledged(lean_kernel, 1)
    assert len(transport.calls) == 1
    assert lean_kernel.value("select attempt_count from seapost.outbox_deliveries where event_id = %s", event_id) == 1


def _blocked(connection: Connection[tuple[object, ...]]) -> int:
    row = connection.execute(
        "select pid from pg_stat_activity where datname = current_database()"
        " and application_name = 'seapost-dispatcher' and wait_event_type = 'Lock' and query like '%acknowledge%'"
    ).fetchone()
    return 0 if row is None else int(str(row[0]))


@pytest.mark.req("CLM-07", "CLM-08", "AMB-25", "F15", "DLV-14")
async def test_what_a_dead_worker_held_is_delivered_by_another(database: TestDatabase, lean_kernel: Kernel) -> None:
    """A lease that nobody renews is recovered and delivered anew, with a finish that says what is not known."""
    (event_id,) = lean_kernel.append_new()
    dead = lean_kernel.claim_one(lease=timedelta(milliseconds=200))
    async with serving(database, (QUICK, ScriptedTransport())) as service:
        await all_acknowledged(lean_kernel, 1)
        assert service.counted("seapost_deliveries_recovered_total{") == 1
    finishes = lean_kernel.rows("select attempt_id, outcome from seapost.delivery_attempt_finish order by finished_at")
    assert finishes[0] == (dead.fence.attempt_id, 4)
    assert finishes[1][1] == 1
    assert lean_kernel.value("select attempt_count from seapost.outbox_deliveries where event_id = %s", event_id) == 2


@pytest.mark.req("F20")
async def test_a_poison_event_exhausts_nobody_else(database: TestDatabase, lean_kernel: Kernel) -> None:
    """Calls with one certain event end without an answer; it ends up alone and in quarantine, all others delivered."""
    events = lean_kernel.append_new(count=40)
    poison = events[17]
    counts: list[int] = []

    async def fragile(claims: Sequence[Claim]) -> Sequence[Outcome]:
        if any(claim.fence.event_id == poison for claim in claims):
            raise ConnectionResetError
        counts.extend(claim.failure_count for claim in claims)
        return await acknowledge_all(claims)

    settings = replace(QUICK, batch_size=64, max_attempts=3, breaker_failures=1_000)
    transport = ScriptedTransport(fragile)
    async with serving(database, (settings, transport)):
        await all_acknowledged(lean_kernel, 39)
        await eventually_async(lambda: lean_kernel.status(poison) == "quarantined")
    assert set(counts) == {0}
    assert lean_kernel.row("select event_id, reason from seapost.delivery_quarantine") == (
        poison,
        "policy_max_attempts",
    )
    alone = [call for call in transport.calls if [claim.fence.event_id for claim in call] == [poison]]
    assert len(alone) == 3


@pytest.mark.req("F20")
async def test_a_delivery_that_recovery_exhausted_is_not_called_again(
    database: TestDatabase, lean_kernel: Kernel
) -> None:
    """Three crashes alone with an event are three counted failures: the next claim quarantines it without a call."""
    (event_id,) = lean_kernel.append_new()
    for _ in range(3):
        eventually(lambda: lean_kernel.claim(limit=1) or lean_kernel.claim(limit=1, suspects=True))
        _expire(lean_kernel)
    transport = ScriptedTransport()
    async with serving(database, (replace(QUICK, max_attempts=3), transport)):
        await eventually_async(lambda: lean_kernel.status(event_id) == "quarantined")
    assert transport.calls == []


async def test_a_transport_that_ignores_its_cancellation_does_not_hold_the_lane(
    database: TestDatabase, lean_kernel: Kernel
) -> None:
    """A call that swallows its timeout is left behind; its delivery is tried again in a new call."""
    stuck = asyncio.Event()

    async def stubborn(claims: Sequence[Claim]) -> Sequence[Outcome]:
        while claims[0].attempt_number == 1 and not stuck.is_set():
            try:
                await stuck.wait()
            except asyncio.CancelledError:
                continue
        return await acknowledge_all(claims)

    lean_kernel.append_new()
    async with serving(
        database, (replace(QUICK, lanes=1, timeout_seconds=0.05, name=BILLING), ScriptedTransport(stubborn))
    ):
        await all_acknowledged(lean_kernel, 1)
        stuck.set()


def test_the_first_reason_of_a_cancellation_stays() -> None:
    """A batch that lost its leases is not given back, whatever comes later."""

    async def scenario() -> Batch:
        batch = Batch([], 0.0, 60.0, 20.0)
        batch.call = asyncio.get_running_loop().create_future()
        batch.cancel(Cancelled.LEASE_LOST)
        batch.cancel(Cancelled.STOPPED)
        return batch

    assert asyncio.run(scenario()).cancelled is Cancelled.LEASE_LOST
