"""Sessions that meet: a successor and its predecessor's end, two reservations of one generation."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any
from uuid import uuid4

import pytest
from psycopg import Connection

from oceanway.operations import identity
from seapost.testing.databases import TestDatabase
from tests.kit.eventually import eventually
from tests.kit.oceanway.operations import Life, Told
from tests.kit.oceanway.operations_cases import BillingPeer, Cases
from tests.kit.oceanway.operations_consumer import shown
from tests.kit.oceanway.operations_direct import Direct


@pytest.fixture
def connection(core_database: TestDatabase) -> Iterator[Connection[Any]]:
    """Give an onlooker."""
    with core_database.connect(autocommit=True) as session:
        yield session


@pytest.fixture
def billing() -> BillingPeer:
    """Give billing as a peer in memory."""
    return BillingPeer()


@pytest.fixture
def cases(billing: BillingPeer, connection: Connection[Any]) -> Cases:
    """Give a run of this test with two reserved generations."""
    cases = billing.know(Life())
    cases.reserve(connection, 2)
    return cases


def together(database: TestDatabase, billing: BillingPeer, version: str, lanes: list[list[Told]]) -> None:
    """Apply each lane in a session of its own, all beginning at once."""
    start = Barrier(len(lanes))

    def lane(events: list[Told]) -> None:
        with database.connect(autocommit=True) as session:
            direct = Direct(session, billing, version)
            _ = start.wait()
            for told in events:
                direct.apply(told)

    with ThreadPoolExecutor(len(lanes)) as threads:
        for done in [threads.submit(lane, events) for events in lanes]:
            done.result()


@pytest.mark.req("TST-23", "CASE-14", "CASE-11", "CASE-08")
def test_the_concurrent_reverse_order_equals_any_other(
    core_database: TestDatabase, connection: Connection[Any], billing: BillingPeer, cases: Cases
) -> None:
    """C2's request, C1's resolution and C1's request in three sessions at once: the rows of one order."""
    events = [cases.request(1), cases.resolve(1), cases.request(2)]
    calm = f"calm-{uuid4().hex}"
    Direct(connection, billing, calm).fold(events)
    expected = shown(connection, cases.life.run_id, calm)
    for order in itertools.permutations(events):
        version = f"storm-{uuid4().hex}"
        together(core_database, billing, version, [[told] for told in order])
        assert shown(connection, cases.life.run_id, version) == expected


@pytest.mark.req("OPS-14", "CASE-26", "CASE-31", "AMB-50")
def test_edges_between_aggregates_hold_in_concurrent_sessions(
    core_database: TestDatabase, connection: Connection[Any], billing: BillingPeer
) -> None:
    """Run and wallet, finalization and first step, request and resolution meet in different sessions: one end."""
    for _ in range(4):
        life = Life()
        billing.know(life)
        run, wallet, finalization = life.run_created(), life.wallet_reserved(), life.finalize()
        opening, request = life.open_exposure("3")
        result, resolution = life.close()
        calm, version = f"calm-{uuid4().hex}", f"storm-{uuid4().hex}"
        Direct(connection, billing, calm).fold([run, wallet, finalization, opening, request, result, resolution])
        together(
            core_database, billing, version, [[run, finalization], [wallet, resolution], [opening, result], [request]]
        )
        assert shown(connection, life.run_id, version) == shown(connection, life.run_id, calm)


@pytest.mark.req("OPS-03")
def test_a_projection_version_is_changed_by_one_transaction_at_a_time(
    core_database: TestDatabase, connection: Connection[Any], billing: BillingPeer
) -> None:
    """The second waits for the first one's end, so that of two sides of an edge the later sees the earlier."""
    life = Life()
    billing.know(life)
    version = f"order-{uuid4().hex}"
    run, wallet = life.run_created(), life.wallet_reserved()
    with core_database.connect() as first, ThreadPoolExecutor(1) as threads:
        _ = first.execute("select 1")
        Direct(first, billing, version).apply(run)  # in the session's own transaction, which stays open

        def second() -> int:
            with core_database.connect(autocommit=True) as session:
                backend = session.info.backend_pid
                pids.append(backend)
                Direct(session, billing, version).apply(wallet)
            return backend

        pids: list[int] = []
        waiting = threads.submit(second)
        _ = eventually(
            lambda: pids and connection.execute("select pg_blocking_pids(%s)", (pids[0],)).fetchone() != ([],),
            what="the second session waits",
        )
        first.commit()
        _ = waiting.result()
    assert shown(connection, life.run_id, version)["operation_summary"][0]["reserved_amount"] == 10


@pytest.mark.req("CASE-01", "CASE-12", "TST-24", "AMB-54")
def test_two_works_that_reserve_one_generation_get_one_identity(
    core_database: TestDatabase, connection: Connection[Any], billing: BillingPeer
) -> None:
    """`reserve(G1) → G2 supersedes → G1 fails → G2`: the same document, one row, whatever the order of commits."""
    for _ in range(4):
        cases = billing.know(Life())
        _ = cases.identity(1)
        start = Barrier(2)

        def reserve(_work: int, cases: Cases = cases, start: Barrier = start) -> Any:  # noqa: ANN401 - an answer
            with core_database.connect(autocommit=True) as session:
                _ = start.wait()
                return identity.reserve(session, cases.identity(1)).answer

        with ThreadPoolExecutor(2) as threads:
            answers = list(threads.map(reserve, range(2)))
        assert sorted(answer.result for answer in answers) == ["existing", "reserved"]
        assert answers[0].reservation == answers[1].reservation
        stored = "select count(*) from operations.case_identity_reservation where billing_finalization_fence_id = %s"
        assert connection.execute(stored, (cases.fence,)).fetchone() == (1,)
