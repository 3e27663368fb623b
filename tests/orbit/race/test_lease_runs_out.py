"""One lease that really runs for its thirty seconds; every other test moves the deadline instead (section 23.4)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.kit.eventually import eventually
from tests.kit.orbit.consuming import delivery
from tests.kit.orbit.invariants import assert_invariants
from tests.kit.orbit.scene import Scene

LEASE_SECONDS = 30


@pytest.mark.req("orbit:LSE-06", "orbit:LSE-12", "orbit:LSE-22", "orbit:LSE-29", "orbit:T-C03")
@pytest.mark.timeout(90)
def test_a_lease_nobody_acknowledged_comes_back_after_thirty_real_seconds(orbit_scene: Scene) -> None:
    """Not before, and then with epoch 2, attempts 2 and the same ids, a second after the claim that recycled it."""
    orbit_scene.result()
    one = orbit_scene.subscribe()
    (first,) = orbit_scene.lease(one).leases
    began = orbit_scene.value("select clock_timestamp()")

    def recycled() -> bool:
        assert orbit_scene.lease(one).leases == []
        return delivery(orbit_scene, first.delivery_id)["state"] == "PENDING"

    eventually(recycled, what="the end of the lease", deadline_seconds=LEASE_SECONDS + 10)
    took = orbit_scene.value("select clock_timestamp() - %s", began)
    assert timedelta(seconds=LEASE_SECONDS - 1) < took < timedelta(seconds=LEASE_SECONDS + 5)
    (second,) = eventually(lambda: orbit_scene.lease(one).leases, what="the end of the pause")
    assert (second.delivery_id, second.event_id) == (first.delivery_id, first.event_id)
    assert (second.lease_epoch, second.attempts) == (2, 2)
    assert orbit_scene.acknowledge(one, first)[0][2] == "DELIVERY_LEASE_LOST"
    assert orbit_scene.acknowledge(one, second)[0][2] is None
    assert_invariants(orbit_scene.connection)
