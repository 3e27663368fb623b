"""Database sessions vanish while work is under way: of the dispatcher, of the consumer, of the listener."""

from __future__ import annotations

import pytest

from seapost.telemetry.catalog import LogEvent
from tests.kit.builders import SHIPPED
from tests.kit.proxy import Proxy
from tests.kit.scene import Scene, Side

ROUNDS = 8
CHUNK = 40
NEVER_POLLS = {"poll_seconds": (60.0,)}
IN_TIME_SECONDS = 30.0
"""Long before the next poll: only a notification or the sweep of a reconnected listener can deliver by then."""

_LISTENERS = """
select pid from pg_stat_activity where datname = current_database() and application_name = 'seapost-listener'"""
_ASLEEP = """
select count(*) from pg_locks as l join pg_stat_activity as a on a.pid = l.pid
where l.locktype = 'advisory' and l.granted and a.application_name = 'seapost-listener'
  and a.datname = current_database()"""


@pytest.mark.req("DLV-14", "DLV-15", "PUB-09", "TST-34", "GEN-16")
@pytest.mark.parametrize("part", ["dispatcher", "inbox", "listener"])
def test_sessions_are_terminated_during_work(scene: Scene, part: str) -> None:
    """Whichever statement a terminated session was in, each event has one effect, one receipt and one end."""
    side: Side = scene.sink if part == "inbox" else scene.source
    scene.dispatcher(destination_settings={"batch_size": 10})
    terminated = 0
    for _ in range(ROUNDS):
        scene.append(CHUNK)
        scene.append(CHUNK // 4, SHIPPED)
        scene.await_true(
            lambda: scene.source.count("seapost.delivery_lease") > 0 or scene.unended() == 0, "work under way"
        )
        terminated += side.terminate(part)
    scene.await_end()
    assert terminated >= ROUNDS
    assert scene.source.count("seapost.delivery_acknowledgement") == ROUNDS * (CHUNK + 2 * (CHUNK // 4))
    scene.assert_kept()


def _await_listener(scene: Scene, *, other_than: int | None = None) -> int:
    """Wait until one session listens, another one than before, and has declared every destination asleep."""
    sessions: list[int] = []

    def look() -> bool:
        sessions[:] = [row[0] for row in scene.source.rows(_LISTENERS)]
        asleep = scene.source.value(_ASLEEP)
        return len(sessions) == 1 and other_than not in sessions and asleep == len(scene.destinations)

    scene.await_true(look, "a listener that has declared sleep")
    return sessions[0]


@pytest.mark.req("F72")
def test_a_lost_listener_comes_back_and_sweeps(scene: Scene) -> None:
    """What commits while nobody listens is found by the sweep after the reconnect; afterwards notifications work."""
    scene.dispatcher(dispatcher_settings=NEVER_POLLS)
    session = _await_listener(scene)
    for _ in range(4):
        scene.source.terminate("listener")
        scene.append(1)
        scene.await_end(deadline_seconds=IN_TIME_SECONDS)
        session = _await_listener(scene, other_than=session)
        scene.append(1)
        scene.await_end(deadline_seconds=IN_TIME_SECONDS)
    scene.assert_kept()


@pytest.mark.req("F72")
def test_a_deaf_listener_costs_no_delivery(scene: Scene) -> None:
    """A listening session that the network swallows without a word is not needed: polling delivers; it comes back."""
    with Proxy.before_database(scene.source.database.dsn) as proxy:
        dispatcher = scene.dispatcher(
            listen=proxy.dsn(scene.source.database.dsn), dispatcher_settings={"poll_seconds": (0.005, 0.2)}
        )
        session = _await_listener(scene)
        proxy.hold()
        for _ in range(3):
            scene.append(1)
            scene.await_end()
        proxy.release()
        proxy.cut()
        _await_listener(scene, other_than=session)
        assert dispatcher.log.count(LogEvent.LISTENER_CONNECTED) == 2
        scene.append(1)
        scene.await_end()
        scene.assert_kept()
