"""The producer dies around its COMMIT, many times: the business change and its event share one fate (F01)."""

from __future__ import annotations

import pytest
from psycopg import conninfo

from tests.kit import producer
from tests.kit.orders import Order
from tests.kit.producer import Moment
from tests.kit.scene import Scene
from tests.kit.seeds import new_seed

KILLS = 60

_ORPHANS = """
select o.event_id, e.event_id from public.placed_order as o
full outer join seapost.event as e on e.event_id = o.event_id where o.event_id is null or e.event_id is null"""
_EVENTS = "select event_id::text from seapost.event"


def _said(reports: list[str], word: str) -> set[str]:
    return {line.removeprefix(f"{word} ") for line in reports if line.startswith(f"{word} ")}


@pytest.mark.req("F01", "APP-02", "GEN-07")
def test_a_producer_is_killed_around_its_commit(each_scene: Scene) -> None:
    """After 60 kills every business row has its event and every event its row; what was confirmed is there, and only
    what was committed is delivered.
    """
    scene = each_scene
    scene.source.connection.execute(producer.TABLES)
    dsn = conninfo.make_conninfo(scene.source.database.dsn, application_name="seapost-producer")
    killer = scene.start(Order(part="producer", name="producer", source=dsn, seed=new_seed(), kills=KILLS))
    killer.await_report("ended")
    scene.source.await_gone("producer")
    deaths = [line.split(" ", 2)[2] for line in killer.reports if line.startswith("died ")]
    assert sorted(set(deaths)) == sorted(f"{moment} -9" for moment in Moment)
    assert len(deaths) == KILLS
    assert scene.source.rows(_ORPHANS) == []
    stored = {row[0] for row in scene.source.rows(_EVENTS)}
    confirmed, doubtful = _said(killer.reports, "committed"), _said(killer.reports, "in doubt")
    assert confirmed
    assert confirmed <= stored
    assert not stored & _said(killer.reports, "doomed")
    # A victim killed from outside may have committed without living to say so.
    assert len(stored - confirmed - doubtful) <= deaths.count(f"{Moment.FROM_OUTSIDE} -9")
    scene.dispatcher()
    scene.await_end()
    assert scene.sink.count("public.effect") == len(stored)
    scene.assert_kept()
