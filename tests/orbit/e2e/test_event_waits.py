"""Pulls that wait: who wakes them, what they ask by themselves, and what ends them (WSS-08, WSS-17, LSE-35)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

from orbit.server.ws.connection import SessionLimits
from orbit.subscriptions.deliveries import Deliveries
from tests.kit.database import TestDatabase
from tests.kit.eventually import eventually_async
from tests.kit.orbit.events import event_server
from tests.kit.orbit.scene import QUEUE, Scene
from tests.orbit.conformance.client import EventClient

NEVER = 3600.0
"""A repetition that no test waits for: only a wake-up can end a pull."""


class Counted:
    """Counts the claims and the unlocked checks of the server.

    Attributes:
        claims: how many claims ran.
        checks: how many unlocked checks ran.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.claims = 0
        self.checks = 0
        claim, waiting = Deliveries.claim, Deliveries.waiting

        async def counted_claim(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - handed on
            found = await claim(*arguments, **named)
            self.claims += 1
            return found

        async def counted_waiting(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - handed on
            found = await waiting(*arguments, **named)
            self.checks += 1
            return found

        monkeypatch.setattr(Deliveries, "claim", counted_claim)
        monkeypatch.setattr(Deliveries, "waiting", counted_waiting)


async def waiting_pull(client: EventClient, counted: Counted) -> str:
    """Open a pull of 20 seconds and wait until its first claim has found nothing."""
    before = counted.claims
    request_id = await client.send("pull", max=32, wait_ms=20_000)
    await eventually_async(lambda: counted.claims > before, what="the first claim")
    return request_id


@pytest.mark.req("orbit:WSS-17", "F57")
async def test_a_result_of_this_process_wakes_the_pull_at_once(
    orbit_database: TestDatabase, orbit_scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing else could have ended it: the pull asks by itself once in an hour."""
    scene, counted = orbit_scene, Counted(monkeypatch)
    async with (
        event_server(orbit_database.dsn, SessionLimits(repeat=NEVER)) as events,
        events.greeted(scene, scene.subscribe()) as client,
    ):
        request_id = await waiting_pull(client, counted)
        await events.result(scene)
        deliveries, _ = await client.pulled(request_id)
    assert len(deliveries) == 1
    assert counted.checks == 0


@pytest.mark.req("orbit:WSS-17")
async def test_a_resume_and_a_retry_of_this_process_wake_the_pull(
    orbit_database: TestDatabase, orbit_scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both change what can be delivered without a new result."""
    scene, counted = orbit_scene, Counted(monkeypatch)
    subscription_id = scene.subscribe(max_attempts=1)
    owner = scene.owner.digest
    async with (
        event_server(orbit_database.dsn, SessionLimits(repeat=NEVER), sweeping=True) as events,
        events.greeted(scene, subscription_id) as client,
    ):
        subscriptions = events.services.subscriptions
        await subscriptions.pause(
            owner,
            subscription_id=subscription_id,
            expected_revision=1,
            reason=None,
            idempotency_key="k1",
            request_sha256="1" * 64,
        )
        scene.result()
        request_id = await waiting_pull(client, counted)
        await subscriptions.resume(
            owner,
            subscription_id=subscription_id,
            expected_revision=2,
            reason=None,
            idempotency_key="k2",
            request_sha256="2" * 64,
        )
        (delivery,), _ = await client.pulled(request_id)
        scene.age_lease(delivery["delivery_id"])
        assert (await client.pull())[0] == []
        request_id = await waiting_pull(client, counted)
        revision = scene.value("select revision from orbit.event_deliveries")
        await subscriptions.retry(
            owner,
            subscription_id=subscription_id,
            delivery_id=delivery["delivery_id"],
            expected_revision=revision,
            reason="once more",
            additional_attempts=1,
            idempotency_key="k3",
            request_sha256="3" * 64,
        )
        (again,), _ = await client.pulled(request_id)
    assert again["lease_epoch"] == 2


@pytest.mark.req("orbit:WSS-07", "orbit:LSE-26")
@pytest.mark.parametrize("full", ["capacity", "window"])
async def test_an_ack_wakes_the_pull_of_its_connection_that_waits_for_room(
    full: str, orbit_database: TestDatabase, orbit_scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Full capacity or full window: what the ACK freed is used at once, not at the next repetition."""
    scene, counted = orbit_scene, Counted(monkeypatch)
    subscription_id = scene.subscribe(max_pending=1 if full == "window" else 10)
    scene.results(2)
    async with (
        event_server(orbit_database.dsn, SessionLimits(repeat=NEVER)) as events,
        events.greeted(scene, subscription_id, 1 if full == "capacity" else 10) as client,
    ):
        (held,), _ = await client.pull()
        request_id = await waiting_pull(client, counted)
        await client.ack(held)
        async with asyncio.timeout(10):  # by itself the pull looks again when its 20 seconds are over
            (delivery,), _ = await client.pulled(request_id)
    assert delivery["sequence"] == 2


@pytest.mark.req("orbit:WSS-08", "orbit:WSS-17")
async def test_a_result_of_another_process_is_found_by_the_repetition(
    orbit_database: TestDatabase, orbit_scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody wakes this process; the unlocked check sees the journal row."""
    scene, counted = orbit_scene, Counted(monkeypatch)
    async with (
        event_server(orbit_database.dsn, SessionLimits(repeat=0.02)) as events,
        events.greeted(scene, scene.subscribe()) as client,
    ):
        request_id = await waiting_pull(client, counted)
        scene.result()
        deliveries, _ = await client.pulled(request_id)
    assert len(deliveries) == 1
    assert counted.checks >= 1


@pytest.mark.req("orbit:WSS-08", "orbit:T-E05")
async def test_results_of_other_queues_cause_no_claim(
    orbit_database: TestDatabase, orbit_scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pull looks many times, without a lock; only its first claim ran."""
    scene, counted = orbit_scene, Counted(monkeypatch)
    scene.add_queue("other")
    async with (
        event_server(orbit_database.dsn, SessionLimits(repeat=0.01)) as events,
        events.greeted(scene, scene.subscribe()) as client,
    ):
        request_id = await waiting_pull(client, counted)
        scene.results(3, queue="other")
        seen = counted.checks
        await eventually_async(lambda: counted.checks > seen + 5, what="more checks")
        assert counted.claims == 1
        scene.result()
        assert len((await client.pulled(request_id))[0]) == 1


@pytest.mark.req("orbit:WSS-08", "orbit:LSE-12")
async def test_a_lease_that_runs_out_is_found_by_a_waiting_pull(
    orbit_database: TestDatabase, orbit_scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another connection held it; the pull recycles and, after the backoff, delivers it."""
    scene, counted = orbit_scene, Counted(monkeypatch)
    subscription_id = scene.subscribe()
    scene.result()
    (lease,) = scene.lease(subscription_id).leases
    async with (
        event_server(orbit_database.dsn, SessionLimits(repeat=0.02), sweeping=True) as events,
        events.greeted(scene, subscription_id) as client,
    ):
        request_id = await waiting_pull(client, counted)
        scene.age_lease(lease.delivery_id)
        await eventually_async(
            lambda: scene.value("select state from orbit.event_deliveries") == "PENDING", what="the recycling"
        )
        scene.age_backoff(lease.delivery_id)
        (delivery,), _ = await client.pulled(request_id)
    assert delivery["lease_epoch"] == 2


@pytest.mark.req("orbit:T-R26", "orbit:LSE-35")
async def test_a_delivery_below_the_bounds_is_found_soon(
    orbit_database: TestDatabase, orbit_scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This process has leased higher sequences since; somebody else recycles a lower one: it comes within 3 s."""
    scene, counted = orbit_scene, Counted(monkeypatch)
    subscription_id = scene.subscribe()
    scene.results(3)
    (low,) = scene.lease(subscription_id, requested=1).leases
    async with event_server(orbit_database.dsn) as events, events.greeted(scene, subscription_id) as client:
        for delivery in await client.gather(2):
            await client.ack(delivery)
        request_id = await waiting_pull(client, counted)
        scene.age_lease(low.delivery_id)
        scene.lease(subscription_id, connection_id="conn_other")  # another process recycles it, and leases nothing
        scene.age_backoff(low.delivery_id)
        async with asyncio.timeout(3):
            (delivery,), _ = await client.pulled(request_id)
    assert delivery["delivery_id"] == low.delivery_id


@pytest.mark.req("orbit:T-E05", "orbit:MAT-04", "orbit:MAT-05", "orbit:MAT-07", "orbit:MAT-13", "orbit:MAT-17")
async def test_a_small_window_brings_a_mixed_journal_bit_by_bit(
    orbit_database: TestDatabase, orbit_scene: Scene
) -> None:
    """250 results of two queues and two types, a window of 3: never more is out; each wanted one comes, in order."""
    scene = orbit_scene
    scene.add_queue("other")
    subscription_id = scene.subscribe(types=["task.failed"], max_pending=3)
    wanted: list[int] = []
    for number in range(250):
        queue, outcome = (
            ("other", "failed") if number % 5 == 0 else (QUEUE, "failed" if number % 25 == 1 else "succeeded")
        )
        receipt = scene.result(queue=queue, outcome=outcome)
        if queue == QUEUE and outcome == "failed":
            wanted.append(receipt["sequence"])
    seen: list[int] = []
    async with event_server(orbit_database.dsn) as events, events.greeted(scene, subscription_id) as client:
        while True:
            deliveries, done = await client.pull()
            if not deliveries:
                break
            assert done["pending_count"] <= 3
            seen += [delivery["sequence"] for delivery in deliveries]
            await answered(client, reversed(deliveries))
    assert (seen, done["reason"], done["pending_count"]) == (wanted, "EMPTY", 0)
    assert scene.value("select cursor_sequence from orbit.event_subscriptions") == scene.head()


@pytest.mark.req("F57", "orbit:WSS-13")
async def test_nothing_is_lost_between_connections(orbit_database: TestDatabase, orbit_scene: Scene) -> None:
    """A writer goes on while a consumer comes and goes after every pull: each result exactly once, in order."""
    scene = orbit_scene
    subscription_id = scene.subscribe()
    wanted = 60
    seen: list[int] = []
    async with event_server(orbit_database.dsn, SessionLimits(repeat=NEVER)) as events:

        async def write() -> None:
            for _ in range(wanted):
                await events.result(scene)
                await asyncio.sleep(0)

        writing = asyncio.create_task(write())
        while len(seen) < wanted:
            async with events.greeted(scene, subscription_id) as client:
                deliveries, _ = await client.pull(4, 20_000)
                await answered(client, deliveries)
                seen += [delivery["sequence"] for delivery in deliveries]
        await writing
    assert seen == list(range(1, wanted + 1))


async def answered(client: EventClient, deliveries: Iterable[dict[str, Any]]) -> None:
    """Acknowledge every one."""
    for delivery in deliveries:
        assert (await client.ack(delivery))["duplicate"] is False
