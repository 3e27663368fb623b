"""Every path to a result, through journal, delivery and SDK, to the inbox of the receiver example."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from examples.orbit.inbox_store import open_store
from orbit.sdk import Category, EventConnection, ReceivedEvent
from tests.kit.database import TestDatabase
from tests.kit.orbit.scene import Attempt, Scene, request_sha256
from tests.kit.orbit.server import serving


def _running(scene: Scene, policy: str, *, attempts: int | None = None) -> Attempt:
    """A task that a worker holds."""
    task = scene.submit(policy=policy, max_attempts=attempts)
    (attempt,) = scene.claim()
    assert attempt.task_id == task
    return attempt


def _cancel(scene: Scene, task: str) -> None:
    revision = scene.value("select revision from orbit.tasks where task_id = %s", task)
    scene.row(
        "select * from orbit.task_cancel_v1(%s, %s, %s, 'test', %s, %s)",
        scene.owner.sha256,
        task,
        revision,
        scene.key(),
        request_sha256(task, revision),
    )


def _resolve(scene: Scene, task: str, outcome: str, result: str) -> None:
    revision = scene.value("select revision from orbit.tasks where task_id = %s", task)
    scene.row(
        "select * from orbit.task_resolve_v1(%s, %s, %s, %s, %s, true, 'test', %s, %s)",
        scene.owner.sha256,
        task,
        revision,
        outcome,
        result,
        scene.key(),
        request_sha256(task, outcome),
    )


def _abandon(scene: Scene, attempt: Attempt) -> None:
    """Let a worker's lease run out, and recover the attempt."""
    scene.age_attempt(attempt.attempt_id)
    scene.row("select * from orbit.attempt_recover_v1(%s)", attempt.attempt_id)


def _receive(database: TestDatabase, scene: Scene, subscription: str) -> list[ReceivedEvent]:
    """Everything that is delivered, acknowledged, in order of sequence."""
    events: list[ReceivedEvent] = []
    with (
        serving(database.dsn) as server,
        EventConnection.connect(server.base_url, scene.owner.token, subscription, capacity=32) as connection,
    ):
        while pulled := connection.pull(32):
            events += pulled
            for event in pulled:
                connection.ack(event)
    return sorted(events, key=lambda event: event.sequence)


def _states(file: Path) -> dict[str, tuple[Any, ...]]:
    with closing(sqlite3.connect(file)) as database:
        rows = database.execute("select task_id, state, needs_review, effect_uncertain, result_text from task_results")
        return {row[0]: row[1:] for row in rows.fetchall()}


@pytest.mark.req("orbit:T-E02", "orbit:SRC-09", "orbit:SDK-07")
def test_every_path_to_a_result_reaches_the_consumer_in_its_category(
    orbit_scene: Scene, orbit_database: TestDatabase
) -> None:
    """Confirmation, cancellation, recovery, exhaustion and resolution; a requeue is not among them."""
    scene = orbit_scene
    subscription = scene.subscribe()
    expected: list[tuple[str, str]] = []

    def then(path: str, event_type: str) -> None:
        expected.append((path, event_type))
        assert scene.head() == len(expected), path

    scene.result("1")
    then("confirmed", "task.succeeded")
    scene.result("2", outcome="failed")
    then("confirmed as failed", "task.failed")
    unclear = scene.result(outcome="failed", effect="unknown")
    then("confirmed as unclear", "task.needs_review")
    _cancel(scene, scene.submit())
    then("cancelled while queued", "task.cancelled")
    _cancel(scene, _running(scene, "safe").task_id)
    then("cancelled while it ran", "task.cancelled")
    _cancel(scene, _running(scene, "unsafe").task_id)
    then("cancelled while it ran, with effects", "task.needs_review")
    _abandon(scene, _running(scene, "unsafe"))
    then("abandoned, with effects", "task.needs_review")
    _abandon(scene, _running(scene, "safe", attempts=1))
    then("abandoned at the last attempt", "task.failed")
    _resolve(scene, unclear["task_id"], "succeeded", "3")
    then("resolved", "task.succeeded")
    retried = _running(scene, "safe", attempts=2)
    scene.confirm(retried, outcome="failed", retryable=True)
    assert scene.head() == len(expected), "a requeue is no result"

    events = _receive(orbit_database, scene, subscription)
    assert [event.event_type for event in events] == [event_type for _, event_type in expected]
    categories = {
        "task.succeeded": Category.SUCCESS,
        "task.failed": Category.FAILURE,
        "task.cancelled": Category.CANCELLED,
        "task.needs_review": Category.REVIEW,
    }
    for event in events:
        assert event.category is categories[event.event_type]
        assert event.is_final is (event.event_type != "task.needs_review")
        assert event.snapshot["state"] == event.event_type.removeprefix("task.")


@pytest.mark.req("orbit:T-E04", "orbit:SRC-04", "orbit:SRC-16", "orbit:EXM-07", "orbit:MAT-08")
def test_a_review_and_its_resolution_are_two_events_and_the_inbox_keeps_the_newer_state(
    orbit_scene: Scene, orbit_database: TestDatabase, tmp_path: Path
) -> None:
    """The first snapshot stays as it was published; an inbox that gets the second one first is not set back."""
    scene = orbit_scene
    subscription = scene.subscribe()
    task = scene.result(outcome="failed", effect="unknown")["task_id"]
    published = scene.value("select snapshot_json from orbit.result_events where sequence = 1")
    _resolve(scene, task, "failed", '{"checked":1.00}')
    assert scene.value("select snapshot_json from orbit.result_events where sequence = 1") == published

    review, final = _receive(orbit_database, scene, subscription)
    assert review.event_id != final.event_id
    assert (review.snapshot_text, review.is_final, final.is_final) == (published, False, True)
    assert final.snapshot["revision"] == review.snapshot["revision"] + 1
    for name, order in {"in order": (review, final), "the other way": (final, review)}.items():
        file = tmp_path / name
        with closing(open_store(str(file))) as store:
            assert [store.apply(event) for event in order] == [True, True]
        assert _states(file) == {task: ("failed", 0, 0, '{"checked":1.00}')}
    with closing(open_store(str(tmp_path / "review only"))) as store:
        store.apply(review)
    assert _states(tmp_path / "review only") == {task: ("needs_review", 1, 1, "null")}
    assert json.loads(review.snapshot_text)["effect_uncertain"] is True
