"""What tests of subscriptions do again and again: look at rows, manage, use up a delivery, run on several sessions."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import psycopg
from psycopg import Connection

from tests.kit.database import TestDatabase
from tests.kit.orbit.scene import Lease, Scene

ResultT = TypeVar("ResultT")


def delivery(scene: Scene, delivery_id: str) -> dict[str, Any]:
    """The row of a delivery."""
    text = scene.value(
        "select row_to_json(d)::text from orbit.event_deliveries as d where delivery_id = %s", delivery_id
    )
    return json.loads(text)


def subscription(scene: Scene, subscription_id: str) -> dict[str, Any]:
    """The row of a subscription."""
    text = scene.value(
        "select row_to_json(s)::text from orbit.event_subscriptions as s where subscription_id = %s", subscription_id
    )
    return json.loads(text)


def exhausted(scene: Scene, subscription_id: str) -> Lease:
    """Lease the only delivery of a subscription with a budget of one and let it expire."""
    (lease,) = scene.lease(subscription_id).leases
    scene.age_lease(lease.delivery_id)
    assert scene.lease(subscription_id).leases == []
    assert delivery(scene, lease.delivery_id)["state"] == "EXPIRED"
    return lease


def retry(scene: Scene, subscription_id: str, delivery_id: str, **changed: Any) -> dict[str, Any]:
    """Retry a delivery; its body."""
    given: dict[str, Any] = {
        "revision": scene.value("select revision from orbit.event_deliveries where delivery_id = %s", delivery_id),
        "reason": "fixed",
        "additional": 5,
        "key": scene.key(),
    } | changed
    _, text, _, _ = scene.row(
        "select * from orbit.delivery_retry_v1(%s, %s, %s, %s::bigint, %s, %s::int, %s, %s)",
        scene.owner.sha256,
        subscription_id,
        delivery_id,
        given["revision"],
        given["reason"],
        given["additional"],
        given["key"],
        "c" * 64,
    )
    return json.loads(text)


def change(scene: Scene, verb: str, subscription_id: str, revision: int | None, **changed: Any) -> tuple[Any, ...]:
    """Pause or resume; the row that the function answers."""
    arguments = (
        changed.get("credential", scene.owner).sha256,
        subscription_id,
        revision,
        changed.get("reason"),
        changed.get("key") or scene.key(),
        changed.get("sha", "d" * 64),
    )
    if verb == "pause":
        return scene.row("select * from orbit.subscription_pause_v1(%s, %s, %s::bigint, %s, %s, %s)", *arguments)
    return scene.row("select * from orbit.subscription_resume_v1(%s, %s, %s::bigint, %s, %s, %s)", *arguments)


def on(scene: Scene, connection: Connection[Any]) -> Scene:
    """The same scene over another session."""
    twin = copy.copy(scene)
    twin.connection = connection
    return twin


def at_once(
    database: TestDatabase, scene: Scene, count: int, work: Callable[[Scene, int], ResultT]
) -> list[ResultT | str]:
    """Run `work` on `count` sessions at the same time; results, or SQLSTATEs of refusals."""

    def run(number: int) -> ResultT | str:
        with psycopg.connect(database.dsn, autocommit=True) as connection:
            try:
                return work(on(scene, connection), number)
            except psycopg.Error as error:
                return error.sqlstate or repr(error)

    with ThreadPoolExecutor(max_workers=count) as pool:
        return list(pool.map(run, range(count)))


def seed_results(scene: Scene, first: int, count: int) -> None:
    """Put results into the journal at once, as history from elsewhere."""
    with scene.connection.transaction():
        scene.run("set local session_replication_role = replica")
        scene.run(
            "with made as (select n, 'evt_' || lpad(to_hex(n), 32, '0') as event_id,"
            " 'task_' || lpad(to_hex(n), 32, '0') as task_id from generate_series(%s::bigint, %s::bigint) as n),"
            " events as (insert into orbit.events (event_id, namespace_id, queue_id, task_id, type, task_revision)"
            " select event_id, %s, %s, task_id, 'task.succeeded', 3 from made)"
            " insert into orbit.result_events"
            " (event_id, namespace_id, queue_id, task_id, type, sequence, snapshot_json)"
            " select event_id, %s, %s, task_id, 'task.succeeded', n,"
            ' \'{"schema_version":1,"task_id":"\' || task_id ||'
            ' \'","queue_id":"\' || %s || \'","state":"succeeded","revision":3,"effect_uncertain":false,\''
            ' || \'"current_attempt_id":null,"result":null}\' from made order by n',
            first,
            first + count - 1,
            scene.namespace_id,
            scene.queue_id,
            scene.namespace_id,
            scene.queue_id,
            scene.queue_id,
        )
