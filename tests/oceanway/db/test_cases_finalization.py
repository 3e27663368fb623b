"""Finalization cases: one answer from every order of requests and resolutions, and never a second open one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import Connection

from oceanway.operations.answers import KeptAnswers
from seapost.database.pool import open_sync_pool
from seapost.testing.databases import TestDatabase
from tests.kit.oceanway.operations import Life
from tests.kit.oceanway.operations_cases import BillingPeer, Cases
from tests.kit.oceanway.operations_consumer import ROLE, Consumer, projecting, shown
from tests.kit.oceanway.operations_direct import Direct

DECISION_READ = "readBillingFinalizationDecisionForOperations"
RESOLUTION_READ = "readFinalizationReconciliationResolutionAppliedForOperations"


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


@pytest.fixture
def cases(billing: BillingPeer, connection: Connection[Any]) -> Cases:
    """Give a run of this test with three reserved generations."""
    cases = billing.know(Life())
    cases.reserve(connection, 3)
    return cases


def states(rows: dict[str, list[Any]]) -> dict[int, str]:
    """The cases by generation."""
    return {row["generation"]: row["state"] for row in rows["finalization_case"]}


def waiting(rows: dict[str, list[Any]]) -> dict[int, str]:
    """The successors by generation."""
    return {row["generation"]: row["state"] for row in rows["pending_case_successors_v1"]}


@pytest.mark.req("CASE-07", "CASE-22", "SET-34", "AMB-20", "AMB-23")
def test_a_first_request_opens_a_case_and_its_resolution_ends_it(
    projector: Consumer, connection: Connection[Any], cases: Cases
) -> None:
    """Under the reference that was allocated with the identity; ended by billing's fact alone."""
    request, resolution = cases.request(1), cases.resolve(1)
    projector.accept(request)
    rows = shown(connection, cases.life.run_id)
    assert states(rows) == {1: "open"}
    assert rows["finalization_case"][0]["case_ref"] == cases.fields(1)["reconciliation_case_ref"]
    projector.accept(resolution)
    (case,) = shown(connection, cases.life.run_id)["finalization_case"]
    assert (case["state"], case["resolution_event_id"]) == ("ended", str(resolution.event_id))


@pytest.mark.req("CASE-08", "CASE-09", "CASE-11", "CASE-13", "CASE-14", "AMB-13", "REF-40", "TST-22")
def test_a_successor_before_its_predecessor_waits_and_wakes(
    projector: Consumer, connection: Connection[Any], cases: Cases
) -> None:
    """`C2 Request → C1 Resolution → C1 Request`: C2 waits with its receipt, opens on C1's end, C1 is made ended."""
    first, ended, second = cases.request(1), cases.resolve(1), cases.request(2)
    projector.accept(second)
    rows = shown(connection, cases.life.run_id)
    assert (states(rows), waiting(rows)) == ({}, {2: "pending"})
    projector.accept(ended)
    rows = shown(connection, cases.life.run_id)
    assert (states(rows), waiting(rows)) == ({2: "open"}, {2: "consumed"})
    assert rows["pending_case_successors_v1"][0]["consumed_by_event_id"] == str(ended.event_id)
    projector.accept(first)
    assert states(shown(connection, cases.life.run_id)) == {1: "ended", 2: "open"}


@pytest.mark.req("CASE-11", "CASE-13", "CASE-14", "AMB-13", "TST-22", "CASE-10")
def test_every_order_of_two_generations_gives_the_same_rows_and_a_rebuild_asks_nobody(
    connection: Connection[Any], cases: Cases, billing: BillingPeer, core_database: TestDatabase, projector: Consumer
) -> None:
    """All orders of two generations, with a third request before or after; then from what was kept, by identifier."""
    events = [cases.request(1), cases.resolve(1), cases.request(2), cases.resolve(2), cases.request(3)]
    # A second open case would have met the unique index below, in any of the orders.
    ends: list[dict[str, list[Any]]] = []
    orders = [(*order, events[4]) for order in permutations(events[:4])]
    for order in (*orders, *((order[4], *order[:4]) for order in orders)):
        version = f"order-{uuid4().hex}"
        direct = Direct(connection, billing, version)
        for told in order:
            direct.apply(told)
        ends.append(shown(connection, cases.life.run_id, version))
    assert all(end == ends[0] for end in ends)
    assert states(ends[0]) == {1: "ended", 2: "ended", 3: "open"}
    projector.accept(*events)
    assert shown(connection, cases.life.run_id) == ends[0]
    asked = len(billing.asked)
    with open_sync_pool(core_database.dsn, part="rebuild", role=ROLE, size_max=1) as pool:
        rebuild = Direct(connection, KeptAnswers(pool), "rebuilt")
        kept = connection.execute(
            "select event_id from operations.accepted_events where event_id = any (%s) order by event_id desc",
            ([told.event_id for told in events],),
        ).fetchall()
        known = {told.event_id: told for told in events}
        rebuild.fold(known[event_id] for (event_id,) in kept)
    assert shown(connection, cases.life.run_id, "rebuilt") == ends[0]
    assert len(billing.asked) == asked


@pytest.mark.req("CASE-10", "NEG-28")
def test_the_database_knows_no_second_open_case_and_keeps_every_successor(
    projector: Consumer, connection: Connection[Any], cases: Cases
) -> None:
    """Whoever writes: a second open case, a dropped or rewritten successor, a case opened again are refused."""
    projector.accept(cases.request(1), cases.request(2))
    copy = (
        "insert into operations.finalization_case"
        " select projection_version, fence_id, 2, operation_id, 'other', 'open', request_event_id"
        " from operations.finalization_case where fence_id = %s"
    )
    with pytest.raises(psycopg.errors.UniqueViolation):
        connection.execute(copy, (cases.fence,))
    for statement in (
        "delete from operations.pending_case_successors_v1 where fence_id = %s",
        "update operations.pending_case_successors_v1 set document = 'x' where fence_id = %s",
        "delete from operations.finalization_case where fence_id = %s",
        "update operations.finalization_case set case_ref = 'x' where fence_id = %s",
        "delete from operations.finalization_case_request where fence_id = %s",
    ):
        with pytest.raises(psycopg.errors.RestrictViolation):
            connection.execute(statement, (cases.fence,))
    assert states(shown(connection, cases.life.run_id)) == {1: "open"}


@pytest.mark.req("CASE-06", "AMB-35")
def test_a_request_is_verified_with_the_decision_of_its_owner(
    projector: Consumer, connection: Connection[Any], cases: Cases, billing: BillingPeer
) -> None:
    """Another work generation, operation or reason than the owner's decision says: refused, nothing written."""
    for change in (
        {"triggering_billing_finalization_work_generation": 9},
        {"billing_finalization_operation_id": "another"},
        {"reason": "settlement_conflict"},
    ):
        assert projector.code(cases.request(1, **change)) == "identity_conflict!"
    request = cases.request(1)
    billing.lying = {DECISION_READ}
    try:
        assert projector.code(request) == "identity_conflict!"
    finally:
        billing.lying = set()
    assert not any(shown(connection, cases.life.run_id).values())
    projector.accept(request)


@pytest.mark.req("TST-06", "CASE-30", "NEG-46")
def test_an_unreadable_owner_leaves_nothing_of_a_case_event(
    projector: Consumer, connection: Connection[Any], cases: Cases, billing: BillingPeer
) -> None:
    """No case, no resolution, no receipt; tried again, both are applied."""
    request, resolution = cases.request(1), cases.resolve(1)
    billing.down = True
    try:
        assert {projector.code(request), projector.code(resolution)} == {"owner_unreadable"}
    finally:
        billing.down = False
    billing.blind = {DECISION_READ, RESOLUTION_READ}
    try:
        assert {projector.code(request), projector.code(resolution)} == {"owner_unreadable"}
    finally:
        billing.blind = set()
    assert not any(shown(connection, cases.life.run_id).values())
    projector.accept(resolution, request)
    assert states(shown(connection, cases.life.run_id)) == {1: "ended"}


@pytest.mark.req("CASE-05", "CASE-09")
def test_an_event_whose_identity_was_never_reserved_is_refused(projector: Consumer, billing: BillingPeer) -> None:
    """The identity comes first; an event cannot bring its own."""
    cases = billing.know(Life())
    assert projector.code(cases.request(1)) == "identity_conflict!"


@pytest.mark.req("CASE-10", "ORD-02")
def test_a_generation_has_one_request_and_one_resolution(projector: Consumer, cases: Cases) -> None:
    """A second one of either is refused for good."""
    projector.accept(cases.request(1), cases.resolve(1))
    assert projector.code(cases.request(1)) == "identity_conflict!"
    assert projector.code(cases.resolve(1)) == "identity_conflict!"
