"""Copies of one event in two transactions of a deciding inbox, and two batches over one aggregate of a projection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import psycopg
import pytest

from seapost.database.installer import GuardLevel
from seapost.model.delivery_set import ProjectionTarget
from seapost.store import inbox, projections
from seapost.store.inbox import KnownReceipt, NewReceipt
from seapost.store.projections import Advance, AggregateKey, Gap
from tests.kit import builders
from tests.kit.database import DatabaseServer, TestDatabase
from tests.kit.sessions import SessionFactory

DIGEST = builders.digest(b"event")
TARGET = ProjectionTarget("parcels", "1")
KEY = AggregateKey("shop", "parcel", "p")

Known = dict[UUID, KnownReceipt]
Call = Callable[[psycopg.Connection[Any]], Any]


@pytest.fixture(scope="module")
def shared(database_server: DatabaseServer) -> Iterator[TestDatabase]:
    """Give one database to all tests here."""
    database = database_server.create(GuardLevel.STRICT)
    with database.connect(autocommit=True) as connection:
        state = projections.register(
            connection,
            target=TARGET,
            pairs=[],
            tables=[],
            receipt_key=f"c@{TARGET.name}@{TARGET.version}",
            actor="tester",
        )
        assert state == "active"
    yield database
    database_server.drop(database)


def _meet(*event_ids: UUID, digest: bytes = DIGEST) -> Callable[[psycopg.Connection[Any]], Known]:
    return lambda connection: inbox.meet(connection, consumer="c", events=[(one, digest) for one in event_ids])[0]


def _record(ref: str, *event_ids: UUID) -> Call:
    receipts = [NewReceipt(one, DIGEST, ref, b"{}") for one in event_ids]
    return lambda connection: inbox.record(connection, consumer="c", receipts=receipts)


@pytest.mark.req("DLV-14", "DLV-20", "F32", "RCP-14", "RCP-39")
@pytest.mark.parametrize("digest", [DIGEST, builders.digest(b"other")], ids=["duplicate", "conflict"])
def test_a_concurrent_copy_waits_before_its_handler_and_gets_the_first_receipt(
    shared: TestDatabase, sessions: SessionFactory, digest: bytes
) -> None:
    """The second one is blocked at the meeting, not at its receipt, and is told what the first one committed."""
    event_id = builders.new_event_id()
    one, two = sessions(shared, role="seapost_consumer")
    assert one.call(_meet(event_id)) == {}
    late = two.start_call(_meet(event_id, digest=digest))
    two.wait_until_blocked(by=one)
    one.call(_record("first", event_id))
    one.commit()
    known = late.result()
    assert known[event_id].result == ("duplicate" if digest == DIGEST else "conflict")
    assert known[event_id].receipt_ref == "first"
    two.commit()


@pytest.mark.req("AMB-17", "NEG-46")
@pytest.mark.parametrize("ends", ["rollback", "commit"])
def test_a_copy_that_waited_for_no_receipt_has_the_new_event(
    shared: TestDatabase, sessions: SessionFactory, ends: str
) -> None:
    """Whether the first one failed or returned a retry: the second one decides."""
    event_id = builders.new_event_id()
    one, two = sessions(shared, role="seapost_consumer")
    one.call(_meet(event_id))
    late = two.start_call(_meet(event_id))
    two.wait_until_blocked(by=one)
    one.rollback() if ends == "rollback" else one.commit()
    assert late.result() == {}
    two.call(_record("second", event_id))
    two.commit()


@pytest.mark.req("F18")
def test_meetings_in_opposite_order_never_deadlock(shared: TestDatabase, sessions: SessionFactory) -> None:
    """Keys are locked in one order, whatever the order of the arguments."""
    event_ids = [builders.new_event_id() for _ in range(8)]
    one, two = sessions(shared, role="seapost_consumer")
    one.call(_meet(*event_ids))
    late = two.start_call(_meet(*reversed(event_ids)))
    two.wait_until_blocked(by=one)
    one.call(_record("first", *event_ids))
    one.commit()
    assert set(late.result()) == set(event_ids)
    two.commit()


@pytest.mark.req("RCP-14", "RCP-39")
def test_a_second_receipt_of_an_event_is_refused(shared: TestDatabase, sessions: SessionFactory) -> None:
    """Who records without having met fails as a whole, and the first receipt stays."""
    event_id, fresh = builders.new_event_id(), builders.new_event_id()
    one, _ = sessions(shared, role="seapost_consumer")
    one.call(_record("first", event_id))
    one.commit()
    with pytest.raises(psycopg.errors.UniqueViolation):
        one.call(_record("second", fresh, event_id))
    one.rollback()
    assert one.call(_meet(event_id, fresh))[event_id].receipt_ref == "first"
    assert fresh not in one.call(_meet(fresh))


# Aggregates ------------------------------------------------------------------------------------------------


def _lock(*keys: AggregateKey) -> Callable[[psycopg.Connection[Any]], list[int]]:
    return lambda connection: projections.meet(connection, target=TARGET, token=None, event_ids=[], keys=keys)


def _advance(key: AggregateKey, start: int, end: int) -> Call:
    moved = [Advance(key, start, end, builders.new_event_id())]
    return lambda connection: projections.advance(connection, target=TARGET, advances=moved)


@pytest.mark.req("OPS-03", "OPS-04", "ORD-02")
@pytest.mark.parametrize("exists", [False, True], ids=["created", "locked"])
def test_two_batches_over_one_aggregate_follow_each_other(
    shared: TestDatabase, sessions: SessionFactory, *, exists: bool
) -> None:
    """The second one waits for the first one's commit and then sees the revision that it left."""
    key = KEY._replace(id=str(builders.new_event_id()))
    one, two = sessions(shared, role="seapost_consumer")
    if exists:
        one.call(_lock(key))
        one.call(_advance(key, 0, 4))
        one.commit()
    start = 4 if exists else 0
    assert one.call(_lock(key)) == [start]
    late = two.start_call(_lock(key))
    two.wait_until_blocked(by=one)
    one.call(_advance(key, start, start + 3))
    one.commit()
    assert late.result() == [start + 3]
    two.rollback()


@pytest.mark.req("OPS-07", "ORD-03")
def test_batches_over_different_aggregates_do_not_wait(shared: TestDatabase, sessions: SessionFactory) -> None:
    """Not for the aggregates, and not for the summary, which each session writes in a row of its own."""
    first, second = (KEY._replace(id=str(builders.new_event_id())) for _ in range(2))
    one, two = sessions(shared, role="seapost_consumer")
    for session, key in ((one, first), (two, second)):
        session.call(_lock(key))
    slots = [session.execute("select pg_backend_pid() % 64") for session in (one, two)]
    one.call(_advance(first, 0, 1))
    if slots[0] != slots[1]:
        two.call(_advance(second, 0, 1))
        two.commit()
    one.commit()


@pytest.mark.req("F18", "OPS-03")
def test_aggregates_are_locked_in_one_order(shared: TestDatabase, sessions: SessionFactory) -> None:
    """A batch that names them the other way round waits behind the first one and holds nothing it needs."""
    keys = [KEY._replace(id=str(builders.new_event_id())) for _ in range(6)]
    one, two = sessions(shared, role="seapost_consumer")
    one.call(_lock(*keys))
    one.commit()
    one.call(_lock(min(keys)))
    late = two.start_call(_lock(*sorted(keys, reverse=True)))
    two.wait_until_blocked(by=one)
    assert one.call(_lock(*keys)) == [0] * 6
    one.commit()
    assert late.result() == [0] * 6
    two.rollback()


@pytest.mark.req("OPS-11", "AMB-17")
def test_a_gap_and_the_revision_that_fills_it_cannot_miss_each_other(
    shared: TestDatabase, sessions: SessionFactory
) -> None:
    """The missing revision waits until the gap is recorded, and resolves it."""
    key = KEY._replace(id=str(builders.new_event_id()))
    one, two = sessions(shared, role="seapost_consumer")
    assert one.call(_lock(key)) == [0]
    late = two.start_call(_lock(key))
    two.wait_until_blocked(by=one)
    one.call(lambda connection: projections.wait(connection, target=TARGET, gaps=[Gap(key, 1, 3), Gap(key, 1, 2)]))
    one.commit()
    assert late.result() == [0]
    two.call(_advance(key, 0, 1))
    two.commit()
    with shared.connect(autocommit=True) as connection:
        rows = connection.execute(
            "select expected_revision, seen_revision, resolved_at is not null from seapost.projection_gaps"
            " where aggregate_id = %s",
            (key.id,),
        ).fetchall()
    assert rows == [(1, 3, True)]
