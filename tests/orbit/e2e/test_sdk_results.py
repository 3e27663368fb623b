"""Both SDKs against a real server and database: the whole way of a result, every management operation, the ends."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from orbit.sdk import ReceivedEvent
from tests.kit.database import TestDatabase
from tests.kit.eventually import eventually_async
from tests.kit.orbit.events import EventServer, event_server
from tests.kit.orbit.scene import QUEUE, Scene
from tests.kit.orbit.sdk_flavours import Flavour


@pytest.fixture
async def server(orbit_database: TestDatabase) -> AsyncIterator[EventServer]:
    """Serve the test's database."""
    async with event_server(orbit_database.dsn) as running:
        yield running


def base_url(server: EventServer) -> str:
    """The address that the SDK takes."""
    return server.listening.url.replace("ws", "http", 1)


@pytest.mark.req("orbit:T-E01", "orbit:T-E12", "orbit:SDK-01", "orbit:SDK-09", "orbit:T-P05")
async def test_a_result_reaches_the_handler_with_its_exact_text_and_is_acknowledged(
    server: EventServer, orbit_scene: Scene, flavour: Flavour
) -> None:
    """From the worker's text to the handler's, byte for byte, and the delivery ends as ACKED."""
    subscription_id = orbit_scene.subscribe()
    token, url = orbit_scene.owner.token, base_url(server)
    result = '{ "n": 12345678901234567890.10,\n "z":-0.0, "u":"\\u0000\\ud800", "big":' + "7" * 10_000 + "}"
    received: list[ReceivedEvent] = []

    async def handler(event: ReceivedEvent) -> None:
        received.append(event)

    async with flavour.client("Worker", url, token, worker_id="w-1") as worker:
        task = await worker.submit(QUEUE, {"order": 1})
        (claim,) = await worker.claim(QUEUE)
        await worker.heartbeat(claim)
        receipt = await worker.confirm(claim, outcome="succeeded", result_text=f" {result}\n")
        assert await worker.confirm(claim, outcome="succeeded", result_text=result) == receipt
    async with flavour.consuming(url, token, subscription_id, handler) as consuming:
        await eventually_async(lambda: consuming.consumer.stats.acked == 1, what="the ACK")
        await consuming.stop()
    (event,) = received
    assert claim.input == {"order": 1}
    assert event.event_id == receipt.event_id
    assert event.result_text == result
    assert str(event.snapshot["result"]["n"]) == "12345678901234567890.10"
    assert event.snapshot["task_id"] == task.task_id
    assert orbit_scene.value("select state from orbit.event_deliveries") == "ACKED"
    assert consuming.errors == []
