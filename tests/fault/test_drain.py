"""SIGTERM during work: out within the grace period, nothing left leased, no attempt held against any event (F16)."""

from __future__ import annotations

import signal
from collections.abc import Generator
from contextlib import contextmanager
from time import monotonic

import pytest

from seapost.telemetry.catalog import LogEvent
from tests.kit.crash import Blow, Point, Trap
from tests.kit.handlers import WAITING_ROOM
from tests.kit.proxy import Proxy
from tests.kit.scene import Scene

IN_FLIGHT = 50
BATCH = 10
LINE = {"batch_size": BATCH, "lanes": IN_FLIGHT // BATCH, "lease_seconds": 30.0}
AT_ONCE = {"drain_seconds": 0.2, "give_back_seconds": 1.0}
PATIENT = {"drain_seconds": 3_600.0, "give_back_seconds": 1.0}
GRACE_SECONDS_MAX = 10.0
"""Far more than asked for, far less than any lease or timeout: the machine may be busy."""

_GIVEN_BACK = """
select count(*) from seapost.delivery_attempt_finish where outcome = 2 and error_code = 'worker_stopped'"""
_HELD_AGAINST = "select count(*) from seapost.delivery_ready where failure_count > 0 or lost_count > 0"


@contextmanager
def _in_flight(scene: Scene, settings: dict[str, float], *, twice: bool) -> Generator[None]:
    """Fifty deliveries wait in their handlers, their dispatcher is told to stop and ends; then the block runs."""
    scene.sink.rows("select pg_advisory_lock(%s)", WAITING_ROOM)
    scene.append(IN_FLIGHT, do="wait")
    scene.consumer()
    dispatcher = scene.caller("stopped", destination_settings=LINE, dispatcher_settings=settings)
    scene.await_true(lambda: scene.sink.count("public.call") == IN_FLIGHT, "fifty calls")
    later = scene.append(BATCH)
    began = monotonic()
    dispatcher.signal(signal.SIGTERM)
    if twice:  # two signals at once would be one
        scene.await_true(lambda: LogEvent.DISPATCHER_STOPPING in dispatcher.log, "the first order heard")
        dispatcher.signal(signal.SIGTERM)
    assert dispatcher.await_end() == 0
    assert monotonic() - began < GRACE_SECONDS_MAX
    assert scene.source.count("seapost.delivery_lease") == 0
    assert scene.source.count("seapost.delivery_ready") == IN_FLIGHT + len(later)
    assert scene.source.value(_GIVEN_BACK) == IN_FLIGHT
    assert scene.source.value(_HELD_AGAINST) == 0
    yield
    scene.sink.rows("select pg_advisory_unlock(%s)", WAITING_ROOM)
    scene.caller("successor", destination_settings={"max_attempts": 1})
    scene.await_end()
    assert scene.source.count("seapost.delivery_acknowledgement") == IN_FLIGHT + len(later)
    scene.assert_kept()


@pytest.mark.req("F16", "F20")
@pytest.mark.parametrize(
    ("settings", "twice"), [(AT_ONCE, False), (PATIENT, True)], ids=["the grace is over", "asked twice"]
)
def test_work_in_flight_is_given_back(scene: Scene, settings: dict[str, float], twice: bool) -> None:
    """It exits with 0, leaves no lease, claims nothing more; its attempts do not count, even where one is the most."""
    with _in_flight(scene, settings, twice=twice):
        assert scene.sink.count("public.effect") == 0


@pytest.mark.req("F16", "CLM-07")
def test_a_stop_without_a_database_leaves_leases_that_lapse(scene: Scene) -> None:
    """It exits all the same when the server cannot be reached; nothing waits longer than one lease."""
    scene.append(IN_FLIGHT)
    with Proxy.before_database(scene.source.database.dsn) as proxy:
        dispatcher = scene.dispatcher(
            "stopped",
            source=proxy.dsn(scene.source.database.dsn),
            destination_settings={"lease_seconds": 1.0},
            dispatcher_settings=AT_ONCE,
            trap=Trap(Point.SETTLE_UNSENT, blow=Blow.STOP),
        )
        dispatcher.await_stopped()
        proxy.hold()
        began = monotonic()
        dispatcher.wake()
        assert dispatcher.end() == 0
        assert monotonic() - began < GRACE_SECONDS_MAX
    scene.dispatcher("successor")
    scene.await_end()
    scene.assert_kept()


@pytest.mark.req("F16")
def test_a_stop_during_a_claim_calls_nobody(scene: Scene) -> None:
    """What a claim brings after the order to stop is given back uncalled."""
    scene.append(IN_FLIGHT)
    dispatcher = scene.dispatcher("stopped", trap=Trap(Point.CLAIM_UNSENT, blow=Blow.STOP))
    dispatcher.await_stopped()
    dispatcher.signal(signal.SIGTERM)
    dispatcher.wake()
    assert dispatcher.await_end() == 0
    assert scene.sink.count("public.call") == 0
    assert scene.source.count("seapost.delivery_lease") == 0
    assert scene.source.count("seapost.delivery_ready") == IN_FLIGHT
    scene.dispatcher("successor")
    scene.await_end()
    scene.assert_kept()
