"""Who owned the work is gone, came back under the same name, or is an older copy of itself (F15, F31)."""

from __future__ import annotations

from contextlib import closing

import pytest

from tests.kit import invariants
from tests.kit.builders import SHIPPED
from tests.kit.crash import Point, Trap
from tests.kit.database import DatabaseServer
from tests.kit.scene import Scene, Side

EVENTS = 12
SHARED = 6
SAME = "dispatcher-1"
RECEIPTS = "select * from seapost.inbox_receipt order by consumer, event_id"


@pytest.mark.req("F15", "CLM-07", "CLM-08")
def test_a_successor_of_the_same_name_does_not_keep_its_predecessor_alive(scene: Scene) -> None:
    """Ownership ends with the lease alone: work of the dead is taken up although somebody of its name is at work."""
    scene.append(EVENTS)
    victim = scene.dispatcher(
        "first", owner=SAME, trap=Trap(Point.CALL_STARTED), destination_settings={"lease_seconds": 0.4}
    )
    victim.await_end()
    scene.dispatcher("second", owner=SAME)
    scene.await_end()
    assert scene.outcomes(SAME) == {1: EVENTS, 4: EVENTS}
    scene.assert_kept()


@pytest.mark.req("F31", "DLV-14", "TST-34")
def test_a_producer_restored_from_an_older_copy_repeats_no_effect(
    scene: Scene, database_server: DatabaseServer
) -> None:
    """A restored producer delivers again what it no longer knows to be done; receipts answer, effects stay single."""
    scene.append(EVENTS)
    scene.append(SHARED, SHIPPED)
    scene.source.close()
    copy = database_server.copy(scene.source.database)
    scene.dispatcher("original")
    scene.await_end()
    scene.assert_kept()
    receipts = scene.sink.rows(RECEIPTS)
    scene.sink.connection.execute("truncate public.call")  # attempts that the copy has never heard of
    with closing(Side(copy)) as restored:
        scene.dispatcher("restored", source=copy.dsn)
        scene.await_true(lambda: restored.unended() == 0, "the end of every delivery of the copy")
        scene.end()
        assert scene.sink.count("public.answer") >= 2 * (EVENTS + 2 * SHARED)
        assert scene.sink.rows(RECEIPTS) == receipts
        assert invariants.violations(restored.connection, scene.sink.connection) == []
    database_server.drop(copy)
