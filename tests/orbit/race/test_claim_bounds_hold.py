"""Bounded claims of several processes lose nothing, and cost the same however many dead entries lie behind them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, LiteralString

import psycopg
import pytest
from psycopg import Connection

from orbit.access.token import new_secret
from orbit.journal.wake import WakeHub
from orbit.store.database import Database
from orbit.subscriptions.bounds import Bounds, ConnectionBounds
from orbit.subscriptions.deliveries import Claim, Deliveries
from orbit.subscriptions.service import Subscriptions
from tests.kit.database import TestDatabase
from tests.kit.orbit.consuming import delivery, exhausted, retry, seed_results
from tests.kit.orbit.invariants import assert_invariants
from tests.kit.orbit.scene import CONNECTION, Scene

SECONDS_MAX: Final = 3.0


async def claim(deliveries: Deliveries, scene: Scene, one: str, bounds: ConnectionBounds) -> Claim:
    """One claim of 32 with the bounds of its connection."""
    claimed = await deliveries.claim(
        scene.owner.digest,
        subscription_id=one,
        connection_id=bounds.connection_id,
        capacity=32,
        requested=32,
        secrets_sha256=[new_secret()[1] for _ in range(32)],
        bounds=bounds.next(),
    )
    bounds.claimed(claimed)
    return claimed


@pytest.mark.req("orbit:T-R26", "orbit:LSE-35")
@pytest.mark.parametrize("what", ["retried", "recycled"])
async def test_what_others_make_ready_below_the_floor_comes_within_three_seconds(
    orbit_database: TestDatabase, orbit_scene: Scene, what: str
) -> None:
    """Process A claims with bounds; an operator retries, or process B recycled, a delivery of a lower sequence."""
    orbit_scene.result()
    one = orbit_scene.subscribe(max_attempts=1 if what == "retried" else 9)
    if what == "retried":
        lease = exhausted(orbit_scene, one)
    else:
        (lease,) = orbit_scene.lease(one).leases
    orbit_scene.results(3)
    async with Database(orbit_database.dsn, part="a") as database:
        deliveries = Deliveries(database)
        with Bounds().connection(one, "conn_" + "a" * 32) as bounds:
            assert [
                found.event_sequence for found in (await claim(deliveries, orbit_scene, one, bounds)).deliveries
            ] == [
                2,
                3,
                4,
            ]
            if what == "retried":
                retry(orbit_scene, one, lease.delivery_id)
            else:
                orbit_scene.age_lease(lease.delivery_id)
                orbit_scene.lease(one)
                orbit_scene.age_backoff(lease.delivery_id)
            began = time.monotonic()
            assert (await claim(deliveries, orbit_scene, one, bounds)).deliveries == []
            while not (found := (await claim(deliveries, orbit_scene, one, bounds)).deliveries):
                assert time.monotonic() - began < SECONDS_MAX
                await asyncio.sleep(0.05)
            assert [leased.event_sequence for leased in found] == [1]


@pytest.mark.req("orbit:WSS-17", "orbit:SUB-06")
async def test_services_wake_after_the_commit_and_page(orbit_database: TestDatabase, orbit_scene: Scene) -> None:
    """A resume wakes the listeners of its subscription once, its replay nobody; lists go on behind their key."""
    orbit_scene.results(3)
    wakes = WakeHub()
    async with Database(orbit_database.dsn, part="b") as database:
        service = Subscriptions(database, wakes)
        who = orbit_scene.owner.digest
        identity: dict[str, Any] = {"request_sha256": "a" * 64}
        made = await service.create(who, name="s", queue="orders", from_sequence=0, idempotency_key="k", **identity)
        assert (made.status, made.replayed) == (201, False)
        page = await service.list(who, limit=1)
        assert (len(page.items), page.more) == (1, False)
        one = page.last[1] if page.last else ""
        greeting = await service.hello(who, subscription_id=one)
        assert (greeting.status, greeting.queue_id, len(greeting.types)) == ("ACTIVE", orbit_scene.queue_id, 4)
        with wakes.listen(greeting.queue_id, one) as listener:
            order: dict[str, Any] = {"subscription_id": one, "idempotency_key": "k", **identity}
            await service.pause(who, expected_revision=1, **order)
            await listener.wait(0)
            assert not (await service.resume(who, expected_revision=2, **order)).replayed
            assert await listener.wait(0)
            assert (await service.resume(who, expected_revision=2, **order)).replayed
            assert not await listener.wait(0)
        orbit_scene.lease(one, requested=1)
        first = await service.list_deliveries(who, subscription_id=one, limit=2)
        rest = await service.list_deliveries(who, subscription_id=one, limit=2, after_sequence=2, states=())
        assert (len(first.items), first.last, first.more, len(rest.items), rest.more) == (2, (2,), True, 1, False)
        none = await service.list_deliveries(who, subscription_id=one, limit=2, states=["EXPIRED"])
        assert (none.items, none.last, none.more) == ((), None, False)
        assert await Deliveries(database).waiting(subscription_id=one)


@pytest.mark.req("orbit:WSS-08")
def test_the_unlocked_check_sees_what_a_claim_could_do(orbit_scene: Scene) -> None:
    """A journal row with room, something ready, a lease that ran out; not a full window, a backoff, or a pause."""
    one = orbit_scene.subscribe(max_pending=2)

    def waiting() -> bool:
        return orbit_scene.value("select orbit.delivery_waiting_v1(%s, null, null)", one)

    assert not waiting()
    orbit_scene.results(3)
    assert waiting()
    leases = orbit_scene.lease(one).leases
    assert not waiting()
    orbit_scene.age_lease(leases[0].delivery_id)
    assert waiting()
    orbit_scene.lease(one)
    assert delivery(orbit_scene, leases[0].delivery_id)["state"] == "PENDING"
    assert not waiting()
    orbit_scene.age_backoff(leases[0].delivery_id)
    assert waiting()
    orbit_scene.run("update orbit.event_subscriptions set status = 'PAUSED', revision = 2")
    assert not waiting()
    assert not orbit_scene.value("select orbit.delivery_waiting_v1('sub_none', null, null)")


def buffers(connection: Connection[Any], call: Callable[[], object]) -> int:
    """Pages of the delivery table and its indexes that a call touches."""
    question: LiteralString = (
        "select sum(pg_stat_get_xact_blocks_fetched(c.oid)) from pg_class as c"
        " where c.relnamespace = 'orbit'::regnamespace and c.relname like 'event\\_deliveries%'"
    )
    with connection.transaction():
        before = connection.execute(question).fetchone()
        call()
        after = connection.execute(question).fetchone()
    assert before
    assert after
    return int(after[0] or 0) - int(before[0] or 0)


Consume = Callable[[int], Awaitable[None]]


@pytest.mark.req("orbit:T-R23", "orbit:T-R25", "orbit:LSE-35", "orbit:GEN-11", "orbit:JRN-20")
def test_claims_cost_the_same_behind_dead_entries_that_an_old_snapshot_keeps(
    orbit_database: TestDatabase, orbit_scene: Scene
) -> None:
    """Plans of empty tables; 3,000 deliveries later, none of them vacuumed, a bounded claim reads as much as ever."""
    scene, count = orbit_scene, 3000
    one = scene.subscribe(max_pending=100)
    with (
        psycopg.connect(orbit_database.dsn) as reader,
        psycopg.connect(orbit_database.dsn, autocommit=True) as consumer,
    ):
        reader.execute("set transaction isolation level repeatable read")
        reader.execute("select 1 from orbit.event_deliveries")
        who, secrets = scene.owner.sha256, [new_secret()[1] for _ in range(32)]
        floors: list[Any] = [None, None, 0]
        leased: list[str] = []
        claim_costs: list[int] = []
        ack_costs: list[int] = []
        found: list[tuple[Any, ...]] = []

        def lease() -> None:
            found[:] = consumer.execute(
                "select claimed_at, event_sequence, delivery_id, lease_epoch"
                " from orbit.delivery_claim_v1(%s, %s, %s, 32, 32, %s, %s, %s, %s)",
                (who, one, CONNECTION, secrets, *floors),
            ).fetchall()

        def acknowledge() -> None:
            consumer.execute(
                "select * from orbit.delivery_acknowledge_v1(%s, %s, %s, %s::text[], %s::bigint[], %s::bytea[])",
                (who, one, CONNECTION, [row[2] for row in found], [row[3] for row in found], secrets[: len(found)]),
            )

        lease()
        seed_results(scene, 1, count)
        while len(leased) < count:
            claim_costs.append(buffers(consumer, lease))
            leased += [row[2] for row in found]
            floors[:] = [found[0][0], "infinity", found[0][1]]
            ack_costs.append(buffers(consumer, acknowledge))
        assert len(set(leased)) == count
        full = len(claim_costs) - 2
        early, late = max(claim_costs[1:6]), max(claim_costs[full - 5 : full])
        assert late <= 2 * early, claim_costs
        assert max(ack_costs[full - 5 : full]) <= 2 * max(ack_costs[1:6]), ack_costs
    assert scene.value("select pg_relation_size('orbit.event_stream_locks') / 8192") == 1
    assert_invariants(scene.connection)
