"""The judge is judged: each invariant of the fault tests sees the very defect that it is there for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import LiteralString

import pytest

from seapost.database.installer import GuardLevel
from tests.kit import invariants
from tests.kit.builders import SHIPPED
from tests.kit.crash import Point, Trap
from tests.kit.database import DatabaseServer
from tests.kit.processes import Nursery
from tests.kit.scene import Scene, opened

# What no program of ours may do is done here by a superuser who switches the guards off.
TAMPERINGS: dict[str, tuple[str, LiteralString]] = {
    "an effect was applied more than once": (
        "sink",
        "insert into public.effect select * from public.effect limit 1",
    ),
    "an effect has no receipt": (
        "sink",
        "insert into public.effect values ('billing_consumer', gen_random_uuid())",
    ),
    "a receipt has no effect": (
        "sink",
        "delete from public.effect where ctid = (select min(ctid) from public.effect)",
    ),
    "an acknowledgement has no such receipt": (
        "sink",
        "update seapost.inbox_receipt set receipt_ref = 'other'",
    ),
    "a redelivery was answered with other bytes": (
        "sink",
        "update public.answer set receipt = receipt || '\\x20' where attempt_number = 2",
    ),
    "a consumer was called for an attempt that was never started": (
        "sink",
        "update public.call set attempt_number = attempt_number + 1",
    ),
    "a start has not exactly one finish": (
        "source",
        "delete from seapost.delivery_attempt_finish where outcome = 4",
    ),
    "a delivery has not ended": (
        "source",
        "delete from seapost.delivery_acknowledgement",
    ),
    "a delivery has ended twice": (
        "source",
        """insert into seapost.delivery_quarantine
               (event_id, attempt_id, quarantined_at, destination, reason, event_digest)
           select a.event_id, a.attempt_id, now(), a.destination, 'schema_invalid', e.digest
           from seapost.delivery_acknowledgement as a join seapost.event as e on e.event_id = a.event_id""",
    ),
    "a delivery has ended by another attempt than its last": (
        "source",
        """update seapost.delivery_acknowledgement as a set attempt_id = s.attempt_id
           from seapost.delivery_attempt_start as s
           where (s.event_id, s.destination, s.attempt_number) = (a.event_id, a.destination, 1)""",
    ),
    "an attempt has ended after the next one began": (
        "source",
        "update seapost.delivery_attempt_finish set finished_at = finished_at + interval '1 hour' where outcome = 4",
    ),
    "published_at is not exactly on complete events": (
        "source",
        "delete from seapost.publication",
    ),
    "published_at is older than an acknowledgement": (
        "source",
        "update seapost.publication set published_at = published_at - interval '1 hour'",
    ),
    "audit_places has rows": (
        "source",
        "delete from seapost.delivery_attempt_start where attempt_number = 1",
    ),
}


@pytest.fixture(scope="module")
def finished(
    database_server: DatabaseServer, nursery: Nursery, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    """Give a scene in which events have been redelivered after a crash, and everything has ended well."""
    source, sink = database_server.create(GuardLevel.LEAN), database_server.create(GuardLevel.LEAN)
    with opened(Scene(source, sink, nursery, tmp_path_factory.mktemp("finished"))) as scene:
        scene.append(3)
        scene.append(3, SHIPPED)
        scene.dispatcher("victim", trap=Trap(Point.ANSWERED), destination_settings={"lease_seconds": 0.4}).await_end()
        scene.dispatcher("successor")
        scene.await_end()
        scene.assert_kept()
        for side in (scene.source, scene.sink):
            side.connection.execute("set session_replication_role = replica")
        yield scene
    for database in (source, sink):
        database_server.drop(database)


@pytest.mark.req("TST-33", "TST-34", "F30")
@pytest.mark.parametrize("rule", TAMPERINGS, ids=lambda rule: rule.replace(" ", "-"))
def test_a_broken_rule_is_seen(finished: Scene, rule: str) -> None:
    """Facts that were tampered with break at least the rule that forbids it; rolled back, nothing is broken."""
    sides = {"source": finished.source.connection, "sink": finished.sink.connection}
    side, statement = TAMPERINGS[rule]
    judge: Callable[[], list[str]] = lambda: invariants.violations(sides["source"], sides["sink"])  # noqa: E731
    with sides[side].transaction(force_rollback=True):
        assert sides[side].execute(statement).rowcount > 0
        assert any(found.startswith(f"{rule}:") for found in judge()), judge()
    assert judge() == []
