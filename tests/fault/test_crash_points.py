"""A process dies by SIGKILL at each point of the walk; a successor brings every delivery to its end, once."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.kit.builders import SHIPPED
from tests.kit.crash import Point, Trap
from tests.kit.scene import Scene

EVENTS = 12
SHARED = 6
KILLED = -9
SHORT = {"lease_seconds": 0.4}
ACKNOWLEDGED, RETRYABLE, EXPIRED = 1, 2, 4


@dataclass(frozen=True, slots=True)
class Case:
    """What a death at this point leaves.

    Attributes:
        nth: which time of reaching the point is the last.
        endings: how the attempts of the dead dispatcher may have ended; one of each first kind must be there.
        applied: whether receipts and effects were committed before the death.
    """

    point: Point
    nth: int = 1
    endings: tuple[int, ...] = (EXPIRED,)
    applied: bool = False


CASES = [
    Case(Point.CLAIM_UNSENT, endings=()),
    Case(Point.CLAIM_COMMITTED),
    Case(Point.CALL_STARTED),
    Case(Point.RECEIVED),
    Case(Point.RECEIPT_WRITTEN),
    Case(Point.EFFECT_WRITTEN, nth=4),
    Case(Point.EFFECT_COMMITTED, applied=True),
    Case(Point.ANSWERED, applied=True),
    Case(Point.SETTLE_UNSENT, applied=True),
    Case(Point.SETTLE_COMMITTED, endings=(ACKNOWLEDGED, EXPIRED), applied=True),
]
PROCESS_POINTS = {
    Point.CLAIM_UNSENT,
    Point.CLAIM_COMMITTED,
    Point.CALL_STARTED,
    Point.ANSWERED,
    Point.SETTLE_UNSENT,
    Point.SETTLE_COMMITTED,
}


def _append(scene: Scene) -> None:
    scene.append(EVENTS)
    scene.append(SHARED, SHIPPED)


def _assert_all_acknowledged(scene: Scene) -> None:
    assert scene.source.count("seapost.delivery_acknowledgement") == EVENTS + 2 * SHARED
    assert scene.source.count("seapost.publication") == EVENTS + SHARED
    scene.assert_kept()


@pytest.mark.req("TST-27", "TST-28", "TST-34", "CLM-04", "CLM-08", "DLV-12", "DLV-14", "PUB-09", "F30", "F32")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.point.replace(" ", "-"))
def test_a_dispatcher_with_its_inbox_dies_at_any_point(each_scene: Scene, case: Case) -> None:
    """Whatever of the walk was done, the successor ends every delivery; effects and receipts exist exactly once."""
    scene = each_scene
    _append(scene)
    victim = scene.dispatcher("victim", trap=Trap(case.point, case.nth), destination_settings=SHORT)
    assert victim.await_end() == KILLED
    scene.sink.await_gone("inbox")
    applied = scene.sink.count("public.effect")
    assert applied == scene.sink.count("seapost.inbox_receipt")
    assert (applied > 0) == case.applied
    scene.dispatcher("successor")
    scene.await_end()
    endings = scene.outcomes(victim.owner)
    assert endings.keys() <= set(case.endings)
    assert endings.keys() >= set(case.endings[:1])
    _assert_all_acknowledged(scene)


@pytest.mark.req("TST-27", "TST-28", "TST-34", "GEN-16", "DLV-14", "CLM-04", "F15")
@pytest.mark.parametrize(
    "case", [case for case in CASES if case.point in PROCESS_POINTS], ids=lambda case: case.point.replace(" ", "-")
)
def test_a_dispatcher_dies_and_its_consumer_lives(scene: Scene, case: Case) -> None:
    """Over HTTP the consumer goes on without the caller; whoever comes next gets the receipts that it wrote."""
    _append(scene)
    scene.consumer()
    victim = scene.caller("victim", trap=Trap(case.point, case.nth), destination_settings=SHORT)
    assert victim.await_end() == KILLED
    scene.caller("successor")
    scene.await_end()
    assert scene.outcomes(victim.owner).keys() <= set(case.endings)
    _assert_all_acknowledged(scene)


@pytest.mark.req("TST-27", "TST-34", "GEN-16", "DLV-13", "F32", "NEG-46")
@pytest.mark.parametrize(
    "case", [case for case in CASES if case.point not in PROCESS_POINTS], ids=lambda case: case.point.replace(" ", "-")
)
def test_a_consumer_dies_and_its_dispatcher_lives(scene: Scene, case: Case) -> None:
    """A consumer that dies before its commit leaves nothing; after it, the receipt is found by the next attempt."""
    _append(scene)
    victim = scene.consumer("victim", trap=Trap(case.point, case.nth))
    dispatcher = scene.caller()
    assert victim.await_end() == KILLED
    scene.sink.await_gone("inbox")
    applied = scene.sink.count("public.effect")
    assert applied == scene.sink.count("seapost.inbox_receipt")
    assert (applied > 0) == case.applied
    scene.consumer("successor")
    scene.await_end()
    assert scene.outcomes(dispatcher.owner).keys() == {ACKNOWLEDGED, RETRYABLE}
    _assert_all_acknowledged(scene)
