"""The automatic consumer against a server that plays a script: T-E09, once for each SDK."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from orbit.sdk import HistoryExpired, ReceivedEvent
from tests.kit.eventually import eventually_async
from tests.kit.orbit.consumer_scripts import (
    SECRETS,
    base_url,
    collecting,
    give,
    hasty,
    refuses_the_first_event,
    serve_acks,
)
from tests.kit.orbit.scripted_server import (
    Frame,
    Peer,
    acked,
    delivery,
    error,
    pull_done,
    rejected,
    scripted_server,
)
from tests.kit.orbit.sdk_flavours import Flavour


@pytest.mark.req("orbit:T-E09", "orbit:T-E12", "orbit:SDK-13")
async def test_a_pull_asks_for_the_free_places_and_handlers_never_exceed_them(flavour: Flavour) -> None:
    """With capacity 3 and one slow handler the next pull asks for 2; events past their lease keep their places."""
    release = asyncio.Event()
    running: set[int] = set()
    most = 0

    async def handler(event: ReceivedEvent) -> None:
        nonlocal most
        running.add(event.sequence)
        most = max(most, len(running))
        if event.sequence == 1:
            await release.wait()
        running.remove(event.sequence)

    async def script(peer: Peer) -> None:
        await peer.greet()
        first = await give(peer, 1, 2, 3, lease_expires_at="2020-01-01T00:00:00.000000Z")
        assert first["max"] == 3
        done: set[str] = set()
        maxima: list[int] = []
        while done < {"dlv_2", "dlv_3"} or not maxima or maxima[-1] < 2:
            frame = await peer.receive()
            if frame["type"] == "ack":
                done.add(frame["delivery_id"])
                await peer.send(acked(frame))
            else:
                maxima.append(frame["max"])
                await peer.send(pull_done(frame, 0))
        assert max(maxima) == 2
        release.set()
        await serve_acks(peer)

    async with (
        scripted_server(script) as server,
        flavour.consuming(base_url(server), "t", "sub_1", handler, capacity=3) as consuming,
    ):
        await eventually_async(lambda: consuming.consumer.stats.acked == 3)
        assert most <= 3
        await consuming.stop()


@pytest.mark.req("orbit:T-E09", "orbit:T-E12", "orbit:SDK-12", "orbit:LSE-37")
@pytest.mark.parametrize("reconnect", [False, True])
async def test_a_redelivery_while_the_handler_runs_replaces_the_proof(flavour: Flavour, reconnect: bool) -> None:
    """One handler, and its ACK carries the newest epoch and secret, over the same connection or the next."""
    release = asyncio.Event()
    received: list[ReceivedEvent] = []
    proofs: list[Frame] = []

    async def handler(event: ReceivedEvent) -> None:
        received.append(event)
        await release.wait()

    async def redelivers(peer: Peer) -> None:
        await give(peer, 1, epoch=2, lease_secret=SECRETS[1])
        frame = await peer.receive()
        while frame["type"] != "ack":
            frame = await peer.receive()
        proofs.append(frame)
        await peer.send(acked(frame))
        await serve_acks(peer)

    async def script(peer: Peer) -> None:
        await peer.greet()
        await give(peer, 1, epoch=1, lease_secret=SECRETS[0])
        if reconnect:
            peer.cut()
        else:
            await redelivers(peer)

    async def again(peer: Peer) -> None:
        await peer.greet()
        await redelivers(peer)

    async with (
        scripted_server(script, again) as server,
        flavour.consuming(base_url(server), "t", "sub_1", handler, capacity=2, prepare=hasty) as consuming,
    ):
        await eventually_async(lambda: consuming.consumer.stats.redelivered == 1)
        release.set()
        await eventually_async(lambda: consuming.consumer.stats.acked == 1)
        stats = consuming.consumer.stats
        await consuming.stop()
    assert [event.lease_epoch for event in received] == [1]
    assert [(proof["lease_epoch"], proof["lease_secret"]) for proof in proofs] == [(2, SECRETS[1])]
    assert (stats.redelivered, stats.running) == (1, 0)


@pytest.mark.req("orbit:T-E09", "orbit:T-E12", "orbit:SDK-11", "orbit:T-C07")
async def test_an_ack_without_an_answer_is_repeated_with_the_same_proof(flavour: Flavour) -> None:
    """The connection breaks before `ack_result`; the next one gets the same ACK before anything is pulled."""
    proofs: list[tuple[str, int, str]] = []

    def note(ack: Frame) -> None:
        proofs.append((ack["delivery_id"], ack["lease_epoch"], ack["lease_secret"]))

    async def breaks(peer: Peer) -> None:
        await peer.greet()
        await give(peer, 1, lease_secret=SECRETS[0])
        frame = await peer.receive()
        while frame["type"] != "ack":
            frame = await peer.receive()
        note(frame)
        peer.cut()

    async def answers(peer: Peer) -> None:
        await peer.greet()
        ack = await peer.expect("ack")
        note(ack)
        await peer.send(acked(ack, duplicate=True))
        await serve_acks(peer)

    async with (
        scripted_server(breaks, answers) as server,
        flavour.consuming(base_url(server), "t", "sub_1", collecting([]), prepare=hasty) as consuming,
    ):
        await eventually_async(lambda: consuming.consumer.stats.acked == 1)
        await consuming.stop()
        assert len(server.peers) == 2
    assert proofs == [("dlv_1", 1, SECRETS[0])] * 2


@pytest.mark.req("orbit:T-E09", "orbit:SDK-11", "orbit:SDK-10")
async def test_a_lost_lease_is_no_error_and_the_redelivery_runs_the_handler_again(flavour: Flavour) -> None:
    """After DELIVERY_LEASE_LOST the proof is dropped; the event comes again, and nothing is skipped as a duplicate."""
    received: list[ReceivedEvent] = []

    async def script(peer: Peer) -> None:
        await peer.greet()
        epoch = 1
        while True:
            frame = await peer.receive()
            if frame["type"] == "pull" and epoch < 3:
                await peer.send(delivery(frame, 1, epoch=epoch), pull_done(frame, 1))
            elif frame["type"] == "ack" and frame["lease_epoch"] == 1:
                epoch = 2
                await peer.send(rejected(frame))
            elif frame["type"] == "ack":
                epoch = 3
                await peer.send(acked(frame))

    async with (
        scripted_server(script) as server,
        flavour.consuming(base_url(server), "t", "sub_1", collecting(received), capacity=1) as consuming,
    ):
        await eventually_async(lambda: consuming.consumer.stats.acked >= 1)
        await consuming.stop()
    assert {event.lease_epoch for event in received} == {1, 2}
    assert consuming.errors == []


@pytest.mark.req("orbit:T-E09", "orbit:T-E12", "orbit:SDK-09", "F58")
async def test_what_a_handler_raised_from_is_not_acknowledged(flavour: Flavour) -> None:
    """The failed event is reported and gets no ACK; the others do; the place is free for its redelivery."""
    acks: list[str] = []

    async def script(peer: Peer) -> None:
        await peer.greet()
        await give(peer, 1, 2)
        while True:
            frame = await peer.receive()
            if frame["type"] == "ack":
                acks.append(frame["delivery_id"])
                await peer.send(acked(frame))

    async with (
        scripted_server(script) as server,
        flavour.consuming(base_url(server), "t", "sub_1", refuses_the_first_event) as consuming,
    ):
        await eventually_async(lambda: consuming.consumer.stats.acked == 1 and consuming.errors)
        await eventually_async(lambda: consuming.consumer.stats.running == 0)
        await consuming.stop()
    assert acks == ["dlv_2"]
    ((event, told),) = consuming.errors
    assert event is not None
    assert event.sequence == 1
    assert isinstance(told, OSError)


@pytest.mark.req("orbit:SDK-09", "orbit:SDK-13", "F58")
async def test_a_broken_on_error_stops_nothing(flavour: Flavour) -> None:
    """`on_error` raises for every failed handler; the next event is handled and acknowledged all the same."""

    def broken(_event: ReceivedEvent | None, _error: Exception) -> None:
        raise LookupError("no such dashboard")

    async def script(peer: Peer) -> None:
        await peer.greet()
        await give(peer, 1)
        await give(peer, 2)
        await serve_acks(peer)

    async with (
        scripted_server(script) as server,
        flavour.consuming(
            base_url(server), "t", "sub_1", refuses_the_first_event, capacity=1, on_error=broken
        ) as consuming,
    ):
        await eventually_async(lambda: consuming.consumer.stats.acked == 1)
        await consuming.stop()


@pytest.mark.req("orbit:T-E09", "orbit:T-E12", "orbit:SDK-15")
async def test_stop_lets_a_running_handler_end_and_sends_its_ack(flavour: Flavour) -> None:
    """After `stop` nothing is pulled; the handler ends, its ACK is answered, and the close code is 1000."""
    started, release = asyncio.Event(), asyncio.Event()
    frames_after: list[str] = []

    async def handler(_event: ReceivedEvent) -> None:
        started.set()
        await release.wait()

    async def script(peer: Peer) -> None:
        await peer.greet()
        await give(peer, 1)
        await started.wait()
        while True:
            frame = await peer.receive()
            if release.is_set():
                frames_after.append(frame["type"])
            if frame["type"] == "ack":
                await peer.send(acked(frame))
                assert await peer.gone() == 1000
                return

    async with (
        scripted_server(script) as server,
        flavour.consuming(base_url(server), "t", "sub_1", handler, capacity=2) as consuming,
    ):
        await started.wait()
        stopping = asyncio.create_task(consuming.stop())
        await eventually_async(lambda: consuming.consumer._core.draining)
        assert not stopping.done()
        release.set()
        await stopping
    assert frames_after == ["ack"]
    assert consuming.consumer.stats.acked == 1


@pytest.mark.req("orbit:T-E09", "orbit:T-E12", "orbit:SDK-15", "F58")
async def test_stop_gives_up_what_does_not_end_in_its_grace(flavour: Flavour) -> None:
    """A handler that hangs is not waited for beyond the grace, and its event is not acknowledged."""
    started, release = asyncio.Event(), asyncio.Event()

    async def handler(_event: ReceivedEvent) -> None:
        started.set()
        await release.wait()

    async def script(peer: Peer) -> None:
        await peer.greet()
        await give(peer, 1)
        await peer.expect("pull")
        assert await peer.gone() == 1000

    async with (
        scripted_server(script) as server,
        flavour.consuming(base_url(server), "t", "sub_1", handler, capacity=2) as consuming,
    ):
        await started.wait()
        async with asyncio.timeout(5):
            await consuming.stop(grace=0.05)
        assert consuming.consumer.stats.acked == 0
        release.set()


@pytest.mark.req("orbit:SDK-15")
async def test_stop_from_inside_a_handler_only_gives_the_order(flavour: Flavour) -> None:
    """A handler that stops its own consumer would wait for itself; its event is acknowledged like any other."""
    box: list[Any] = []

    async def script(peer: Peer) -> None:
        await peer.greet()
        await give(peer, 1)
        await serve_acks(peer)

    async def asynchronous(_event: ReceivedEvent) -> None:
        await box[0].stop()

    def synchronous(_event: ReceivedEvent) -> None:
        box[0].stop()

    async with scripted_server(script) as server:
        handler = asynchronous if flavour.is_async else synchronous
        consumer = flavour.kind("EventConsumer")(base_url(server), "t", "sub_1", handler)
        box.append(consumer)
        async with asyncio.timeout(10):
            await flavour.result_of(consumer.run)
    assert consumer.stats.acked == 1


@pytest.mark.req("orbit:SDK-15")
async def test_a_consumer_that_was_stopped_before_it_ran_does_nothing(flavour: Flavour) -> None:
    """`stop` before `run` returns at once, and so does `run`; a second `run` is refused."""
    consumer = flavour.kind("EventConsumer")("http://127.0.0.1:9", "t", "sub_1", print)
    await flavour.result_of(consumer.stop)
    await flavour.result_of(consumer.run)
    with pytest.raises(RuntimeError, match="once"):
        await flavour.result_of(consumer.run)


@pytest.mark.req("orbit:WSS-15", "orbit:T-N17", "orbit:T-E12", "orbit:MIG-18", "orbit:ERR-02")
async def test_lost_history_ends_the_consumer_after_its_running_handlers(flavour: Flavour) -> None:
    """It pulls no more, finishes and acknowledges what runs, then raises HistoryExpired with both positions."""
    release = asyncio.Event()

    async def handler(_event: ReceivedEvent) -> None:
        await release.wait()

    async def script(peer: Peer) -> None:
        await peer.greet()
        await give(peer, 1)
        pull = await peer.expect("pull")
        await peer.send(
            error("EVENT_HISTORY_EXPIRED", fatal=False, request_id=pull["request_id"], cursor_sequence=7,
                  retained_from_sequence=101)
        )  # fmt: skip
        await eventually_async(lambda: consuming.consumer._core.draining)
        release.set()
        ack = await peer.expect("ack")
        await peer.send(acked(ack))
        assert await peer.gone() == 1000

    async with (
        scripted_server(script) as server,
        flavour.consuming(base_url(server), "t", "sub_1", handler, capacity=2) as consuming,
    ):
        with pytest.raises(HistoryExpired) as caught:
            await consuming.running
    assert caught.value.extensions == {"cursor_sequence": 7, "retained_from_sequence": 101}
    assert consuming.consumer.stats.acked == 1
