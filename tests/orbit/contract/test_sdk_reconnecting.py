"""How the automatic consumer comes back, gives up, and tells how it is: T-E09 against a server that plays a script."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from orbit.sdk import ConnectionClosed, Forbidden, ReceivedEvent, Unauthenticated, Unreachable
from orbit.sdk import consuming as consuming_module
from tests.kit.eventually import eventually_async
from tests.kit.orbit.consumer_scripts import (
    base_url,
    collecting,
    give,
    hasty,
    serve_acks,
)
from tests.kit.orbit.scripted_server import (
    Peer,
    acked,
    delivery,
    error,
    hello_ok,
    pull_done,
    scripted_server,
)
from tests.kit.orbit.sdk_flavours import Flavour


@pytest.mark.req("orbit:T-E09", "orbit:T-E12", "orbit:SDK-14", "F60")
@pytest.mark.parametrize("code", [1001, 1011, 4408, 4503, None])
async def test_the_consumer_comes_back_after_an_end_that_is_nobodys_fault(flavour: Flavour, code: int | None) -> None:
    """Codes that section 16 marks so, and a connection cut without one; events arrive on the next connection."""

    async def ends(peer: Peer) -> None:
        await peer.greet()
        await peer.expect("pull")
        if code is None:
            peer.cut()
        else:
            await peer.close(code)

    async def serves(peer: Peer) -> None:
        await peer.greet()
        await give(peer, 1)
        await serve_acks(peer)

    received: list[ReceivedEvent] = []
    async with (
        scripted_server(ends, serves) as server,
        flavour.consuming(base_url(server), "t", "sub_1", collecting(received), prepare=hasty) as consuming,
    ):
        await eventually_async(lambda: consuming.consumer.stats.acked == 1)
        assert consuming.consumer.stats.connected
        await consuming.stop()
    assert [event.sequence for event in received] == [1]
    ((event, told),) = consuming.errors
    assert event is None
    assert isinstance(told, ConnectionClosed)
    assert told.code == (1006 if code is None else code)
    assert not consuming.consumer.stats.connected


@pytest.mark.req("orbit:T-E09", "orbit:T-E12", "orbit:SDK-14", "orbit:SDK-05", "F59")
@pytest.mark.parametrize("code", [1003, 1009, 4400, 4401, 4403, 4404])
async def test_the_consumer_stops_at_a_code_that_would_only_come_again(flavour: Flavour, code: int) -> None:
    """The code comes out of `run` as ConnectionClosed, and nobody knocks a second time."""

    async def ends(peer: Peer) -> None:
        await peer.greet()
        await peer.close(code)

    async with (
        scripted_server(ends) as server,
        flavour.consuming(base_url(server), "t", "sub_1", collecting([]), prepare=hasty) as consuming,
    ):
        with pytest.raises(ConnectionClosed) as caught:
            await consuming.running
        assert caught.value.code == code
        assert len(server.peers) == 1


@pytest.mark.req("orbit:T-E09", "orbit:SDK-05", "orbit:SDK-14")
async def test_a_fatal_error_counts_even_if_the_close_frame_never_comes(flavour: Flavour) -> None:
    """`SUBSCRIPTION_NOT_FOUND` and a server that then says nothing: 4404, with the code that came before."""

    async def refuses(peer: Peer) -> None:
        hello = await peer.expect("hello")
        await peer.send(error("SUBSCRIPTION_NOT_FOUND", fatal=True, request_id=hello["request_id"]))
        await peer.gone()

    async with (
        scripted_server(refuses) as server,
        flavour.consuming(base_url(server), "t", "sub_1", collecting([]), prepare=hasty) as consuming,
    ):
        with pytest.raises(ConnectionClosed) as caught:
            await consuming.running
    assert (caught.value.code, caught.value.problem) == (4404, "SUBSCRIPTION_NOT_FOUND")


@pytest.mark.req("orbit:T-E09", "orbit:SDK-05", "orbit:SDK-14", "F59")
@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [(401, "UNAUTHENTICATED", Unauthenticated), (403, "ACTION_NOT_ALLOWED", Forbidden)],
)
async def test_a_refused_token_stops_the_consumer_after_a_busy_server_did_not(
    flavour: Flavour, status: int, code: str, kind: type[Exception]
) -> None:
    """503 in the handshake is tried again; 401 and 403 end `run` instead of looping."""
    refusals = [(503, "SERVICE_NOT_READY"), (status, code), (status, code)]
    async with (
        scripted_server(serve_acks, refusals=refusals) as server,
        flavour.consuming(base_url(server), "t", "sub_1", collecting([]), prepare=hasty) as consuming,
    ):
        with pytest.raises(kind, match=code):
            await consuming.running
        assert len(server.refusals) == 1
    assert [str(told) for _, told in consuming.errors] == ["503 SERVICE_NOT_READY: SERVICE_NOT_READY (request req_1)"]


@pytest.mark.req("orbit:SDK-18", "F60")
@pytest.mark.parametrize("silent_at", ["hello", "pull", "ack"])
async def test_a_connection_that_is_open_but_says_nothing_is_given_up(
    flavour: Flavour, silent_at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half recovery: `hello`, a pull or an ACK without an answer. It is visible, reported, and ended by a reconnect."""
    monkeypatch.setattr(consuming_module, "PATIENCE_SECONDS", 0.2)
    monkeypatch.setattr("orbit.sdk.consumer.LOOK_SECONDS", 0.05)

    async def half(peer: Peer) -> None:
        if silent_at != "hello":
            await peer.greet()
            if silent_at == "ack":
                await give(peer, 1)
        await peer.gone()

    async def whole(peer: Peer) -> None:
        await peer.greet()
        while True:
            frame = await peer.receive()
            if frame["type"] == "ack":
                await peer.send(acked(frame))
            else:
                await peer.send(delivery(frame, 2), pull_done(frame, 1))
                await serve_acks(peer)

    async with (
        scripted_server(half, whole) as server,
        flavour.consuming(
            base_url(server), "t", "sub_1", collecting([]), capacity=2, wait=0.1, prepare=hasty
        ) as consuming,
    ):
        await eventually_async(lambda: consuming.consumer.stats.acked >= (2 if silent_at == "ack" else 1))
        await consuming.stop()
        assert len(server.peers) >= 2
    assert any(isinstance(told, ConnectionClosed | Unreachable) for _, told in consuming.errors)


@pytest.mark.req("orbit:SDK-18", "F60")
async def test_stats_tell_an_idle_consumer_from_one_that_is_cut_off(flavour: Flavour) -> None:
    """Before the server has confirmed: not connected. Idle: connected, a fresh frame, reason EMPTY, no delivery."""
    confirm, end = asyncio.Event(), asyncio.Event()

    async def script(peer: Peer) -> None:
        hello = await peer.expect("hello")
        await confirm.wait()
        await peer.send({**error("X_LATER_VERSION", fatal=False), "type": "news_of_a_later_version"})
        await peer.send(hello_ok(hello))
        await peer.send(pull_done(await peer.expect("pull"), 0, "WINDOW_FULL"))
        await end.wait()

    async with (
        scripted_server(script) as server,
        flavour.consuming(base_url(server), "t", "sub_1", collecting([])) as consuming,
    ):
        await eventually_async(lambda: server.peers and server.peers[0].received)
        before = consuming.consumer.stats
        confirm.set()
        await eventually_async(lambda: consuming.consumer.stats.last_pull_reason == "WINDOW_FULL")
        after = consuming.consumer.stats
        end.set()
    assert (before.connected, before.last_frame_at, before.last_delivery_at) == (False, None, None)
    assert after.connected
    assert after.last_frame_at is not None
    assert (after.last_delivery_at, after.running, after.acked, after.redelivered) == (None, 0, 0, 0)


@pytest.mark.req("orbit:SDK-13", "orbit:SDK-03")
@pytest.mark.parametrize("options", [{"capacity": 0}, {"capacity": 33}, {"wait": 0}, {"wait": 30.5}])
def test_a_consumer_refuses_what_the_protocol_does_not_take(flavour: Flavour, options: dict[str, Any]) -> None:
    """Capacity 1 to 32; a wait of zero would be polling."""
    with pytest.raises(ValueError, match="must be"):
        flavour.kind("EventConsumer")("http://localhost:1", "t", "sub_1", print, **options)
