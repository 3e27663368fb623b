"""A worker that is frozen past its lease, or whose clock is wrong: the fence decides, never anybody's sense of time."""

from __future__ import annotations

from datetime import datetime

import pytest

from seapost.telemetry.catalog import LogEvent
from tests.kit.builders import SHIPPED
from tests.kit.crash import Blow, Point, Trap
from tests.kit.handlers import WAITING_ROOM
from tests.kit.processes import Worker
from tests.kit.scene import Scene

EVENTS = 12
SHARED = 6
DELIVERIES = EVENTS + 2 * SHARED
ACKNOWLEDGED, EXPIRED = 1, 4
HOUR = 3600.0
SHORT = {"lease_seconds": 0.4}
LONGER = {"lease_seconds": 2.5}
"""Long enough to be renewed in time on a busy machine; four renewals, each after a third, outlast it."""

LEASES = "select event_id, attempt_id, token, expires_at from seapost.delivery_lease order by event_id"
_ATTEMPTS = "select attempt_id from seapost.delivery_attempt_start where owner = %s"


def _called(scene: Scene) -> set[int]:
    """The attempts for which the consumer was called."""
    return {row[0] for row in scene.sink.rows("select attempt_id from public.call")}


def _attempts(scene: Scene, owner: str) -> set[int]:
    return {row[0] for row in scene.source.rows(_ATTEMPTS, owner)}


def _was_refused(worker: Worker) -> bool:
    """Whether the worker was told that it is too late: by a renewal that named nothing, or by a stale settle."""
    return LogEvent.SETTLE_STALE in worker.log or LogEvent.LEASES_LOST in worker.log


def _first_expiry(scene: Scene) -> datetime | None:
    return scene.source.value("select min(expires_at) from seapost.delivery_lease")


def _await_renewals(scene: Scene, number: int) -> None:
    """Wait until the oldest lease has been lengthened so often."""
    for _ in range(number):
        before = _first_expiry(scene)
        scene.await_true(lambda before=before: _first_expiry(scene) not in {before, None}, "a renewed lease")


@pytest.mark.req("F14", "CLM-07", "CLM-08", "CLM-09", "DLV-15", "TST-30", "TST-33")
@pytest.mark.parametrize(
    "point",
    [Point.CLAIM_COMMITTED, Point.CALL_STARTED, Point.ANSWERED, Point.SETTLE_UNSENT],
    ids=lambda point: point.replace(" ", "-"),
)
def test_a_frozen_worker_wakes_after_its_lease(scene: Scene, point: Point) -> None:
    """Its successor ends the deliveries; awake, it starts no call, its settle is refused, and it works on honestly."""
    scene.append(EVENTS)
    scene.append(SHARED, SHIPPED)
    scene.consumer()
    zombie = scene.caller("zombie", trap=Trap(point, blow=Blow.STOP), destination_settings=SHORT)
    zombie.await_stopped()
    successor = scene.caller("successor")
    scene.await_end()
    lost = _attempts(scene, zombie.owner)
    called = lost & _called(scene)
    assert scene.outcomes(zombie.owner) == {EXPIRED: len(lost)}
    assert successor.end() == 0
    zombie.wake()
    later = scene.append(3)
    scene.await_end()
    assert zombie.end() == 0
    assert _was_refused(zombie)
    if point is not Point.CALL_STARTED:  # a call that had begun may still arrive; the receipt answers it
        assert lost & _called(scene) == called
    assert scene.outcomes(zombie.owner)[ACKNOWLEDGED] == len(later)
    assert scene.outcomes(successor.owner)[ACKNOWLEDGED] == DELIVERIES
    scene.assert_kept()


@pytest.mark.req("CLM-05", "CLM-09", "DLV-15", "TST-30", "TST-33", "F14")
@pytest.mark.parametrize("point", [Point.ANSWERED, Point.SETTLE_UNSENT], ids=lambda point: point.replace(" ", "-"))
def test_a_settle_of_the_former_holder_leaves_the_new_lease_alone(scene: Scene, point: Point) -> None:
    """While its successor holds the deliveries, the settle of the worker that woke too late takes none of them away."""
    scene.append(EVENTS)
    scene.consumer()
    zombie = scene.caller("zombie", trap=Trap(point, blow=Blow.STOP), destination_settings={"lease_seconds": 1.5})
    zombie.await_stopped()
    successor = scene.caller(
        "successor", trap=Trap(Point.CALL_STARTED, blow=Blow.STOP), destination_settings={"lease_seconds": 60.0}
    )
    successor.await_stopped()
    leases = scene.source.rows(LEASES)
    assert len(leases) == EVENTS
    zombie.wake()
    assert zombie.end() == 0
    assert _was_refused(zombie)
    assert scene.source.rows(LEASES) == leases
    assert scene.source.count("seapost.delivery_acknowledgement") == 0
    successor.wake()
    scene.await_end()
    assert scene.outcomes(successor.owner) == {ACKNOWLEDGED: EVENTS}
    scene.assert_kept()


@pytest.mark.req("F14", "CLM-05")
def test_a_healthy_worker_keeps_work_that_takes_longer_than_its_lease(scene: Scene) -> None:
    """Renewal holds the lease while the call runs: each event is delivered once, by one attempt."""
    scene.sink.rows("select pg_advisory_lock(%s)", WAITING_ROOM)
    scene.append(EVENTS, do="wait")
    scene.consumer()
    scene.caller("holder", destination_settings=LONGER)
    scene.caller("rival", destination_settings=LONGER)
    scene.await_true(lambda: len(_called(scene)) == EVENTS, "the call")
    _await_renewals(scene, 4)
    scene.sink.rows("select pg_advisory_unlock(%s)", WAITING_ROOM)
    scene.await_end()
    assert scene.source.count("seapost.delivery_attempt_start") == EVENTS
    scene.assert_kept()


@pytest.mark.req("F19", "CLM-07")
@pytest.mark.parametrize("shift", [HOUR, -HOUR], ids=["an hour fast", "an hour slow"])
def test_a_wrong_clock_steals_nothing_and_delays_nothing(scene: Scene, shift: float) -> None:
    """Leases and retries go by the database's clock: a rival an hour off takes no live work and waits no longer."""
    scene.sink.rows("select pg_advisory_lock(%s)", WAITING_ROOM)
    held = scene.append(EVENTS, do="wait")
    holder = scene.dispatcher("holder", destination_settings={**LONGER, "lanes": 1})
    scene.await_true(lambda: len(_called(scene)) == EVENTS, "the call")
    rival = scene.dispatcher("rival", clock_shift_seconds=shift)
    scene.append(EVENTS, do="retry")
    scene.await_true(lambda: scene.unended() == EVENTS, "the rival's own work")
    _await_renewals(scene, 4)
    scene.sink.rows("select pg_advisory_unlock(%s)", WAITING_ROOM)
    scene.await_end()
    assert scene.outcomes(rival.owner) == {1: EVENTS, 2: 2 * EVENTS}
    assert scene.outcomes(holder.owner) == {1: EVENTS}
    attempts = scene.source.value(
        "select max(attempt_number) from seapost.delivery_attempt_start where event_id = any (%s)", held
    )
    assert attempts == 1
    scene.assert_kept()
