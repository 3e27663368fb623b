"""`hello` (WSS-05, WSS-06)."""

from __future__ import annotations

import json

from tests.orbit.conformance.registry import exchange
from tests.orbit.conformance.world import World


@exchange("WSS-06")
async def hello_is_answered_with_what_the_subscription_is(world: World) -> None:
    """Status, revision, queue, types and capacity."""
    subscription_id = await world.subscription(types=["task.failed", "task.succeeded"])
    shown = await world.state(subscription_id)
    async with world.connect() as client:
        hello = await client.greet(subscription_id, 8, client="conformance/1")
    assert hello["subscription_id"] == subscription_id
    assert hello["subscription_status"] == shown["status"] == "ACTIVE"
    assert hello["subscription_revision"] == shown["revision"] == 1
    assert hello["queue_id"] == shown["queue_id"]
    assert hello["types"] == shown["types"] == ["task.succeeded", "task.failed"]
    assert (hello["capacity"], hello["lease_seconds"], hello["protocol"]) == (8, 30, "orbit.events.v1")


@exchange("WSS-05", "LSE-11")
async def every_connection_has_its_own_id(world: World) -> None:
    """Two connections of one subscription, each with its own capacity."""
    subscription_id = await world.any_subscription()
    async with world.greeted(subscription_id, 1) as one, world.greeted(subscription_id, 32) as other:
        assert one.hello["connection_id"] != other.hello["connection_id"]
        assert (one.hello["capacity"], other.hello["capacity"]) == (1, 32)


@exchange("WSS-06", "PAU-01")
async def hello_to_a_paused_subscription_says_so(world: World) -> None:
    """The connection stands; only pulls bring nothing."""
    subscription_id = await world.subscription()
    await world.change(subscription_id, "pause")
    async with world.connect() as client:
        assert (await client.greet(subscription_id))["subscription_status"] == "PAUSED"


async def _refuse_first(world: World, text: str, request_id: str | None) -> None:
    async with world.connect() as client:
        await client.send_text(text)
        await client.closed(4400, error="INVALID_MESSAGE", request_id=request_id)


@exchange("WSS-06", "T-N09")
async def a_capacity_out_of_range_is_refused(world: World) -> None:
    """0, 33, fractions and texts."""
    for capacity in (0, 33, -1, 1.5, "8", True, None):
        hello = {"type": "hello", "request_id": "r1", "subscription_id": "sub_1", "capacity": capacity}
        await _refuse_first(world, json.dumps(hello), "r1")


@exchange("WSS-05", "LSE-11", "T-N09")
async def hello_cannot_name_a_connection_id(world: World) -> None:
    """There is no member for it, and an unknown member is refused."""
    hello = {"type": "hello", "request_id": "r1", "subscription_id": "sub_1", "capacity": 1, "connection_id": "conn_1"}
    await _refuse_first(world, json.dumps(hello), "r1")


@exchange("WSS-06", "T-N22")
async def the_first_frame_must_be_hello(world: World) -> None:
    """Every other frame ends the connection, a ping too."""
    for frame in (
        {"type": "ping", "request_id": "r1"},
        {"type": "pull", "request_id": "r1", "max": 1},
        {"type": "ack", "request_id": "r1", "delivery_id": "d", "lease_epoch": 1, "lease_secret": "A" * 43},
    ):
        await _refuse_first(world, json.dumps(frame), "r1")


@exchange("WSS-06", "T-N22")
async def a_second_hello_is_refused(world: World) -> None:
    """One connection serves one subscription."""
    async with world.greeted(await world.any_subscription()) as client:
        members = {"subscription_id": client.hello["subscription_id"], "capacity": 1}
        request_id = await client.send("hello", **members)
        await client.closed(4400, error="INVALID_MESSAGE", request_id=request_id)


@exchange("WSS-06", "AUT-11")
async def a_missing_subscription_closes_with_4404(world: World) -> None:
    """There is nothing to serve."""
    async with world.connect() as client:
        request_id = await client.send("hello", subscription_id="sub_" + "0" * 32, capacity=1)
        await client.closed(4404, error="SUBSCRIPTION_NOT_FOUND", request_id=request_id)


@exchange("AUT-03", "AUT-11", "T-N03")
async def a_subscription_of_another_credential_is_not_found(world: World) -> None:
    """Its existence is not revealed: the answer is the one for a missing subscription."""
    subscription_id = await world.any_subscription()
    async with world.connect(world.foreign_token) as client:
        request_id = await client.send("hello", subscription_id=subscription_id, capacity=1)
        await client.closed(4404, error="SUBSCRIPTION_NOT_FOUND", request_id=request_id)


@exchange("WSS-06")
async def a_client_name_may_hold_any_text(world: World) -> None:
    """Quotes, signs and 128 characters."""
    async with world.connect() as client:
        await client.greet(await world.any_subscription(), 1, client='"\\\u0000' + "ä" * 125)


@exchange("WSS-04")
async def members_may_come_in_any_order_with_white_space(world: World) -> None:
    """A frame is JSON, not a text."""
    subscription_id = await world.any_subscription()
    async with world.connect() as client:
        hello = {"capacity": 4, "subscription_id": subscription_id, "request_id": "r9", "type": "hello"}
        await client.send_text("\n" + json.dumps(hello, indent=2) + "\n")
        await client.expect("hello_ok", request_id="r9", capacity=4)
