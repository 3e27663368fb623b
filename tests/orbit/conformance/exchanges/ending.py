"""Pings and ends (WSS-12, WSS-13)."""

from __future__ import annotations

from tests.orbit.conformance.registry import exchange
from tests.orbit.conformance.world import World

TRIES_MAX = 100


@exchange("WSS-12")
async def a_ping_is_answered_with_the_time(world: World) -> None:
    """Each with its own request id."""
    async with world.greeted(await world.any_subscription()) as client:
        for _ in range(3):
            request_id = await client.send("ping")
            await client.expect("pong", request_id=request_id)


@exchange("WSS-12")
async def a_ping_is_answered_while_a_pull_waits(world: World) -> None:
    """A waiting pull holds nothing up."""
    async with world.greeted(await world.any_subscription()) as client:
        await client.send("pull", max=1, wait_ms=30_000)
        request_id = await client.send("ping")
        await client.expect("pong", request_id=request_id)


@exchange("WSS-12")
async def a_websocket_ping_is_answered(world: World) -> None:
    """The protocol below answers for itself."""
    async with world.greeted(await world.any_subscription()) as client:
        await (await client.connection.ping())


@exchange("WSS-13")
async def a_normal_close_is_answered(world: World) -> None:
    """1000 comes back."""
    async with world.greeted(await world.any_subscription()) as client:
        await client.close()
        assert client.connection.close_code == 1000


@exchange("WSS-13")
async def a_close_during_a_waiting_pull_is_answered_at_once(world: World) -> None:
    """The pull ends with the connection."""
    async with world.greeted(await world.any_subscription()) as client:
        await client.send("pull", max=1, wait_ms=30_000)
        await client.close()
        assert client.connection.close_code == 1000


@exchange("WSS-13", "F52")
async def closing_changes_no_delivery(world: World) -> None:
    """The lease runs on: another connection does not get the delivery, and the proof stays good."""
    subscription_id = await world.subscription()
    async with world.greeted(subscription_id) as client:
        await world.results(1)
        (delivery,) = await client.gather(1)
    async with world.greeted(subscription_id) as other:
        assert (await other.pull())[0] == []
        assert (await other.ack(delivery))["outcome"] == "ACKED"


@exchange("WSS-10", "LSE-36")
async def acks_sent_before_a_close_count(world: World) -> None:
    """The client does not wait for the answers; what it sent was received."""
    subscription_id = await world.subscription()
    async with world.greeted(subscription_id) as client:
        await world.results(5)
        for delivery in await client.gather(5):
            await client.send_ack(delivery)
    async with world.greeted(subscription_id) as other:
        pending = 5
        for _ in range(TRIES_MAX):  # the server may still be settling them
            if (pending := (await world.state(subscription_id))["pending_count"]) == 0:
                break
            assert (await other.pull(1, 50))[0] == []
        assert pending == 0
