"""Pulls and deliveries (WSS-07, WSS-08, WSS-09)."""

from __future__ import annotations

import asyncio
import json
import re

from tests.orbit.conformance.registry import exchange
from tests.orbit.conformance.world import World


@exchange("WSS-07", "WSS-09", "T-E10")
async def a_pull_brings_what_is_there_and_ends(world: World) -> None:
    """Deliveries in ascending sequence, then the end, which counts them."""
    async with world.greeted() as client:
        sequences = await world.results(3)
        deliveries, done = await client.pull()
        assert [delivery["sequence"] for delivery in deliveries] == sorted(sequences)
        assert (done["delivered"], done["reason"], done["pending_count"]) == (3, "DELIVERED", 3)
        for delivery in deliveries:
            assert delivery["subscription_id"] == client.hello["subscription_id"]
            assert (delivery["lease_epoch"], delivery["attempts"], delivery["attempt_budget"]) == (1, 1, 20)
            assert delivery["snapshot"]["queue_id"] == client.hello["queue_id"]
        assert len({delivery["lease_secret"] for delivery in deliveries}) == 3


@exchange("WSS-07")
async def an_empty_pull_ends_at_once(world: World) -> None:
    """Without `wait_ms` nothing is waited for."""
    async with world.greeted() as client:
        deliveries, done = await client.pull(1)
        assert (deliveries, done["reason"], done["pending_count"], done["max_pending"]) == ([], "EMPTY", 0, 100)


@exchange("WSS-07")
async def a_waiting_pull_ends_when_its_time_is_over(world: World) -> None:
    """Not before, and with nothing."""
    async with world.greeted() as client:
        started = asyncio.get_running_loop().time()
        deliveries, done = await client.pull(1, 300)
        assert (deliveries, done["reason"]) == ([], "EMPTY")
        assert asyncio.get_running_loop().time() - started >= 0.3


@exchange("WSS-08", "WSS-17", "F57")
async def a_waiting_pull_brings_what_comes_meanwhile(world: World) -> None:
    """A result confirmed while the pull waits ends it."""
    async with world.greeted() as client:
        request_id = await client.send("pull", max=32, wait_ms=20_000)
        await client.send("ping")
        await client.expect("pong")  # the pull is open now
        sequences = await world.results(1)
        deliveries, done = await client.pulled(request_id)
        assert [delivery["sequence"] for delivery in deliveries] == sequences
        assert done["reason"] == "DELIVERED"


@exchange("WSS-07")
async def a_pull_brings_no_more_than_its_credit(world: World) -> None:
    """Two pulls of 2 take what three results are."""
    async with world.greeted() as client:
        sequences = await world.results(3)
        first, _ = await client.pull(2)
        second, _ = await client.pull(2)
        assert [delivery["sequence"] for delivery in first + second] == sorted(sequences)
        assert (len(first), len(second)) == (2, 1)


@exchange("WSS-07")
async def nothing_is_delivered_without_a_pull(world: World) -> None:
    """Results wait for credit."""
    async with world.greeted() as client:
        await world.results(2)
        await client.send("ping")
        await client.expect("pong")
        deliveries, _ = await client.pull()
        assert len(deliveries) == 2


@exchange("WSS-07", "T-N22")
async def a_second_pull_is_refused_and_the_first_goes_on(world: World) -> None:
    """Not fatal: the first pull still brings what comes."""
    async with world.greeted() as client:
        first = await client.send("pull", max=1, wait_ms=20_000)
        second = await client.send("pull", max=1)
        await client.expect("error", request_id=second, code="PULL_IN_PROGRESS", fatal=False)
        await world.results(1)
        deliveries, _ = await client.pulled(first)
        assert len(deliveries) == 1


@exchange("WSS-07")
async def a_pull_may_follow_the_end_of_another_at_once(world: World) -> None:
    """Ten in a row, each sent as soon as the one before has ended."""
    async with world.greeted() as client:
        for _ in range(10):
            await client.pull(1)


@exchange("LSE-26", "WSS-07", "T-R10")
async def the_capacity_limits_what_is_leased(world: World) -> None:
    """Asked for 32, a connection of capacity 2 gets 2, then nothing until it acknowledges."""
    async with world.greeted(capacity=2) as client:
        await world.results(3)
        deliveries, _ = await client.pull()
        assert len(deliveries) == 2
        assert (await client.pull())[1]["reason"] == "CAPACITY_FULL"
        await client.ack(deliveries[0])
        assert len((await client.pull())[0]) == 1


@exchange("WSS-07", "LSE-26")
async def an_ack_ends_the_wait_of_a_full_connection(world: World) -> None:
    """A pull that waits for room goes on when there is some."""
    async with world.greeted(capacity=1) as client:
        await world.results(2)
        (held,), _ = await client.pull()
        request_id = await client.send("pull", max=1, wait_ms=20_000)
        await client.ack(held)
        deliveries, _ = await client.pulled(request_id)
        assert len(deliveries) == 1


@exchange("LSE-10", "WSS-06")
async def each_connection_has_its_own_capacity(world: World) -> None:
    """What one holds does not count for the other, and nothing is leased twice."""
    subscription_id = await world.subscription()
    async with world.greeted(subscription_id, 1) as one, world.greeted(subscription_id, 1) as other:
        await world.results(2)
        (first,), _ = await one.pull()
        (second,), _ = await other.pull()
        assert first["delivery_id"] != second["delivery_id"]


@exchange("WSS-07", "MAT-04", "T-E05")
async def a_full_window_is_named(world: World) -> None:
    """`max_pending` deliveries are out; the rest stays in the journal until one is acknowledged."""
    subscription_id = await world.subscription(max_pending=2)
    async with world.greeted(subscription_id) as client:
        sequences = await world.results(3)
        deliveries, done = await client.pull()
        assert (len(deliveries), done["pending_count"], done["max_pending"]) == (2, 2, 2)
        assert (await client.pull())[1]["reason"] == "WINDOW_FULL"
        await client.ack(deliveries[1])
        (last,), done = await client.pull()
        assert (last["sequence"], done["pending_count"]) == (max(sequences), 2)


@exchange("WSS-07", "PAU-01", "PAU-09")
async def a_paused_subscription_delivers_nothing(world: World) -> None:
    """The pull says why."""
    subscription_id = await world.subscription()
    async with world.greeted(subscription_id) as client:
        await world.results(1)
        await world.change(subscription_id, "pause")
        assert (await client.pull())[1]["reason"] == "PAUSED"


@exchange("WSS-17", "PAU-04", "PAU-09")
async def resuming_ends_the_wait_of_a_pull(world: World) -> None:
    """A pull that waits at a paused subscription brings the backlog after the resume."""
    subscription_id = await world.subscription()
    async with world.greeted(subscription_id) as client:
        await world.change(subscription_id, "pause")
        sequences = await world.results(1)
        request_id = await client.send("pull", max=1, wait_ms=20_000)
        await client.send("ping")
        await client.expect("pong")
        await world.change(subscription_id, "resume")
        deliveries, _ = await client.pulled(request_id)
        assert [delivery["sequence"] for delivery in deliveries] == sequences


@exchange("MAT-02", "SUB-02")
async def only_the_types_of_the_subscription_come(world: World) -> None:
    """Other results pass."""
    subscription_id = await world.subscription(types=["task.failed"])
    async with world.greeted(subscription_id) as client:
        await world.results(2)
        (failed,) = await world.results(1, outcome="failed")
        deliveries = await client.gather(1)
        assert [(delivery["sequence"], delivery["event_type"]) for delivery in deliveries] == [(failed, "task.failed")]
        assert deliveries[0]["snapshot"]["state"] == "failed"


@exchange("MAT-17", "T-E05")
async def a_pull_without_wait_scans_on_to_what_matches(world: World) -> None:
    """More than one scan of 100 rows lies between the cursor and the only result that matches."""
    subscription_id = await world.subscription(types=["task.failed"])
    async with world.greeted(subscription_id) as client:
        await world.results(105)
        (failed,) = await world.results(1, outcome="failed")
        deliveries, done = await client.pull(1)
        assert [delivery["sequence"] for delivery in deliveries] == [failed]
        assert done["reason"] == "DELIVERED"


@exchange("WSS-09", "T-P05", "SRC-19")
async def a_result_arrives_byte_for_byte(world: World) -> None:
    """Numbers, escapes, spaces and order as the worker sent them, at the end of the frame."""
    texts = [
        '{"order_no":12345678901234567890}',
        "9" * 5000,
        "-0",
        "1.00",
        "1E+2",
        '"\\u0000\\ud800 \\u00e9 é"',
        '{"b" :  [1 , 2],"a":1,"a":2}',
        "null",
    ]
    async with world.greeted() as client:
        for text in texts:
            await world.results(1, result=text)
        await client.gather(len(texts))
        frames = [frame for frame in client.received if frame.startswith('{"type":"delivery"')]
        assert [re.sub(r'^.*?"current_attempt_id":"[^"]*","result":', "", frame)[:-2] for frame in frames] == texts


@exchange("WSS-09")
async def a_snapshot_is_the_last_member(world: World) -> None:
    """So that its text is easy to slice."""
    async with world.greeted() as client:
        await world.results(1)
        (delivery,) = await client.gather(1)
        assert list(delivery)[-1] == "snapshot"
        assert list(delivery["snapshot"])[-1] == "result"


@exchange("WSS-16", "T-N18")
async def a_result_of_one_mebibyte_is_delivered(world: World) -> None:
    """The largest result fits into a frame of 2 MiB."""
    async with world.greeted() as client:
        text = json.dumps("x" * (1_048_576 - 2))
        await world.results(1, result=text)
        (delivery,) = await client.gather(1)
        assert len(delivery["snapshot"]["result"]) == 1_048_574


@exchange("WSS-07", "LSE-26")
async def thirty_two_deliveries_fit_one_pull(world: World) -> None:
    """The greatest credit and the greatest capacity."""
    async with world.greeted() as client:
        await world.results(33)
        assert len((await client.pull(32))[0]) == 32


@exchange("SUB-08", "WSS-07")
async def a_subscription_may_start_in_the_past(world: World) -> None:
    """What came after `from_sequence` is delivered, in order and once each."""
    sequences = await world.results(5)
    subscription_id = await world.subscription(from_sequence=sequences[1])
    async with world.greeted(subscription_id) as client:
        deliveries, _ = await client.pull()
        assert [delivery["sequence"] for delivery in deliveries] == sequences[2:]
        assert (await client.pull())[0] == []
