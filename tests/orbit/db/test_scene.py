"""The scene of the test kit over the real functions: from a task to an acknowledged delivery."""

from __future__ import annotations

from tests.kit.orbit.scene import Scene


def test_a_scene_carries_a_result_from_a_task_to_its_acknowledgement(orbit_scene: Scene) -> None:
    """The whole path, once, so that a broken builder shows here and not in every other test."""
    subscription_id = orbit_scene.subscribe()
    receipt = orbit_scene.result('{"total":1.00}')
    claimed = orbit_scene.lease(subscription_id)
    (lease,) = claimed.leases
    assert (lease.event_id, lease.event_sequence) == (receipt["event_id"], receipt["sequence"])
    assert lease.snapshot_json.endswith('"result":{"total":1.00}}')
    ((_, delivery_id, code, _, duplicate),) = orbit_scene.acknowledge(subscription_id, lease)
    assert (delivery_id, code, duplicate) == (lease.delivery_id, None, False)
    assert orbit_scene.head() == 1
