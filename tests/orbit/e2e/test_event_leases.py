"""Leases over the event connection: late ACKs, replaced proofs, exhausted budgets, lost frames, lost history."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest

from orbit.server.ws.channel import Channel, Gone
from tests.kit.database import TestDatabase
from tests.kit.orbit.events import EventServer, event_server
from tests.kit.orbit.frames import parsed
from tests.kit.orbit.scene import Scene
from tests.orbit.conformance.client import EventClient, Frame


@pytest.fixture
async def events(orbit_database: TestDatabase) -> AsyncIterator[EventServer]:
    """Serve the test's database."""
    async with event_server(orbit_database.dsn, sweeping=True) as server:
        yield server


def state_of(scene: Scene, delivery: Frame) -> str:
    """The state of a delivery."""
    return scene.value("select state from orbit.event_deliveries where delivery_id = %s", delivery["delivery_id"])


def pending(scene: Scene, subscription_id: str) -> int:
    """The subscription's `pending_count`."""
    return scene.value(
        "select pending_count from orbit.event_subscriptions where subscription_id = %s", subscription_id
    )


def retry(scene: Scene, subscription_id: str, delivery: Frame) -> None:
    """Give an exhausted delivery one more attempt by hand."""
    delivery_id = delivery["delivery_id"]
    revision = scene.value("select revision from orbit.event_deliveries where delivery_id = %s", delivery_id)
    scene.run(
        "select orbit.delivery_retry_v1(%s, %s, %s, %s, 'by hand', 1, %s, %s)",
        scene.owner.sha256,
        subscription_id,
        delivery_id,
        revision,
        scene.key(),
        "0" * 64,
    )


def move(scene: Scene, subscription_id: str, operation: str) -> None:
    """Pause or resume by hand."""
    revision = scene.value("select revision from orbit.event_subscriptions where subscription_id = %s", subscription_id)
    arguments = (scene.owner.sha256, subscription_id, revision, "", scene.key(), "0" * 64)
    if operation == "pause":
        scene.run("select orbit.subscription_pause_v1(%s, %s, %s, %s, %s, %s)", *arguments)
    else:
        scene.run("select orbit.subscription_resume_v1(%s, %s, %s, %s, %s, %s)", *arguments)


async def one_leased(client: EventClient) -> Frame:
    """The only delivery of a pull."""
    (delivery,), _ = await client.pull()
    return delivery


@pytest.mark.req("orbit:T-N14", "orbit:LSE-17", "orbit:LSE-23", "orbit:LSE-30", "orbit:LSE-33", "orbit:RTY-07")
@pytest.mark.parametrize("when", ["past the deadline", "recycled", "expired", "retried", "elsewhere", "paused"])
async def test_a_late_ack_counts_until_the_delivery_is_leased_again(
    when: str, events: EventServer, orbit_scene: Scene
) -> None:
    """In every state that can hold a current proof, over any connection, and while paused."""
    scene = orbit_scene
    subscription_id = scene.subscribe(max_attempts=1 if when in {"expired", "retried"} else 5)
    scene.result()
    async with events.greeted(scene, subscription_id) as client:
        delivery = await one_leased(client)
        scene.age_lease(delivery["delivery_id"])
        expected = "LEASED"
        if when in {"recycled", "expired", "retried"}:
            assert (await client.pull())[0] == []
            expected = "PENDING" if when == "recycled" else "EXPIRED"
        if when == "retried":
            retry(scene, subscription_id, delivery)
            expected = "PENDING"
        if when == "paused":
            move(scene, subscription_id, "pause")
        assert state_of(scene, delivery) == expected
        assert pending(scene, subscription_id) == 1
        async with events.greeted(scene, subscription_id) as other:
            answer = await (other if when == "elsewhere" else client).ack(delivery)
        assert (answer["outcome"], answer["duplicate"]) == ("ACKED", False)
    assert state_of(scene, delivery) == "ACKED"
    assert pending(scene, subscription_id) == 0


@pytest.mark.req("orbit:T-N15", "orbit:LSE-18", "orbit:LSE-25", "orbit:ERR-01")
async def test_every_proof_but_the_current_one_is_lost(events: EventServer, orbit_scene: Scene) -> None:
    """Old epoch and secret, mixtures of old and new, never leased, and an old proof of what is acknowledged."""
    scene = orbit_scene
    subscription_id = scene.subscribe()
    scene.results(2)
    async with events.greeted(scene, subscription_id) as client:
        (old,), _ = await client.pull(1)
        scene.age_lease(old["delivery_id"])
        await client.pull(1)  # recycles it, and leases the other one
        never = scene.value(
            "select delivery_id from orbit.event_deliveries where delivery_id <> %s", old["delivery_id"]
        )
        scene.age_backoff(old["delivery_id"])
        (new,) = await client.gather(1)
        assert (new["delivery_id"], new["lease_epoch"], new["attempts"]) == (old["delivery_id"], 2, 2)
        answers = [
            await client.ack(old),
            await client.ack(new, lease_secret=old["lease_secret"]),
            await client.ack(new, lease_epoch=old["lease_epoch"]),
            await client.ack(old, delivery_id=never),
        ]
        assert (await client.ack(new))["outcome"] == "ACKED"
        answers.append(await client.ack(old))
    assert {(answer["outcome"], answer["code"], answer["acked_at"]) for answer in answers} == {
        ("REJECTED", "DELIVERY_LEASE_LOST", None)
    }


@pytest.mark.req("orbit:T-E07", "orbit:LSE-05", "orbit:LSE-14", "orbit:RTY-05")
async def test_a_used_up_budget_stops_the_sending_until_somebody_acts(events: EventServer, orbit_scene: Scene) -> None:
    """Two attempts, then `EXPIRED`: still counted, not sent; a late ACK ends one, a manual retry sends the other."""
    scene = orbit_scene
    subscription_id = scene.subscribe(max_attempts=2, max_pending=2)
    scene.results(2)
    async with events.greeted(scene, subscription_id) as client:
        deliveries: list[Frame] = []
        for _ in range(2):
            deliveries = await client.gather(2)
            for delivery in deliveries:
                scene.age_lease(delivery["delivery_id"])
            await client.pull()
            for delivery in deliveries:
                scene.age_backoff(delivery["delivery_id"])
        again, done = await client.pull()
        assert (again, done["reason"], done["pending_count"]) == ([], "WINDOW_FULL", 2)
        first, second = deliveries
        assert (state_of(scene, first), state_of(scene, second)) == ("EXPIRED", "EXPIRED")
        assert (await client.ack(first))["outcome"] == "ACKED"
        retry(scene, subscription_id, second)
        (third,) = await client.gather(1)
        assert (third["delivery_id"], third["lease_epoch"], third["attempts"]) == (second["delivery_id"], 3, 3)
        assert third["attempt_budget"] == 3
        assert (await client.ack(third))["outcome"] == "ACKED"


@pytest.mark.req("orbit:T-E06", "orbit:PAU-01", "orbit:PAU-03", "orbit:PAU-04", "orbit:LSE-15")
async def test_a_pause_stops_deliveries_and_nothing_else(events: EventServer, orbit_scene: Scene) -> None:
    """In flight: ACKs count, out of order and late; leases stay as they are; after the resume the same ids come."""
    scene = orbit_scene
    subscription_id = scene.subscribe()
    scene.results(4)
    async with events.greeted(scene, subscription_id) as client:
        first, second, third = (await client.pull(3))[0]
        move(scene, subscription_id, "pause")
        for delivery in (first, second, third):
            scene.age_lease(delivery["delivery_id"])
        assert (await client.pull())[1]["reason"] == "PAUSED"
        assert state_of(scene, third) == "LEASED"
        await client.ack(third)
        await client.ack(first)
        move(scene, subscription_id, "resume")
        (fourth,), _ = await client.pull()
        scene.age_backoff(second["delivery_id"])
        (again,) = await client.gather(1)
        assert (again["delivery_id"], again["event_id"]) == (second["delivery_id"], second["event_id"])
        assert fourth["sequence"] == 4


@pytest.mark.req("orbit:T-C03", "orbit:LSE-22", "orbit:LSE-21", "orbit:WSS-13")
async def test_a_claim_that_was_never_sent_comes_again(
    events: EventServer, orbit_scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease had been committed before the first byte left; one attempt is used up, nothing else is lost."""
    scene = orbit_scene
    subscription_id = scene.subscribe()
    scene.result()
    send = Channel.send

    async def lose_deliveries(self: Channel, texts: Iterable[str]) -> None:
        kept = list(texts)
        if kept[0].startswith('{"type":"delivery"'):
            row = scene.row("select state, lease_epoch, delivery_id from orbit.event_deliveries")
            assert row[:2] == ("LEASED", 1)
            raise Gone
        await send(self, kept)

    monkeypatch.setattr(Channel, "send", lose_deliveries)
    async with events.greeted(scene, subscription_id) as client:
        await client.send("pull", max=1)
        await client.connection.wait_closed()
    monkeypatch.undo()
    delivery_id, event_id = scene.row("select delivery_id, event_id from orbit.event_deliveries")
    scene.age_lease(delivery_id)
    async with events.greeted(scene, subscription_id) as client:
        await client.pull()
        scene.age_backoff(delivery_id)
        (delivery,) = await client.gather(1)
    assert (delivery["delivery_id"], delivery["event_id"]) == (delivery_id, event_id)
    assert (delivery["lease_epoch"], delivery["attempts"]) == (2, 2)


@pytest.mark.req("orbit:T-C07", "orbit:LSE-04")
async def test_an_ack_whose_answer_was_lost_is_a_duplicate_when_it_is_repeated(
    events: EventServer, orbit_scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proof counted; the repetition over a new connection gives the original time and writes nothing."""
    scene = orbit_scene
    subscription_id = scene.subscribe()
    scene.result()
    send = Channel.send

    async def lose_answers(self: Channel, texts: Iterable[str]) -> None:
        kept = list(texts)
        if kept[0].startswith('{"type":"ack_result"'):
            raise Gone
        await send(self, kept)

    async with events.greeted(scene, subscription_id) as client:
        delivery = await one_leased(client)
        monkeypatch.setattr(Channel, "send", lose_answers)
        await client.send_ack(delivery)
        await client.connection.wait_closed()
    monkeypatch.undo()
    async with events.greeted(scene, subscription_id) as client:
        answer = await client.ack(delivery)
    assert (answer["outcome"], answer["duplicate"]) == ("ACKED", True)
    rows = scene.rows(
        "select orbit.time_text(d.acked_at), count(*) from orbit.event_deliveries as d join orbit.audit_log as a"
        " on a.resource_id = d.delivery_id and a.action = 'event.delivery.acked' group by d.acked_at"
    )
    assert rows == [(answer["acked_at"], 1)]


def set_history(scene: Scene, subscription_id: str, *, retained_from: int, cursor: int) -> None:
    """Move the retained boundary and the cursor, as cleanup and time would."""
    with scene.connection.transaction():
        scene.run("set local session_replication_role = replica")
        scene.run("update orbit.event_stream_locks set retained_from_sequence = %s", retained_from)
        scene.run(
            "update orbit.event_subscriptions set cursor_sequence = %s where subscription_id = %s",
            cursor,
            subscription_id,
        )


@pytest.mark.req("orbit:T-N17", "orbit:WSS-15", "orbit:ERR-02", "orbit:MAT-18")
async def test_lost_history_ends_pulls_but_not_acks(events: EventServer, orbit_scene: Scene) -> None:
    """The error names both positions, not fatal; what is in hand is acknowledged; `hello` succeeds; 10 goes on."""
    scene = orbit_scene
    subscription_id = scene.subscribe(max_pending=1)
    scene.results(12)
    async with events.greeted(scene, subscription_id) as client:
        (delivery,), _ = await client.pull(1)
        for cursor in (8, 9):
            set_history(scene, subscription_id, retained_from=11, cursor=cursor)
            request_id = await client.send("pull", max=1, wait_ms=20_000)
            await client.expect(
                "error",
                request_id=request_id,
                code="EVENT_HISTORY_EXPIRED",
                fatal=False,
                cursor_sequence=cursor,
                retained_from_sequence=11,
            )
        assert (await client.ack(delivery))["outcome"] == "ACKED"
        assert scene.value("select cursor_sequence from orbit.event_subscriptions") == 9
        async with events.greeted(scene, subscription_id) as other:
            assert other.hello["subscription_status"] == "ACTIVE"
        set_history(scene, subscription_id, retained_from=11, cursor=10)
        assert [one["sequence"] for one in (await client.pull())[0]] == [11]


@pytest.mark.req("orbit:T-P05", "orbit:WSS-09", "orbit:MAT-18", "orbit:SRC-15")
async def test_the_frame_holds_the_text_of_the_journal(events: EventServer, orbit_scene: Scene) -> None:
    """Random exact texts: what the worker sent, the journal's snapshot and the end of the frame are the same bytes."""
    scene = orbit_scene
    subscription_id = scene.subscribe()
    texts = ["1" * 10_000, "-0.0", "1e-7", '"\\ud83d"', '"\\u0000"', "[ 1,\t2 ]", '{"é":"\\/"}', "0.10"]
    for text in texts:
        scene.result(text)
    stored: list[Any] = [
        row[0] for row in scene.rows("select snapshot_json from orbit.result_events order by sequence")
    ]
    async with events.greeted(scene, subscription_id) as client:
        await client.pull()
        frames = [frame for frame in client.received if frame.startswith('{"type":"delivery"')]
    for text, snapshot, frame in zip(texts, stored, frames, strict=True):
        assert snapshot.endswith(f'"result":{text}}}')
        assert frame.endswith(f',"snapshot":{snapshot}}}')
        assert parsed(frame)["snapshot"]["revision"] == 3
