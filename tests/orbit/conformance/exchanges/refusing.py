"""Frames that break the protocol, after a good `hello` (WSS-04, WSS-11)."""

from __future__ import annotations

import json

from tests.orbit.conformance.client import EventClient
from tests.orbit.conformance.registry import exchange
from tests.orbit.conformance.world import World

PROOF = "A" * 43
GOOD_ACK: dict[str, object] = {
    "type": "ack",
    "request_id": "r7",
    "delivery_id": "dlv_1",
    "lease_epoch": 1,
    "lease_secret": PROOF,
}


async def _refused(world: World, text: str, request_id: str | None) -> EventClient:
    async with world.greeted(await world.any_subscription()) as client:
        await client.send_text(text)
        await client.closed(4400, error="INVALID_MESSAGE", request_id=request_id)
        return client


@exchange("WSS-04", "WSS-11", "T-N22")
async def what_is_no_json_is_refused(world: World) -> None:
    """No request id can be made out, so none is named."""
    for text in ("", "hello", '{"type":"ping"', '{"type":"ping","request_id":"r1"}{}'):
        await _refused(world, text, None)


@exchange("WSS-04", "T-N22")
async def what_is_no_object_is_refused(world: World) -> None:
    """One JSON object per frame."""
    for text in ("null", "1", '"ping"', "[]", '[{"type":"ping","request_id":"r1"}]'):
        await _refused(world, text, None)


@exchange("WSS-04", "T-N22")
async def an_unknown_member_is_refused(world: World) -> None:
    """In every client frame."""
    await _refused(world, json.dumps(GOOD_ACK | {"extra": 1}), "r7")
    await _refused(world, '{"type":"pull","request_id":"r7","max":1,"extra":null}', "r7")
    await _refused(world, '{"type":"ping","request_id":"r7","extra":{}}', "r7")


@exchange("WSS-04")
async def a_member_named_twice_is_refused(world: World) -> None:
    """Readers disagree about which of the two counts."""
    await _refused(world, '{"type":"pull","request_id":"r7","max":1,"max":2}', "r7")
    await _refused(world, json.dumps(GOOD_ACK)[:-1] + ',"lease_epoch":2}', "r7")


@exchange("WSS-04")
async def a_missing_member_is_refused(world: World) -> None:
    """Each member of an ACK is mandatory."""
    for name in ("request_id", "delivery_id", "lease_epoch", "lease_secret"):
        frame = {key: value for key, value in GOOD_ACK.items() if key != name}
        await _refused(world, json.dumps(frame), None if name == "request_id" else "r7")


@exchange("WSS-04")
async def a_frame_without_a_known_type_is_refused(world: World) -> None:
    """Missing, unknown, of the server, or no text."""
    for kind in ("", "nack", "delivery", "pong", "HELLO", None, 1, ["ack"]):
        await _refused(world, json.dumps({"type": kind, "request_id": "r7"}), "r7")
    await _refused(world, '{"request_id":"r7"}', "r7")


@exchange("WSS-07")
async def a_pull_out_of_range_is_refused(world: World) -> None:
    """`max` from 1 to 32, `wait_ms` from 0 to 30000."""
    for members in ({"max": 0}, {"max": 33}, {"max": 1, "wait_ms": -1}, {"max": 1, "wait_ms": 30_001}, {"max": "1"}):
        await _refused(world, json.dumps({"type": "pull", "request_id": "r7"} | members), "r7")


@exchange("WSS-10")
async def a_proof_of_another_form_is_refused(world: World) -> None:
    """The schema decides, before any proof is looked at."""
    for members in (
        {"lease_epoch": 0},
        {"lease_epoch": -1},
        {"lease_epoch": 2**63},
        {"lease_epoch": 1.5},
        {"lease_epoch": True},
        {"lease_secret": "A" * 42},
        {"lease_secret": "A" * 43 + "\n"},
        {"lease_secret": "+" * 43},
        {"delivery_id": ""},
        {"delivery_id": "d" * 65},
        {"delivery_id": "dlv/1"},
    ):
        await _refused(world, json.dumps(GOOD_ACK | members), "r7")


@exchange("WSS-04")
async def a_request_id_of_another_form_is_refused_and_not_repeated(world: World) -> None:
    """What is no id is not sent back."""
    for request_id in ("", "r 7", "r7\n", "r" * 65, "é", 7, None):
        await _refused(world, json.dumps({"type": "ping", "request_id": request_id}), None)


@exchange("WSS-11", "T-P09")
async def a_refusal_does_not_repeat_what_was_sent(world: World) -> None:
    """The text of an error holds no proof."""
    client = await _refused(world, json.dumps(GOOD_ACK | {"lease_secret": "s3cr3t" * 8}), "r7")
    assert "s3cr3t" not in client.received[-1]


@exchange("WSS-04", "T-N22")
async def a_binary_frame_closes_with_1003(world: World) -> None:
    """Also when it holds a good frame."""
    async with world.greeted(await world.any_subscription()) as client:
        await client.connection.send(b'{"type":"ping","request_id":"r1"}')
        await client.closed(1003)


@exchange("WSS-06", "T-N22")
async def a_binary_first_frame_closes_with_1003(world: World) -> None:
    """Before `hello` too."""
    async with world.connect() as client:
        await client.connection.send(b"\x00")
        await client.closed(1003)


@exchange("WSS-04", "T-N22")
async def a_frame_that_is_too_large_closes_with_1009(world: World) -> None:
    """65,537 bytes are too many, however they are cut."""
    async with world.greeted(await world.any_subscription()) as client:
        await client.connection.send('{"type":"ping","request_id":"' + "r" * 65_537 + '"}')
        await client.closed(1009)
    async with world.greeted(await world.any_subscription()) as client:
        await client.connection.send([" " * 40_000, " " * 40_000])
        await client.closed(1009)


@exchange("WSS-04")
async def a_frame_of_the_largest_size_is_read(world: World) -> None:
    """65,536 bytes, in one piece and in several."""
    frame = '{"type":"ping","request_id":"r1"}'
    padded = frame + " " * (65_536 - len(frame))
    async with world.greeted(await world.any_subscription()) as client:
        await client.send_text(padded)
        await client.expect("pong", request_id="r1")
        await client.connection.send([padded[:1000], padded[1000:50_000], padded[50_000:]])
        await client.expect("pong", request_id="r1")


@exchange("WSS-11")
async def frames_before_a_bad_one_are_answered(world: World) -> None:
    """What came in order is settled; then comes the refusal."""
    async with world.greeted() as client:
        await world.results(1)
        (delivery,) = await client.gather(1)
        request_id = await client.send_ack(delivery)
        await client.send_text("{}")
        await client.expect("ack_result", request_id=request_id, outcome="ACKED")
        await client.closed(4400, error="INVALID_MESSAGE")
