"""ACKs (WSS-10, LSE-25, LSE-36, ERR-01)."""

from __future__ import annotations

import json

from tests.orbit.conformance.client import Frame
from tests.orbit.conformance.registry import exchange
from tests.orbit.conformance.world import World

OTHER_PROOF = "A" * 43


@exchange("WSS-10", "LSE-03")
async def an_ack_counts_once(world: World) -> None:
    """It frees the window."""
    async with world.greeted() as client:
        await world.results(1)
        (delivery,) = await client.gather(1)
        answer = await client.ack(delivery)
        assert (answer["outcome"], answer["duplicate"], answer["code"]) == ("ACKED", False, None)
        assert answer["delivery_id"] == delivery["delivery_id"]
        assert (await world.state(client.hello["subscription_id"]))["pending_count"] == 0


@exchange("WSS-10", "LSE-04", "T-R08", "T-C07")
async def a_repeated_ack_is_a_duplicate_with_the_first_time(world: World) -> None:
    """On the same connection and on another one."""
    async with world.greeted() as client:
        await world.results(1)
        (delivery,) = await client.gather(1)
        first = await client.ack(delivery)
        again = await client.ack(delivery)
        async with world.greeted(client.hello["subscription_id"]) as other:
            elsewhere = await other.ack(delivery)
    assert [again["duplicate"], elsewhere["duplicate"]] == [True, True]
    assert again["acked_at"] == elsewhere["acked_at"] == first["acked_at"]


@exchange("LSE-30", "WSS-13", "T-N14")
async def a_proof_outlives_its_connection(world: World) -> None:
    """The connection that leased has closed; another one of the credential acknowledges."""
    subscription_id = await world.subscription()
    async with world.greeted(subscription_id) as client:
        await world.results(1)
        (delivery,) = await client.gather(1)
    async with world.greeted(subscription_id) as other:
        assert (await other.ack(delivery))["outcome"] == "ACKED"


@exchange("LSE-18", "LSE-25", "ERR-01", "T-N15")
async def every_wrong_proof_gets_the_same_answer(world: World) -> None:
    """A wrong epoch, a wrong secret, both, and an epoch that no delivery has had."""
    async with world.greeted() as client:
        await world.results(1)
        (delivery,) = await client.gather(1)
        answers: list[Frame] = [
            await client.ack(delivery, **wrong)
            for wrong in (
                {"lease_epoch": 2},
                {"lease_secret": OTHER_PROOF},
                {"lease_epoch": 2, "lease_secret": OTHER_PROOF},
                {"lease_epoch": 9_223_372_036_854_775_807},
            )
        ]
        seen = {json.dumps({**answer, "request_id": ""}) for answer in answers}
        assert len(seen) == 1
        assert (answers[0]["outcome"], answers[0]["code"]) == ("REJECTED", "DELIVERY_LEASE_LOST")
        assert (answers[0]["acked_at"], answers[0]["duplicate"]) == (None, False)
        assert (await client.ack(delivery))["outcome"] == "ACKED"


@exchange("LSE-25", "T-N15")
async def a_wrong_proof_of_an_acknowledged_delivery_is_lost(world: World) -> None:
    """The proof is compared before the state is told."""
    async with world.greeted() as client:
        await world.results(1)
        (delivery,) = await client.gather(1)
        await client.ack(delivery)
        assert (await client.ack(delivery, lease_secret=OTHER_PROOF))["code"] == "DELIVERY_LEASE_LOST"


@exchange("LSE-25", "T-N15")
async def an_unknown_delivery_is_not_found(world: World) -> None:
    """The connection stays."""
    async with world.greeted() as client:
        unknown = {"delivery_id": "dlv_" + "0" * 32, "lease_epoch": 1, "lease_secret": OTHER_PROOF}
        assert (await client.ack(unknown))["code"] == "DELIVERY_NOT_FOUND"
        await client.send("ping")
        await client.expect("pong")


@exchange("LSE-25", "T-N15")
async def a_delivery_of_another_subscription_is_not_found(world: World) -> None:
    """Also with its right proof, and also of the same credential."""
    async with world.greeted() as client, world.greeted() as other:
        await world.results(1)
        (delivery,) = await client.gather(1)
        assert (await other.ack(delivery))["code"] == "DELIVERY_NOT_FOUND"
        assert (await client.ack(delivery))["duplicate"] is False


@exchange("AUT-03", "T-N03")
async def a_stolen_proof_is_worth_nothing(world: World) -> None:
    """Another credential, serving its own subscription, cannot acknowledge with it."""
    async with world.greeted() as client, world.connect(world.foreign_token) as thief:
        await thief.greet(await world.subscription(token=world.foreign_token))
        await world.results(1)
        (delivery,) = await client.gather(1)
        assert (await thief.ack(delivery))["code"] == "DELIVERY_NOT_FOUND"
        assert (await client.ack(delivery))["duplicate"] is False


@exchange("MAT-08", "WSS-10", "T-E06")
async def acks_may_come_in_any_order(world: World) -> None:
    """Each stands for itself; none acknowledges the ones before."""
    async with world.greeted() as client:
        await world.results(3)
        first, second, third = await client.gather(3)
        await client.ack(third)
        await client.ack(first)
        assert (await world.state(client.hello["subscription_id"]))["pending_count"] == 1
        assert (await client.ack(second))["duplicate"] is False


@exchange("LSE-36", "WSS-10", "T-R24")
async def a_burst_is_answered_in_order_as_one_by_one(world: World) -> None:
    """32 frames in one burst: good, duplicate, stale epoch, wrong secret, already acknowledged, unknown, foreign."""
    async with world.greeted() as client, world.greeted() as other:
        await world.results(26)
        mine = await client.gather(26)
        (foreign,) = await other.gather(1)
        already, *good = mine
        await client.ack(already)
        unknown = {"delivery_id": "dlv_unknown", "lease_epoch": 1, "lease_secret": OTHER_PROOF}
        burst: list[tuple[Frame, dict[str, object], tuple[object, ...]]] = [
            (good[0], {}, ("ACKED", False, None)),
            (good[0], {}, ("ACKED", True, None)),
            (good[1], {"lease_epoch": 7}, ("REJECTED", False, "DELIVERY_LEASE_LOST")),
            (good[2], {"lease_secret": OTHER_PROOF}, ("REJECTED", False, "DELIVERY_LEASE_LOST")),
            (already, {}, ("ACKED", True, None)),
            (unknown, {}, ("REJECTED", False, "DELIVERY_NOT_FOUND")),
            (foreign, {}, ("REJECTED", False, "DELIVERY_NOT_FOUND")),
            *((delivery, {}, ("ACKED", False, None)) for delivery in good[1:]),
            (good[0], {}, ("ACKED", True, None)),
        ]
        assert len(burst) == 32
        frames: list[str] = []
        for delivery, wrong, _ in burst:
            proof = {name: delivery[name] for name in ("delivery_id", "lease_epoch", "lease_secret")}
            frames.append(json.dumps({"type": "ack", "request_id": client.request_id()} | proof | wrong))
        await client.send_text(*frames)
        times: set[str] = set()
        for frame, (_, _, expected) in zip(frames, burst, strict=True):
            answer = await client.expect("ack_result", request_id=json.loads(frame)["request_id"])
            assert (answer["outcome"], answer["duplicate"], answer["code"]) == expected
            if answer["delivery_id"] == good[0]["delivery_id"]:
                times.add(answer["acked_at"])
        assert len(times) == 1
        assert (await world.state(client.hello["subscription_id"]))["pending_count"] == 0


@exchange("WSS-10", "LSE-36")
async def hundreds_of_acks_at_once_are_all_answered(world: World) -> None:
    """More than the server keeps unsettled; the reading slows down, nothing is lost, the order holds."""
    async with world.greeted() as client:
        await world.results(1)
        (delivery,) = await client.gather(1)
        proof = {name: delivery[name] for name in ("delivery_id", "lease_epoch", "lease_secret")}
        frames = [json.dumps({"type": "ack", "request_id": f"a{number}"} | proof) for number in range(700)]
        await client.send_text(*frames)
        for number in range(700):
            await client.expect("ack_result", request_id=f"a{number}", outcome="ACKED", duplicate=number > 0)


@exchange("WSS-10", "WSS-07")
async def acks_are_settled_while_a_pull_waits(world: World) -> None:
    """The pull stays open."""
    async with world.greeted() as client:
        await world.results(1)
        (delivery,) = await client.gather(1)
        request_id = await client.send("pull", max=1, wait_ms=20_000)
        assert (await client.ack(delivery))["outcome"] == "ACKED"
        await world.results(1)
        assert len((await client.pulled(request_id))[0]) == 1


@exchange("LSE-33", "PAU-03", "T-E06")
async def a_paused_subscription_takes_acks(world: World) -> None:
    """What is in hand can be given back."""
    async with world.greeted() as client:
        await world.results(1)
        (delivery,) = await client.gather(1)
        await world.change(client.hello["subscription_id"], "pause")
        assert (await client.ack(delivery))["outcome"] == "ACKED"


@exchange("WSS-10")
async def an_ack_needs_no_pull_on_its_connection(world: World) -> None:
    """A connection that only acknowledges."""
    subscription_id = await world.subscription()
    async with world.greeted(subscription_id) as client, world.greeted(subscription_id, 1) as other:
        await world.results(1)
        (delivery,) = await client.gather(1)
        assert (await other.ack(delivery))["outcome"] == "ACKED"


@exchange("LSE-26", "WSS-10")
async def a_rejected_ack_frees_no_room(world: World) -> None:
    """Only an effective one does."""
    async with world.greeted(capacity=1) as client:
        await world.results(2)
        (held,), _ = await client.pull()
        await client.ack(held, lease_secret=OTHER_PROOF)
        assert (await client.pull())[1]["reason"] == "CAPACITY_FULL"
