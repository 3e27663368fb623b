"""The scripted server itself: it plays what it is told, and notices clients that break the protocol."""

from __future__ import annotations

import pytest
from websockets.exceptions import ConnectionClosed

from tests.kit.orbit.scripted_server import (
    Peer,
    acked,
    delivery,
    error,
    pull_done,
    rejected,
    scripted_server,
)
from tests.orbit.conformance.client import event_client, refused


async def good(peer: Peer) -> None:
    """One pull with two deliveries, of which one is acknowledged."""
    await peer.greet(subscription_status="PAUSED")
    pull = await peer.expect("pull", max=2)
    await peer.send(delivery(pull, 1, result="1.00"), delivery(pull, 2, event_type="task.needs_review"))
    await peer.send(pull_done(pull, 2))
    await peer.send(acked(await peer.expect("ack", delivery_id="dlv_1")))
    await peer.send(rejected(await peer.expect("ack", delivery_id="dlv_2")))
    await peer.send(error("EVENT_HISTORY_EXPIRED", fatal=False, cursor_sequence=1, retained_from_sequence=9))
    await peer.close(1001)


@pytest.mark.req("orbit:T-E10")
async def test_a_script_is_played_with_frames_that_are_valid() -> None:
    """The client of the conformance suite holds every frame against the schema."""
    async with scripted_server(good) as server, event_client(server.url, "t0ken") as client:
        assert (await client.greet("sub_1"))["subscription_status"] == "PAUSED"
        deliveries, _ = await client.pull(2)
        assert [one["sequence"] for one in deliveries] == [1, 2]
        assert (await client.ack(deliveries[0]))["outcome"] == "ACKED"
        assert (await client.ack(deliveries[1]))["outcome"] == "REJECTED"
        await client.expect("error", cursor_sequence=1)
        await client.closed(1001)
        assert server.peers[0].token == "t0ken"
        assert [frame["type"] for frame in server.peers[0].received] == ["hello", "pull", "ack", "ack"]


async def test_handshakes_are_refused_as_often_as_told() -> None:
    """The next one is let in, and gets the next script."""
    async with scripted_server(good, refusals=[(503, "SERVICE_NOT_READY")]) as server:
        status, problem, _ = await refused(server.url, "t")
        assert (status, problem["code"]) == (503, "SERVICE_NOT_READY")
        async with event_client(server.url, "t") as client:
            await client.greet("sub_1")


async def test_a_client_that_breaks_the_schema_fails_the_test() -> None:
    """The failure of a script is raised at the end, whatever the client made of it."""

    async def break_it() -> None:
        async with scripted_server(good) as server, event_client(server.url, "t") as client:
            await client.send("hello", subscription_id="sub_1", capacity=99)
            await client.connection.wait_closed()

    with pytest.raises(AssertionError, match="schema"):
        await break_it()


async def test_a_connection_can_be_cut_without_a_word() -> None:
    """The client sees an abnormal end."""

    async def cut(peer: Peer) -> None:
        await peer.greet()
        peer.cut()

    async with scripted_server(cut) as server, event_client(server.url, "t") as client:
        await client.greet("sub_1")
        with pytest.raises(ConnectionClosed):
            await client.receive()
        assert client.connection.close_code == 1006
