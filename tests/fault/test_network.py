"""The network between two healthy processes loses, holds and cuts what was said; both go on, and nothing is doubled."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from seapost.telemetry.catalog import LogEvent
from tests.kit.builders import BILLING, SHIPPED
from tests.kit.crash import Blow, Point, Trap
from tests.kit.handlers import WAITING_ROOM
from tests.kit.proxy import Proxy, Way
from tests.kit.scene import Scene

EVENTS = 12
SHARED = 6
DELIVERIES = EVENTS + 2 * SHARED
IMPATIENT = {"timeout_seconds": 0.3, "lease_seconds": 5.0}

_OPEN = """
select count(*) from pg_stat_activity
where datname = current_database() and application_name like 'seapost-%%' and xact_start is not null
  and state_change < clock_timestamp() - interval '50 milliseconds'"""
_FINISHES = (
    "select count(*) from seapost.delivery_attempt_finish where outcome = %s and error_code is not distinct from %s"
)


def _append(scene: Scene) -> None:
    scene.append(EVENTS)
    scene.append(SHARED, SHIPPED)


def _finishes(scene: Scene, outcome: int, code: str | None = None) -> int:
    return scene.source.value(_FINISHES, outcome, code)


@pytest.fixture
def wire(scene: Scene) -> Iterator[Proxy]:
    """Give the network between the dispatcher and the consumer of the scene."""
    with Proxy(("127.0.0.1", scene.port)) as proxy:
        yield proxy


@pytest.mark.req("GEN-16", "DLV-14", "TST-34")
@pytest.mark.parametrize("number", [1, 100, 2_000], ids=["at its start", "in its head", "in its body"])
def test_a_response_is_cut(scene: Scene, wire: Proxy, number: int) -> None:
    """Half an answer is no receipt: the same events arrive again and get the same bytes, without a second effect."""
    _append(scene)
    scene.consumer()
    wire.cut_after(Way.DOWN, number)
    scene.caller(url=wire.url)
    scene.await_end()
    assert _finishes(scene, 2, "dependency_unavailable") > 0
    assert scene.sink.count("public.answer") > DELIVERIES
    scene.assert_kept()


@pytest.mark.req("F81", "GEN-16")
def test_no_transaction_is_open_while_an_answer_is_awaited(scene: Scene, wire: Proxy) -> None:
    """An answer that does not come costs a timeout, and never an open transaction or a session that waits with it."""
    _append(scene)
    scene.consumer()
    wire.hold(Way.DOWN)
    scene.caller(url=wire.url, destination_settings=IMPATIENT)
    scene.await_true(lambda: wire.is_holding(Way.DOWN), "an answer on the wire")
    while _finishes(scene, 2, "timeout") == 0:
        assert scene.source.value(_OPEN) == 0
        assert scene.sink.value(_OPEN) == 0
    wire.release()
    wire.cut()
    scene.await_end()
    scene.assert_kept()


@pytest.mark.req("GEN-16", "DLV-14", "F32", "F81")
def test_a_redelivery_meets_the_first_one_still_at_work(scene: Scene) -> None:
    """A consumer hangs past the timeout: the next attempt waits at the receipt and finds the first one's effect."""
    scene.sink.rows("select pg_advisory_lock(%s)", WAITING_ROOM)
    scene.append(EVENTS, do="wait")
    scene.consumer()
    scene.caller(destination_settings=IMPATIENT)
    scene.await_true(lambda: _finishes(scene, 2, "timeout") >= EVENTS, "a timeout")
    scene.await_true(lambda: scene.sink.count("public.call") > EVENTS, "another attempt")
    assert scene.sink.count("public.effect") == 0
    scene.sink.rows("select pg_advisory_unlock(%s)", WAITING_ROOM)
    scene.await_end()
    assert scene.sink.count("public.effect") == EVENTS
    scene.assert_kept()


@pytest.mark.req("DLV-12", "DLV-15", "PUB-09", "CLM-06", "F30")
def test_the_reply_to_a_settle_is_lost(scene: Scene) -> None:
    """The acknowledgement committed, its reply never came: said again, it is refused as stale and changes nothing."""
    _append(scene)
    with Proxy.before_database(scene.source.database.dsn) as proxy:
        dispatcher = scene.dispatcher(
            source=proxy.dsn(scene.source.database.dsn),
            listen=scene.source.database.dsn,
            trap=Trap(Point.SETTLE_UNSENT, blow=Blow.STOP),
            destination_settings={"lease_seconds": 20.0},
        )
        dispatcher.await_stopped()
        proxy.hold(Way.DOWN)
        dispatcher.wake()
        scene.await_true(lambda: scene.source.count("seapost.delivery_acknowledgement") > 0, "a committed settle")
        scene.await_true(lambda: proxy.is_holding(Way.DOWN), "its reply on the wire")
        proxy.cut()
        proxy.release()
        scene.await_end()
        scene.await_true(lambda: LogEvent.SETTLE_STALE in dispatcher.log, "the second try refused")
        assert scene.source.count("seapost.delivery_attempt_start") == DELIVERIES
        assert _finishes(scene, 1) == DELIVERIES
        scene.assert_kept()


@pytest.mark.req("CLM-04", "CLM-07", "CLM-08", "F15")
def test_the_reply_to_a_claim_is_lost(scene: Scene) -> None:
    """Leases that their own holder has never heard of run out; nobody was called for them, and new attempts deliver."""
    scene.append(EVENTS)
    with Proxy.before_database(scene.source.database.dsn) as proxy:
        dispatcher = scene.dispatcher(
            source=proxy.dsn(scene.source.database.dsn),
            listen=scene.source.database.dsn,
            destinations=(BILLING,),
            trap=Trap(Point.CLAIM_UNSENT, nth=2, blow=Blow.STOP),  # the first one asks for suspects
        )
        dispatcher.await_stopped()
        proxy.hold(Way.DOWN)
        dispatcher.wake()
        scene.await_true(lambda: scene.source.count("seapost.delivery_lease") > 0, "a committed claim")
        scene.await_true(lambda: proxy.is_holding(Way.DOWN), "its reply on the wire")
        unheard = {row[0] for row in scene.source.rows("select attempt_id from seapost.delivery_lease")}
        proxy.cut()
        proxy.release()
        scene.await_end()
        called = {row[0] for row in scene.sink.rows("select attempt_id from public.call")}
        assert not called & unheard
        assert scene.source.value(
            "select count(*) from seapost.delivery_attempt_finish where outcome = 4 and attempt_id = any (%s)",
            list(unheard),
        ) == len(unheard)
        scene.assert_kept()
