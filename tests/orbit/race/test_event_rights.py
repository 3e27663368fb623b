"""Rights that end while a connection is open, and ACKs and pulls that race (T-R08, T-R10, T-R15, T-R24, F87)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Final, LiteralString

import pytest
from websockets.exceptions import ConnectionClosed

from orbit.server.ws.connection import SessionLimits
from tests.kit.database import TestDatabase
from tests.kit.eventually import eventually_async
from tests.kit.orbit.events import EventServer, event_server
from tests.kit.orbit.invariants import assert_invariants
from tests.kit.orbit.scene import Scene
from tests.orbit.conformance.client import EventClient, Frame, refused


@pytest.fixture(autouse=True)
def whole(orbit_scene: Scene) -> Iterator[None]:
    """Hold the rules of section 28.4 after every test."""
    yield
    assert_invariants(orbit_scene.connection)


LOSSES: Final[dict[str, tuple[LiteralString, int, str]]] = {
    "revoked": (
        "update orbit.credentials set revoked_at = clock_timestamp() where credential_id = %s",
        4401,
        "UNAUTHENTICATED",
    ),
    "expired": (
        "update orbit.credentials set expires_at = clock_timestamp() where credential_id = %s",
        4401,
        "UNAUTHENTICATED",
    ),
    "namespace": (
        """update orbit.namespaces set enabled = false
           where namespace_id = (select namespace_id from orbit.credentials where credential_id = %s)""",
        4403,
        "NAMESPACE_DISABLED",
    ),
    "application": (
        """update orbit.applications set enabled = false
           where application_id = (select application_id from orbit.credentials where credential_id = %s)""",
        4403,
        "APPLICATION_DISABLED",
    ),
    "action": (
        "update orbit.credentials set actions = array_remove(actions, 'events:consume') where credential_id = %s",
        4403,
        "ACTION_NOT_ALLOWED",
    ),
    "queue": (
        "update orbit.credentials set all_queues = false, queue_ids = '{}' where credential_id = %s",
        4403,
        "QUEUE_NOT_ALLOWED",
    ),
}
"""What happens to the credential, and how the connection must end."""


@pytest.mark.req("orbit:T-R15", "orbit:AUT-12", "F87")
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("doing", ["pull", "ack", "nothing", "waiting"])
async def test_a_lost_right_ends_the_connection(
    loss: str, doing: str, orbit_database: TestDatabase, orbit_scene: Scene
) -> None:
    """The next claim or ACK is refused; a connection that does neither is found out within the stated time."""
    statement, code, error = LOSSES[loss]
    scene = orbit_scene
    subscription_id = scene.subscribe()
    idle = doing in {"nothing", "waiting"}
    limits = SessionLimits(check=0.05, repeat=3600) if idle else None
    scene.result()
    async with event_server(orbit_database.dsn, limits) as events, events.greeted(scene, subscription_id) as client:
        (delivery,), _ = await client.pull()
        request_ids: set[str | None] = {None}
        if doing == "waiting":
            request_ids.add(await client.send("pull", max=1, wait_ms=30_000))  # its first claim may come too late
        scene.run(statement, scene.owner.credential_id)
        if doing == "pull":
            request_ids = {await client.send("pull", max=1)}
        elif doing == "ack":
            request_ids = {await client.send_ack(delivery)}
        frame = await client.receive()
        while frame["type"] == "pull_done":  # the waiting pull ends with the connection
            frame = await client.receive()
        assert (frame["type"], frame["code"], frame["fatal"]) == ("error", error, True)
        assert frame["request_id"] in request_ids
        await client.closed(code)
        state = scene.row("select state, acked_at from orbit.event_deliveries")
        assert state == ("LEASED", None)
        if loss != "queue":
            status, problem, _ = await refused(events.url, scene.owner.token)
            assert (status, problem["code"]) == (401 if code == 4401 else 403, error)


@pytest.mark.req("orbit:T-R22", "orbit:T-R15", "orbit:AUT-12")
async def test_a_revocation_ends_every_busy_connection(orbit_database: TestDatabase, orbit_scene: Scene) -> None:
    """Eight connections pull and acknowledge without pause; each closes with 4401, and nothing is half done."""
    scene = orbit_scene
    subscription_id = scene.subscribe(max_pending=1000)
    scene.results(40)

    async def consume(events: EventServer) -> int | None:
        async with events.greeted(scene, subscription_id, 4) as client:
            try:
                while True:
                    for delivery in (await client.pull(4))[0]:
                        await client.ack(delivery)
            except (ConnectionClosed, AssertionError):
                await client.connection.wait_closed()
            return client.connection.close_code

    async with event_server(orbit_database.dsn) as events:
        running = [asyncio.create_task(consume(events)) for _ in range(8)]
        await eventually_async(
            lambda: scene.value("select count(*) from orbit.event_deliveries where state = 'ACKED'") > 5,
            what="some ACKs",
        )
        scene.run(LOSSES["revoked"][0], scene.owner.credential_id)
        assert set(await asyncio.gather(*running)) == {4401}
    acked, audits, pending, made = scene.row(
        "select (select count(*) from orbit.event_deliveries where state = 'ACKED'),"
        " (select count(*) from orbit.audit_log where action = 'event.delivery.acked'),"
        " (select pending_count from orbit.event_subscriptions), (select count(*) from orbit.event_deliveries)"
    )
    assert acked == audits
    assert pending == made - acked


@pytest.mark.req("orbit:T-R08", "orbit:LSE-04")
async def test_ten_connections_that_acknowledge_together_count_once(
    orbit_database: TestDatabase, orbit_scene: Scene
) -> None:
    """One answer is the first, nine are duplicates with its time; one audit row, one step of `pending_count`."""
    scene = orbit_scene
    subscription_id = scene.subscribe()
    scene.result()

    async def acknowledge(events: EventServer, delivery: Frame) -> Frame:
        async with events.greeted(scene, subscription_id, 1) as client:
            return await client.ack(delivery)

    async with (
        event_server(orbit_database.dsn, pool_size=8) as events,
        events.greeted(scene, subscription_id) as holder,
    ):
        (delivery,), _ = await holder.pull()
        answers = await asyncio.gather(*(acknowledge(events, delivery) for _ in range(10)))
    assert sorted(answer["duplicate"] for answer in answers) == [False] + [True] * 9
    assert len({answer["acked_at"] for answer in answers}) == 1
    assert scene.row(
        "select (select count(*) from orbit.audit_log where action = 'event.delivery.acked'),"
        " (select pending_count from orbit.event_subscriptions)"
    ) == (1, 0)


@pytest.mark.req("orbit:T-R10", "orbit:LSE-10", "orbit:WSS-07")
async def test_pulls_sent_together_never_lease_more_than_the_capacity(
    orbit_database: TestDatabase, orbit_scene: Scene
) -> None:
    """Twenty pulls in one burst over one connection of capacity 4; then the same with ACKs in between."""
    scene = orbit_scene
    subscription_id = scene.subscribe()
    scene.results(12)

    def held(connection_id: str) -> int:
        return scene.value(
            "select count(*) from orbit.event_deliveries where state = 'LEASED' and lease_connection_id = %s",
            connection_id,
        )

    async with event_server(orbit_database.dsn) as events, events.greeted(scene, subscription_id, 4) as client:
        connection_id = client.hello["connection_id"]
        got: list[Frame] = []
        for _ in range(4):
            burst = [json.dumps({"type": "pull", "request_id": client.request_id(), "max": 32}) for _ in range(20)]
            await client.send_text(*burst)
            ends = 0
            while ends < len(burst):
                frame = await client.receive()
                if frame["type"] == "delivery":
                    got.append(frame)
                else:
                    assert frame["type"] == "pull_done" or frame["code"] == "PULL_IN_PROGRESS"
                    ends += 1
                assert held(connection_id) <= 4
            for delivery in got[-4:]:
                await client.ack(delivery)
    assert len({delivery["delivery_id"] for delivery in got}) == 12


@pytest.mark.req("orbit:T-R24", "orbit:LSE-36")
@pytest.mark.parametrize(("running", "expected"), [("ack", [1, 31]), ("claim", [32])])
async def test_a_burst_of_acks_is_settled_in_groups(
    running: str,
    expected: list[int],
    orbit_database: TestDatabase,
    orbit_scene: Scene,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Frames that arrive while a transaction of the connection runs become one transaction; each has its audit row."""
    scene = orbit_scene
    subscription_id = scene.subscribe()
    scene.results(32)
    groups: list[int] = []
    async with event_server(orbit_database.dsn) as events, events.greeted(scene, subscription_id) as client:
        acknowledge = events.services.deliveries.acknowledge

        async def counted(*arguments: object, **named: object) -> object:
            groups.append(len(named["acks"]))  # pyright: ignore[reportArgumentType] - a list
            return await acknowledge(*arguments, **named)  # pyright: ignore[reportArgumentType] - as given

        monkeypatch.setattr(events.services.deliveries, "acknowledge", counted)
        deliveries, _ = await client.pull()
        with scene.connection.transaction():
            scene.run("select from orbit.event_subscriptions where subscription_id = %s for update", subscription_id)
            pull = await client.send("pull", max=1) if running == "claim" else None
            ids = [await client.send_ack(deliveries[0])] if running == "ack" else []
            await eventually_async(lambda: _waits_for_the_row(scene), what="the first transaction")
            ids += [await client.send_ack(delivery) for delivery in deliveries[len(ids) :]]
            await client.send("ping")
            await client.expect("pong")  # all have been read
        if pull is not None:
            await client.expect("pull_done", request_id=pull, reason="CAPACITY_FULL")
        for request_id in ids:
            await client.expect("ack_result", request_id=request_id, outcome="ACKED", duplicate=False)
    assert groups == expected
    assert scene.value("select count(*) from orbit.audit_log where action = 'event.delivery.acked'") == 32
    assert scene.value("select pending_count from orbit.event_subscriptions") == 0


@pytest.mark.req("orbit:LSE-26", "orbit:LSE-36")
async def test_a_claim_fills_the_places_of_the_acks_before_it(orbit_database: TestDatabase, orbit_scene: Scene) -> None:
    """ACKs and a pull behind them arrive while the row is locked: the one claim takes as many as were acknowledged."""
    scene = orbit_scene
    subscription_id = scene.subscribe()
    scene.results(8)
    async with event_server(orbit_database.dsn) as events, events.greeted(scene, subscription_id, 4) as client:
        deliveries, _ = await client.pull(4)
        with scene.connection.transaction():
            scene.run("select from orbit.event_subscriptions where subscription_id = %s for update", subscription_id)
            ids = [await client.send_ack(delivery) for delivery in deliveries]
            pull = await client.send("pull", max=4)
            await client.send("ping")
            await client.expect("pong")  # all have been read
        for request_id in ids:
            await client.expect("ack_result", request_id=request_id, outcome="ACKED")
        for _ in range(4):
            await client.expect("delivery", pull_request_id=pull)
        await client.expect("pull_done", request_id=pull, delivered=4)


def _waits_for_the_row(scene: Scene) -> bool:
    """Whether some session of the server waits for a lock."""
    return scene.value(
        "select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')"
    )


@pytest.mark.req("orbit:WSS-10", "orbit:LSE-36")
async def test_acks_are_settled_while_the_deliveries_of_a_pull_are_being_sent(
    orbit_database: TestDatabase, orbit_scene: Scene
) -> None:
    """A client that reads slowly sends the ACK of the first before it has read the last: it counts at once."""
    scene = orbit_scene
    subscription_id = scene.subscribe()
    large = json.dumps("x" * 1_000_000)
    for _ in range(12):
        scene.result(large)

    async with event_server(orbit_database.dsn) as events, events.greeted(scene, subscription_id) as client:
        await client.send("pull", max=32)
        first = await client.expect("delivery")
        await client.send_ack(first)
        await eventually_async(
            lambda: scene.value("select count(*) from orbit.event_deliveries where state = 'ACKED'") == 1,
            what="the ACK",
        )
        assert len(client.received) == 2  # `hello_ok` and the first delivery
        await _drained(client, 11)


async def _drained(client: EventClient, deliveries: int) -> None:
    kinds = [(await client.receive())["type"] for _ in range(deliveries + 2)]
    assert sorted(kinds) == ["ack_result"] + ["delivery"] * deliveries + ["pull_done"]
