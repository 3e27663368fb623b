"""An event that kills whoever handles it ends in quarantine, alone; its neighbours are delivered (F20)."""

from __future__ import annotations

from uuid import UUID

import pytest

from tests.kit.handlers import POISON_EXIT
from tests.kit.processes import Worker
from tests.kit.scene import Scene

NEIGHBOURS = 30
ATTEMPTS_MAX = 5
IN_COMPANY = 3
"""Deaths in company, in a batch of up to 500, of 62, of 7; perhaps twice, since younger suspects widen it again."""
POLICY = {"max_attempts": ATTEMPTS_MAX, "breaker_failures": 1_000}
"""A breaker would spare most of the calls that are to be refused."""

_QUARANTINED = "select event_id, reason from seapost.delivery_quarantine"
_STARTS = "select count(*) from seapost.delivery_attempt_start"
_CALLS_WITH = "select count(*) from public.call where event_id = %s"


def _append(scene: Scene) -> UUID:
    scene.append(NEIGHBOURS // 2)
    (poison,) = scene.append(1, do="die")
    scene.append(NEIGHBOURS - NEIGHBOURS // 2)
    return poison


def _assert_isolated(scene: Scene, poison: UUID, dead: list[Worker]) -> None:
    """The poison alone is in quarantine, after as many deaths as it takes, and everybody else was delivered."""
    assert scene.source.rows(_QUARANTINED) == [(poison, "policy_max_attempts")]
    assert scene.source.count("seapost.delivery_acknowledgement") == NEIGHBOURS
    assert {worker.code for worker in dead} == {POISON_EXIT}
    assert ATTEMPTS_MAX <= len(dead) <= ATTEMPTS_MAX + 2 * IN_COMPANY
    assert scene.sink.value(_CALLS_WITH, poison) >= len(dead)
    scene.assert_kept()


@pytest.mark.req("F20", "RTY-02", "DLV-13")
@pytest.mark.parametrize("refused", [0, 5], ids=["back at once", "back after some refused calls"])
def test_poison_kills_its_consumer(scene: Scene, refused: int) -> None:
    """Deaths with the poison alone count; deaths in company, and calls while the consumer is away, count for nobody."""
    poison = _append(scene)
    consumers = [scene.consumer()]
    scene.caller(destination_settings=POLICY)
    back_at: list[int] = []

    def restart() -> None:
        if consumers[-1].lives:
            return
        starts = scene.source.value(_STARTS)
        if len(back_at) < len(consumers):
            back_at.append(starts + refused)
        if starts >= back_at[-1]:
            consumers.append(scene.consumer())

    scene.await_end(restart)
    _assert_isolated(scene, poison, [consumer for consumer in consumers if not consumer.lives])


@pytest.mark.req("F20", "CLM-07", "DLV-13")
def test_poison_kills_its_dispatcher(scene: Scene) -> None:
    """The same when the dispatcher itself dies with its handler: recovery counts what no process lived to report."""
    poison = _append(scene)
    settings = {**POLICY, "lease_seconds": 0.4}
    dispatchers = [scene.dispatcher(destination_settings=settings)]

    def restart() -> None:
        if not dispatchers[-1].lives:
            dispatchers.append(scene.dispatcher(destination_settings=settings))

    scene.await_end(restart)
    _assert_isolated(scene, poison, [dispatcher for dispatcher in dispatchers if not dispatcher.lives])
