"""Races inside execution and gateway: closures, registrations, statements, and a switch of the delivery set."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from uuid import UUID

import pytest
from psycopg import Connection

from oceanway.cli.composition import release
from oceanway.contracts.errors import AlreadyClosed, OceanWayError, Stale
from oceanway.contracts.facts.gateway import AvailabilityNotReported, AvailabilityPending
from oceanway.execution.transactions import (
    close_run,
    finalize_eligibility,
    open_runs,
    register_attempts,
    start_attempt,
)
from oceanway.gateway.transactions import advance_availability, bind_routes
from oceanway.installation.release import activate_release
from tests.kit.oceanway.core import LATER, NOW, new_manifest
from tests.kit.oceanway.core_faults import waiting_for
from tests.kit.oceanway.database import OwnerDatabase, TestDatabase
from tests.kit.oceanway.execution import end_of, not_dispatched
from tests.kit.oceanway.gateway import bound_attempt, stating


@pytest.fixture(scope="module")
def execution(owner_database: OwnerDatabase) -> TestDatabase:
    """Give one database to all tests here; every test has its own runs."""
    return owner_database("execution")


@pytest.fixture(scope="module")
def gateway(owner_database: OwnerDatabase) -> TestDatabase:
    """Give one database to all tests here; every test has its own attempts."""
    return owner_database("gateway")


def second_after(
    database: TestDatabase, role: str, first: Callable[[Connection], object], second: Callable[[Connection], object]
) -> Exception | None:
    """Let the second transaction wait for a lock of the first, commit the first; how the second was refused."""

    def follow(connection: Connection) -> None:
        second(connection)
        connection.commit()

    with (
        database.connect(role) as leader,
        database.connect(role) as follower,
        database.connect(autocommit=True) as observer,
        ThreadPoolExecutor(1) as thread,
    ):
        first(leader)
        following: Future[None] = thread.submit(follow, follower)
        waiting_for(observer, follower)
        leader.commit()
        try:
            following.result(20)
        except OceanWayError as error:
            return error
        return None


@pytest.mark.req("APP-19", "APP-22", "NEG-23")
def test_of_two_closures_at_the_same_time_one_is_refused(execution: TestDatabase) -> None:
    """The loser waits for the winner's commit; one closure event exists."""
    admission = new_manifest()
    with execution.connect("oceanway_execution_service") as service:
        open_runs(service, [admission])
    refused = second_after(
        execution,
        "oceanway_execution_service",
        lambda connection: close_run(connection, admission.run_id, closed_at=NOW),
        lambda connection: close_run(connection, admission.run_id, closed_at=LATER),
    )
    assert isinstance(refused, AlreadyClosed)
    with execution.connect() as observer:
        count = observer.execute(
            "select count(*) from seapost.event where aggregate_kind = 'run_closure' and aggregate_id = %s",
            (admission.run_id,),
        ).fetchone()
    assert count == (1,)


@pytest.mark.req("APP-19")
def test_no_attempt_slips_past_a_closure(execution: TestDatabase) -> None:
    """Registered before: the closure sees that its set is old. Registered after: refused."""
    admission, other = new_manifest(), new_manifest()
    with execution.connect("oceanway_execution_service") as service:
        open_runs(service, [admission, other])
    outdated = second_after(
        execution,
        "oceanway_execution_service",
        lambda connection: register_attempts(connection, [bound_attempt(admission)[2]]),
        lambda connection: close_run(connection, admission.run_id, closed_at=NOW),
    )
    assert isinstance(outdated, Stale)
    late = second_after(
        execution,
        "oceanway_execution_service",
        lambda connection: close_run(connection, other.run_id, closed_at=NOW),
        lambda connection: register_attempts(connection, [bound_attempt(other)[2]]),
    )
    assert isinstance(late, AlreadyClosed)


@pytest.mark.req("REF-19")
def test_an_attempt_is_not_started_and_declared_undispatched_at_once(execution: TestDatabase) -> None:
    """Whoever comes second finds what the first committed."""
    admission = new_manifest()
    _, _, attempt = bound_attempt(admission)
    with execution.connect("oceanway_execution_service") as service:
        open_runs(service, [admission])
        register_attempts(service, [attempt])
    refused = second_after(
        execution,
        "oceanway_execution_service",
        lambda connection: finalize_eligibility(connection, [end_of(attempt, not_dispatched())]),
        lambda connection: start_attempt(connection, attempt.execution_attempt_id),
    )
    assert isinstance(refused, AlreadyClosed)


@pytest.mark.req("APP-16", "REF-22")
@pytest.mark.parametrize("begun", [False, True], ids=["first statement", "next statement"])
def test_of_two_statements_at_the_same_time_one_is_refused(gateway: TestDatabase, begun: bool) -> None:
    """The loser's predecessor is not current any more; it states again from what it reads now."""
    route, binding, manifest = bound_attempt()
    with gateway.connect("oceanway_gateway_service") as service:
        bind_routes(service, [(route, binding)])
        if begun:
            advance_availability(service, [stating(manifest, binding, AvailabilityPending())], recorded_at=NOW)
    statement = stating(manifest, binding, AvailabilityNotReported())
    refused = second_after(
        gateway,
        "oceanway_gateway_service",
        lambda connection: advance_availability(
            connection, [stating(manifest, binding, AvailabilityPending())], recorded_at=NOW
        ),
        lambda connection: advance_availability(connection, [statement], recorded_at=NOW),
    )
    assert isinstance(refused, Stale)
    with gateway.connect("oceanway_gateway_service") as service:
        (snapshot,) = advance_availability(service, [statement], recorded_at=NOW)
    assert snapshot.gateway_evidence_availability_snapshot_state_version == (3 if begun else 2)


@pytest.mark.req("TST-11")
def test_a_switch_of_the_definition_waits_for_the_fact_that_froze_the_old_one(execution: TestDatabase) -> None:
    """The fact before the switch has the old definition with its deliveries, the one after it the new; never mixed."""
    first, second = new_manifest(), new_manifest()
    with (
        execution.connect("oceanway_execution_service") as service,
        execution.connect(autocommit=True) as observer,
        ThreadPoolExecutor(1) as thread,
    ):
        open_runs(service, [first, second])
        service.commit()
        before = close_run(service, first.run_id, closed_at=NOW)
        switching = thread.submit(activate_release, execution.dsn, release(), version="2")
        while (
            observer.execute(
                "select from pg_stat_activity where datname = current_database() and %s = any (pg_blocking_pids(pid))",
                (service.info.backend_pid,),
            ).rowcount
            == 0
        ):
            assert not switching.done()
        service.commit()
        assert switching.result(20)
        after = close_run(service, second.run_id, closed_at=NOW)
        service.commit()

        def version(event_id: UUID) -> tuple[str, int]:
            row = observer.execute(
                "select v.delivery_set_version, (select count(*) from seapost.delivery as d "
                "where d.event_id = e.event_id) from seapost.event as e "
                "join seapost.delivery_set_version as v using (definition_id) where e.event_id = %s",
                (event_id,),
            ).fetchone()
            assert row is not None
            return row[0], row[1]

        assert (version(before.event_id), version(after.event_id)) == (("1", 1), ("2", 1))
