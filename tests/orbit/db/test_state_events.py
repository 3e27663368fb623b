"""State events beside the journal, and what a task says about repeating its work."""

from __future__ import annotations

import pytest

from tests.kit.orbit.scene import Scene


@pytest.mark.req("orbit:SRC-10", "orbit:SRC-11", "orbit:TSK-03")
def test_every_change_of_a_task_is_a_state_event_and_only_results_are_in_the_journal(orbit_scene: Scene) -> None:
    """Created, started, requeued, started, succeeded: five events; the journal has the last, under the same id."""
    task_id = orbit_scene.submit(policy="safe")
    (first,) = orbit_scene.claim()
    _ = orbit_scene.confirm(first, outcome="failed", effect="none", retryable=True)
    orbit_scene.age_task(task_id)
    (second,) = orbit_scene.claim()
    receipt = orbit_scene.confirm(second, "1")
    events = orbit_scene.rows(
        "select type, event_id from orbit.events where task_id = %s order by task_revision", task_id
    )
    assert [kind for kind, _ in events] == [
        "task.created",
        "task.started",
        "task.requeued",
        "task.started",
        "task.succeeded",
    ]
    journal = orbit_scene.rows("select event_id, queue_id, sequence from orbit.result_events")
    assert journal == [(receipt["event_id"], orbit_scene.queue_id, 1)]
    assert events[-1] == ("task.succeeded", receipt["event_id"])


@pytest.mark.req("orbit:TSK-04", "orbit:TSK-06")
@pytest.mark.parametrize(("policy", "state"), [("safe", "queued"), ("unsafe", "needs_review"), (None, "needs_review")])
def test_work_of_unknown_effect_is_repeated_only_where_that_is_safe(
    orbit_scene: Scene, policy: str | None, state: str
) -> None:
    """`unsafe` is what a task is when nobody says otherwise: repeating it might do harm."""
    task_id = orbit_scene.submit(policy=policy)
    (attempt,) = orbit_scene.claim()
    _ = orbit_scene.confirm(attempt, outcome="failed", effect="unknown", retryable=True)
    found = orbit_scene.row("select effect_policy, state from orbit.tasks where task_id = %s", task_id)
    assert found == (policy or "unsafe", state)
