"""A fault after each write of the projector's transactions, and after the commit: all or nothing, then the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import Connection

from oceanway.operations import identity
from seapost.model.outcome import Acknowledged
from seapost.testing.databases import TestDatabase
from tests.kit.oceanway.core_faults import DEFERRED, failing
from tests.kit.oceanway.operations import Life, Told
from tests.kit.oceanway.operations_cases import BillingPeer, Cases
from tests.kit.oceanway.operations_consumer import Consumer, code_of, projecting, shown

ROOM = ("seapost.projection_aggregate", "seapost.inbox_receipt")
KEPT = ("operations.timeline_entry", "operations.accepted_events", "operations.exact_identifier_index")
WRITES = {
    "run": ("operations.operation_identity", "operations.operation_summary", KEPT[0], KEPT[2]),
    "waiting wallet": ("operations.pending_unlinked_reservations",),
    "finalization": ("operations.finalization", "operations.settlement_dimension", *KEPT),
    "step": ("operations.settlement_dimension", "operations.dimension_revision", *KEPT[:2]),
    "late request": ("operations.late_case", *KEPT),
    "pending resolution": ("operations.late_case", "operations.owner_read_results", *KEPT),
    "pending successor": (
        "operations.finalization_case_request",
        "operations.pending_case_successors_v1",
        "operations.owner_read_results",
        *KEPT,
    ),
    "chain": (
        "operations.finalization_case_resolution",
        "operations.finalization_case",
        "operations.pending_case_successors_v1",
        "operations.owner_read_results",
        *KEPT[:2],  # its identifiers are known from the requests
    ),
}
POINTS = [(what, table) for what, tables in WRITES.items() for table in (*tables, *ROOM, f"{DEFERRED}{tables[0]}")]


@pytest.fixture(scope="module")
def billing() -> BillingPeer:
    """Give billing as a peer in memory."""
    return BillingPeer()


@pytest.fixture(scope="module")
def projector(core_database: TestDatabase, billing: BillingPeer) -> Iterator[Consumer]:
    """Give the projector, running."""
    with projecting(core_database, billing) as consumer:
        yield consumer


@pytest.fixture
def connection(core_database: TestDatabase) -> Iterator[Connection[Any]]:
    """Give an onlooker."""
    with core_database.connect(autocommit=True) as session:
        yield session


def situation(what: str, cases: Cases) -> tuple[list[Told], Told]:
    """Make what happens before, and the event whose transaction is disturbed."""
    life = cases.life
    match what:
        case "run":
            return [], life.run_created()
        case "waiting wallet":
            return [], life.wallet_reserved()
        case "finalization":
            return [life.run_created()], life.finalize()
        case "step":
            return [life.finalize()], life.adjust("1")
        case "late request":
            return [], life.open_exposure("3")[1]
        case "pending resolution":
            opening, _ = life.open_exposure("3")
            return [opening], life.close()[1]
        case "pending successor":
            return [], cases.request(2)
        case _:
            return [cases.request(1), cases.request(2)], cases.resolve(1)


def receipts(connection: Connection[Any], told: Told) -> int:
    """How many receipts, accepted envelopes and kept answers there are of an event."""
    row = connection.execute(
        "select (select count(*) from seapost.inbox_receipts where event_id = %(id)s)"
        " + (select count(*) from operations.accepted_events where event_id = %(id)s)",
        {"id": told.event_id},
    ).fetchone()
    assert row is not None
    return row[0]


@pytest.mark.req("OPS-08", "CASE-08", "CASE-11", "CASE-29", "RCP-03")
@pytest.mark.parametrize(("what", "place"), POINTS, ids=[f"{what}-{place}" for what, place in POINTS])
def test_a_fault_after_any_write_leaves_no_row_and_the_redelivery_succeeds(
    core_database: TestDatabase,
    projector: Consumer,
    connection: Connection[Any],
    billing: BillingPeer,
    what: str,
    place: str,
) -> None:
    """TX-32 to TX-35: mutation, index, envelope, answer, receipt and revision come together or not at all."""
    cases = billing.know(Life())
    cases.reserve(connection, 2)
    before, told = situation(what, cases)
    projector.accept(*before)
    rows = shown(connection, cases.life.run_id)
    with failing(core_database, place):
        assert projector.code(told) == "dependency_unavailable"
    assert shown(connection, cases.life.run_id) == rows
    assert receipts(connection, told) == 0
    projector.accept(told)
    assert shown(connection, cases.life.run_id) != rows


@pytest.mark.req("OPS-09", "DLV-20", "RCP-03")
def test_a_commit_whose_answer_was_lost_is_answered_with_the_same_receipt(
    projector: Consumer, connection: Connection[Any], billing: BillingPeer
) -> None:
    """Each kind of event, delivered again: the same bytes, and no owner is asked a second time."""
    for what in WRITES:
        cases = billing.know(Life())
        cases.reserve(connection, 2)
        before, told = situation(what, cases)
        projector.accept(*before)
        (lost,) = projector.accept(told)
        rows, asked = shown(connection, cases.life.run_id), len(billing.asked)
        (outcome,) = projector.deliver(told)
        assert code_of(outcome) == "acknowledged"
        assert isinstance(outcome, Acknowledged)
        assert outcome.receipt == lost
        assert shown(connection, cases.life.run_id) == rows
        assert len(billing.asked) <= asked + 1


@pytest.mark.req("CASE-01", "CASE-12")
def test_a_fault_in_a_reservation_leaves_none_and_the_next_one_is_the_first(
    core_database: TestDatabase, connection: Connection[Any], billing: BillingPeer
) -> None:
    """TX-25."""
    cases = billing.know(Life())
    with failing(core_database, "operations.case_identity_reservation"), pytest.raises(psycopg.Error):
        _ = identity.reserve(connection, cases.identity(1))
    assert identity.reserve(connection, cases.identity(1)).answer.result == "reserved"
