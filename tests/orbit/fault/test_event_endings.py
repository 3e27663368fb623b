"""How connections end when something is wrong: silence, defects, stops, clients that vanish or do not read."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from websockets.asyncio.client import connect

from orbit.model.codes import ErrorCode
from orbit.model.errors import OrbitError
from orbit.server.ws.connection import SessionLimits
from orbit.subscriptions.deliveries import Deliveries
from orbit.subscriptions.service import Subscriptions
from orbit.wire.asyncapi import CLOSE_CODES
from tests.kit.database import TestDatabase
from tests.kit.eventually import eventually_async
from tests.kit.orbit.events import EventServer, event_server
from tests.kit.orbit.invariants import assert_invariants
from tests.kit.orbit.scene import Scene
from tests.kit.orbit.server import serving_process
from tests.kit.orbit.sockets import raw_socket
from tests.kit.tree import ROOT
from tests.orbit.conformance.client import event_client, refused


@pytest.fixture(autouse=True)
def whole(orbit_scene: Scene) -> Iterator[None]:
    """Hold the rules of section 28.4 after every test."""
    yield
    assert_invariants(orbit_scene.connection)


@pytest.mark.req("orbit:WSS-06", "orbit:T-N22")
async def test_silence_after_the_handshake_closes_with_4408(orbit_database: TestDatabase, orbit_scene: Scene) -> None:
    """No `hello` within the time."""
    async with (
        event_server(orbit_database.dsn, SessionLimits(hello=0.05)) as events,
        events.connect(orbit_scene.owner) as client,
    ):
        await client.closed(4408)


@pytest.mark.req("orbit:WSS-11", "orbit:T-P09")
@pytest.mark.parametrize("part", ["claim", "acknowledge", "hello"])
async def test_a_defect_closes_with_1011_and_says_nothing_of_itself(
    part: str,
    orbit_database: TestDatabase,
    orbit_scene: Scene,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The message of the exception reaches neither the client nor the log."""
    caplog.set_level(logging.NOTSET)

    async def defect(*_arguments: object, **_named: object) -> None:
        await asyncio.sleep(0)
        raise RuntimeError("s3cr3t")

    async with (
        event_server(orbit_database.dsn) as events,
        events.connect(orbit_scene.owner) as client,
    ):
        subscription_id = orbit_scene.subscribe()
        monkeypatch.setattr(Subscriptions if part == "hello" else Deliveries, part, defect)
        if part == "hello":
            await client.send("hello", subscription_id=subscription_id, capacity=1)
        else:
            await client.greet(subscription_id)
        if part == "claim":
            await client.send("pull", max=1)
        elif part == "acknowledge":
            await client.send("ack", delivery_id="d", lease_epoch=1, lease_secret="A" * 43)
        await client.closed(1011, error="INTERNAL")
        assert "s3cr3t" not in client.received[-1]
    assert "s3cr3t" not in caplog.text
    assert "s3cr3t" not in capfd.readouterr().err


@pytest.mark.req("orbit:WSS-11", "orbit:LCK-11")
@pytest.mark.parametrize("code", [ErrorCode.SERVICE_BUSY, ErrorCode.SERVICE_NOT_READY])
async def test_a_busy_or_unreachable_database_closes_with_4503(
    code: ErrorCode, orbit_database: TestDatabase, orbit_scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client comes back later."""

    async def busy(*_arguments: object, **_named: object) -> None:
        await asyncio.sleep(0)
        raise OrbitError(code)

    async with (
        event_server(orbit_database.dsn) as events,
        events.greeted(orbit_scene, orbit_scene.subscribe()) as client,
    ):
        monkeypatch.setattr(Deliveries, "claim", busy)
        request_id = await client.send("pull", max=1)
        await client.closed(4503, error=code, request_id=request_id)


@pytest.mark.req("orbit:WSS-03", "orbit:OPS-05")
async def test_a_handshake_is_refused_while_the_service_is_not_ready(orbit_empty_database: TestDatabase) -> None:
    """503 with `Retry-After`, whatever the token is."""
    async with event_server(orbit_empty_database.dsn) as events:
        status, problem, headers = await refused(events.url, "orbit_" + "A" * 43)
    assert (status, problem["code"]) == (503, "SERVICE_NOT_READY")
    assert int(headers["retry-after"]) >= 1


@pytest.mark.req("orbit:WSS-03")
async def test_more_connections_than_one_process_may_serve_are_told_to_come_back(
    orbit_database: TestDatabase, orbit_scene: Scene
) -> None:
    """503 with `Retry-After`; there is room again as soon as one has left."""
    async with event_server(orbit_database.dsn) as events:
        events.endpoint.connections_max = 1
        async with events.connect(orbit_scene.owner):
            status, problem, headers = await refused(events.url, orbit_scene.owner.token)
            assert (status, problem["code"]) == (503, "SERVICE_BUSY")
            assert int(headers["retry-after"]) >= 1
        await eventually_async(lambda: events.endpoint.serving == 0, what="the end of the first")
        async with events.connect(orbit_scene.owner):
            pass


@pytest.mark.req("orbit:T-P09", "orbit:AUT-14", "orbit:LSE-34", "F87")
async def test_no_log_at_any_level_holds_what_a_connection_carries(
    orbit_database: TestDatabase,
    orbit_scene: Scene,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Token, proof and result of a whole session, ended by a refusal: nowhere, also not in what libraries log."""
    scene = orbit_scene
    subscription_id = scene.subscribe()
    scene.result('"r3sult"')
    caplog.set_level(logging.NOTSET)
    for name in ("uvicorn.error", "asyncio", "psycopg", "psycopg.pool"):
        caplog.set_level(logging.DEBUG, logger=name)
    quiet = logging.getLogger("websockets.client")  # the client's side is the test's own
    before, quiet.disabled = quiet.disabled, True
    try:
        async with event_server(orbit_database.dsn) as events, events.greeted(scene, subscription_id) as client:
            (delivery,), _ = await client.pull()
            await client.ack(delivery)
            request_id = await client.send_ack(delivery, lease_epoch=0)
            await client.closed(4400, error="INVALID_MESSAGE", request_id=request_id)
            assert delivery["lease_secret"] not in client.received[-1]
    finally:
        quiet.disabled = before
    said = caplog.text + "".join(capfd.readouterr())
    for secret in (scene.owner.token, delivery["lease_secret"], "r3sult"):
        assert secret not in said


async def _alive(events: EventServer, before: int) -> bool:
    return (
        events.listening.connections == 0
        and events.endpoint.serving == 0
        and events.services.wakes.listening == 0
        and len(asyncio.all_tasks()) <= before
    )


@pytest.mark.req("F52", "orbit:WSS-13")
async def test_five_hundred_connections_that_vanish_leave_nothing_behind(
    orbit_database: TestDatabase, orbit_scene: Scene
) -> None:
    """Idle, waiting in a pull, half greeted; closed or cut: tasks, sockets and listeners are back where they were."""
    scene = orbit_scene
    subscription_id = scene.subscribe()
    hello = json.dumps({"type": "hello", "request_id": "r", "subscription_id": subscription_id, "capacity": 1})
    pull = json.dumps({"type": "pull", "request_id": "p", "max": 1, "wait_ms": 30_000})

    async def visit(events: EventServer, number: int) -> None:
        async with raw_socket(events.url, scene.owner.token) as client:
            assert client.status == 101
            if number % 3:
                await client.send_frame(1, hello.encode())
                await client.read_frame()
            if number % 3 == 2:
                await client.send_frame(1, pull.encode())
            if number % 2:
                await client.send_frame(8, b"\x03\xe8")
                assert await client.close_code() == 1000

    async with event_server(orbit_database.dsn) as events:
        await visit(events, 0)
        await eventually_async(lambda: events.listening.connections == 0, what="the first end")
        before = len(asyncio.all_tasks())
        for start in range(0, 500, 50):
            await asyncio.gather(*(visit(events, number) for number in range(start, start + 50)))
        await eventually_async(lambda: _alive(events, before), what="the end of everything that was begun")
        async with events.greeted(scene, subscription_id) as client:
            assert (await client.pull())[1]["reason"] == "EMPTY"


@pytest.mark.req("F53", "orbit:WSS-16")
async def test_twenty_clients_that_never_read_hold_little_and_are_cut(
    orbit_database: TestDatabase, orbit_scene: Scene
) -> None:
    """Each has one pull at most in the server and a small buffer; a client that reads gets everything meanwhile."""
    scene = orbit_scene
    count = 20
    large = json.dumps("x" * 200_000)
    subscriptions = [scene.subscribe(f"slow-{number}", max_pending=4) for number in range(count)]
    fast = scene.subscribe("fast")
    for _ in range(16):
        scene.result(large)
    async with event_server(orbit_database.dsn, SessionLimits(write=1.0), send_buffer=8192) as events:
        ended = [asyncio.create_task(_never_read(events, scene, one)) for one in subscriptions]
        await eventually_async(
            lambda: scene.value("select count(*) from orbit.event_deliveries where state = 'LEASED'") >= count * 4,
            what="the leases",
        )
        buffered = [
            protocol.transport.get_write_buffer_size()  # pyright: ignore[reportAttributeAccessIssue] - of uvicorn
            for protocol in events.listening.server.server_state.connections
        ]
        async with events.greeted(scene, fast) as client:
            assert len(await client.gather(16)) == 16
        assert 0 < max(buffered) < 1_000_000
        await asyncio.gather(*ended)
        await eventually_async(lambda: events.listening.connections == 0, what="the end of the slow ones")
    assert scene.value("select max(attempts) from orbit.event_deliveries") == 1


async def _never_read(events: EventServer, scene: Scene, subscription_id: str) -> None:
    hello = {"type": "hello", "request_id": "r", "subscription_id": subscription_id, "capacity": 32}
    async with raw_socket(events.url, scene.owner.token, receive_buffer=4096) as client:
        await client.send_frame(1, json.dumps(hello).encode())
        await client.read_frame()
        await client.send_frame(1, b'{"type":"pull","request_id":"p","max":32}')
        await eventually_async(lambda: events.endpoint.serving <= 1, what="the cut")


@pytest.mark.req("orbit:WSS-14", "F54")
async def test_a_stop_finishes_acks_and_says_why(orbit_database: TestDatabase, orbit_scene: Scene) -> None:
    """An ACK whose transaction waits for a lock is answered; then come the error and 1001; a waiting pull ends too."""
    scene = orbit_scene
    subscription_id = scene.subscribe()
    scene.result()
    async with event_server(orbit_database.dsn) as events, events.greeted(scene, subscription_id) as client:
        (delivery,), _ = await client.pull()
        async with events.greeted(scene, subscription_id) as waiting:
            await waiting.send("pull", max=1, wait_ms=30_000)
            await waiting.send("ping")
            await waiting.expect("pong")
            with scene.connection.transaction():
                scene.run("select from orbit.event_subscriptions for update")
                request_id = await client.send_ack(delivery)
                await client.send("ping")
                await client.expect("pong")
                events.listening.server.should_exit = True
                await eventually_async(lambda: not events.listening.server.servers[0].sockets, what="the stop")
            await client.expect("ack_result", request_id=request_id, outcome="ACKED")
            await client.closed(1001, error="SERVER_SHUTTING_DOWN")
            frame = await waiting.receive()
            if frame["type"] == "pull_done":
                frame = await waiting.receive()
            assert (frame["code"], frame["fatal"]) == ("SERVER_SHUTTING_DOWN", True)
            await waiting.closed(1001)


@pytest.mark.req("F54", "orbit:WSS-14")
async def test_two_hundred_sockets_do_not_hold_up_a_sigterm(orbit_database: TestDatabase, orbit_scene: Scene) -> None:
    """Every client gets 1001, also beside one that ignores the close frame; the process ends by itself, in time."""
    scene = orbit_scene
    subscription_id = scene.subscribe()
    pull = json.dumps({"type": "pull", "request_id": "p", "max": 1, "wait_ms": 30_000})

    async def stay(url: str, ready: asyncio.Semaphore) -> int | None:
        async with event_client(url, scene.owner.token) as client:
            await client.greet(subscription_id, 1)
            await client.send_text(pull)
            ready.release()
            await client.connection.wait_closed()
            return client.connection.close_code

    with serving_process(orbit_database.dsn) as server:
        url = server.base_url.replace("http", "ws", 1) + "/v1/events/connect"
        ready = asyncio.Semaphore(0)
        staying = [asyncio.create_task(stay(url, ready)) for _ in range(200)]
        for _ in staying:
            await ready.acquire()
        async with raw_socket(url, scene.owner.token):
            os.kill(server.process.pid, signal.SIGTERM)
            assert set(await asyncio.gather(*staying)) == {1001}
            await eventually_async(lambda: server.process.poll() is not None, what="the end of the process")
        assert server.process.returncode == 0


@pytest.mark.req("orbit:GEN-10", "orbit:T-E10")
async def test_every_close_code_of_the_published_document_is_what_the_server_does(
    orbit_database: TestDatabase, orbit_scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each code of the AsyncAPI document is provoked once at the running server, and no other one is seen."""
    scene = orbit_scene
    subscription_id = scene.subscribe()
    seen: set[int | None] = set()
    hello: dict[str, Any] = {"subscription_id": subscription_id, "capacity": 1}

    async def busy(*_arguments: object, **_named: object) -> None:
        await asyncio.sleep(0)
        raise OrbitError(ErrorCode.SERVICE_BUSY)

    async def broken(*_arguments: object, **_named: object) -> None:
        await asyncio.sleep(0)
        raise RuntimeError

    async with event_server(orbit_database.dsn, SessionLimits(hello=0.3)) as events:

        async def provoke(*frames: str | bytes, greet: bool = True) -> None:
            async with events.connect(scene.owner) as client:
                if greet:
                    await client.greet(subscription_id, 1)
                for frame in frames:
                    await client.connection.send(frame)
                if not frames and greet:
                    await client.close()
                await client.connection.wait_closed()
                seen.add(client.connection.close_code)

        pull = '{"type":"pull","request_id":"p","max":1}'
        await provoke()
        await provoke(b"binary")
        await provoke("x" * 70_000)
        await provoke("{}")
        await provoke(greet=False)
        await provoke(json.dumps(hello | {"type": "hello", "request_id": "r", "subscription_id": "sub_0"}), greet=False)
        for part in (busy, broken):
            monkeypatch.setattr(Deliveries, "claim", part)
            await provoke(pull)
        monkeypatch.undo()
        async with events.greeted(scene, subscription_id) as client:
            scene.run("update orbit.credentials set actions = '{events:read}' where credential_id = %s",
                      scene.owner.credential_id)  # fmt: skip
            await client.send_text(pull)
            await client.connection.wait_closed()
            seen.add(client.connection.close_code)
        scene.run("update orbit.credentials set actions = '{events:consume}'")
        async with events.greeted(scene, subscription_id) as client:
            scene.run("update orbit.credentials set revoked_at = clock_timestamp()")
            await client.send_text(pull)
            await client.connection.wait_closed()
            seen.add(client.connection.close_code)
        scene.run("update orbit.credentials set revoked_at = null")
        async with events.greeted(scene, subscription_id) as client:
            events.listening.server.should_exit = True
            await client.connection.wait_closed()
            seen.add(client.connection.close_code)
    assert seen == {close.code for close in CLOSE_CODES}


@pytest.mark.req("orbit:GEN-10", "orbit:WSS-02")
async def test_the_published_document_leads_to_a_connection(orbit_database: TestDatabase, orbit_scene: Scene) -> None:
    """A client that knows nothing but the document: address, header, subprotocol, messages and limits."""
    document = json.loads((ROOT / "docs" / "schemas" / "orbit.events.v1.asyncapi.json").read_text(encoding="utf-8"))
    channel = document["channels"]["events"]
    async with event_server(orbit_database.dsn) as events:
        subprotocol = channel["bindings"]["ws"]["headers"]["properties"]["Sec-WebSocket-Protocol"]["const"]
        async with connect(
            events.listening.url + channel["address"],
            subprotocols=[subprotocol],
            additional_headers={"Authorization": f"Bearer {orbit_scene.owner.token}"},
            max_size=channel["x-limits"]["serverFrameBytesMax"],
            proxy=None,
        ) as client:
            await client.send(" " * (channel["x-limits"]["clientFrameBytesMax"] + 1))
            await client.wait_closed()
            assert client.close_code == 1009
        for refusal in channel["x-handshake-refusals"]:
            assert refusal["status"] in {400, 401, 403, 500, 503}
