"""Two sessions at one fence: consumers, workers, commands and admissions that meet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from oceanway.billing import admission
from oceanway.contracts.errors import OceanWayError, OwnerConflict, Stale
from tests.kit.database import TestDatabase
from tests.kit.oceanway.billing_finalization import Billing, running_billing
from tests.kit.oceanway.billing_finalization_commands import chain_for
from tests.kit.oceanway.billing_finalization_runs import Run, new_run

if TYPE_CHECKING:
    from psycopg import Connection

WAITING = (
    "select count(*) from pg_stat_activity as a"
    " where a.datname = current_database() and cardinality(pg_blocking_pids(a.pid)) > 0"
)


@pytest.fixture(scope="module")
def billing(billing_database: TestDatabase) -> Iterator[Billing]:
    """Give one billing with an open gate; every test has runs of its own."""
    with running_billing(billing_database) as bench:
        bench.open_gate()
        yield bench
        bench.balanced()


@pytest.fixture(scope="module")
def twin(billing: Billing) -> Iterator[Billing]:
    """Give a second set of processes over the same database and owners."""
    with running_billing(billing.database, billing.peers) as bench:
        yield bench


def wait_until_blocked(observer: Connection[Any], sessions: int) -> None:
    """Return once so many sessions of this database wait for another one."""
    while observer.execute(WAITING).fetchone() != (sessions,):
        pass


def at_the_fence(billing: Billing, run: Run, *actions: Callable[[], object]) -> list[object]:
    """Let actions meet: all wait for the fence of a run before it is let go; their results or exceptions."""
    with billing.database.connect() as holder, ThreadPoolExecutor(len(actions)) as threads:
        holder.execute(
            "select from billing.finalization_fence where billing_finalization_fence_id = %s for update", (run.fence,)
        )
        going = [threads.submit(action) for action in actions]
        wait_until_blocked(billing.admin, len(actions))
        holder.rollback()
        return [one.exception() or one.result() for one in going]


@pytest.mark.req("RCP-39", "RCP-40", "FIN-14", "FIN-08", "FIN-02")
def test_two_copies_of_a_closure_get_one_receipt(billing: Billing, twin: Billing) -> None:
    """The second copy waits for the first one's commit and is answered with its bytes; there is one new generation."""
    run = billing.admitted()
    closed = run.close()
    first, second = at_the_fence(billing, run, lambda: billing.accept(closed), lambda: twin.accept(closed))
    assert first == second
    assert billing.fence(run)["latest_work_generation"] == 2


@pytest.mark.req("FIN-02", "AMB-28", "AMB-46", "CAT-03")
def test_a_closure_and_a_settlement_input_that_meet_both_stay(billing: Billing, twin: Billing) -> None:
    """One waits for the other; the later generation holds both watermarks."""
    run = billing.admitted()
    closed, measured = run.close(), run.measure("attempt-0", "key-0", "4")
    at_the_fence(billing, run, lambda: billing.accept(closed), lambda: twin.accept(measured))
    fence = billing.fence(run)
    assert (fence["fence_revision"], fence["latest_work_generation"]) == (3, 3)
    billing.work()
    assert billing.state(run) == "finalized"


@pytest.mark.req("NEG-22", "AMB-28", "TST-20", "TST-21", "CAT-03")
def test_a_finalization_and_a_newer_input_that_meet_reach_the_newer_input(billing: Billing, twin: Billing) -> None:
    """Whoever is first: the input supersedes the work, or the finalization opens a catch-up that the input reopens."""
    run = billing.admitted()
    billing.accept(run.measure("attempt-0", "key-0", "4"), run.close())
    ending = billing.decided(run)
    newer = run.measure("attempt-0", "key-0", "8")
    results = at_the_fence(billing, run, lambda: billing.write(ending), lambda: twin.accept(newer))
    billing.alone(run)
    billing.work()
    assert billing.state(run) == "finalized"
    settled = [amount for kind, _, amount in billing.ledger(run) if kind == "settle"]
    if isinstance(results[0], Stale):
        assert settled == ["2"]
    else:
        assert settled == ["1"]
        assert (
            billing.one(
                "select latest_work_generation from billing.catch_up_fence where billing_reservation_id = %s",
                run.reservation,
            )
            == 2
        )


@pytest.mark.req("AMB-45", "NEG-22")
def test_two_workers_share_works_and_end_each_once(billing: Billing, twin: Billing) -> None:
    """Leases keep them apart: every run is finalized, by one decision and one event."""
    runs = [billing.admitted() for _ in range(12)]
    for run in runs:
        billing.accept(run.measure("attempt-0", "key-0", "4"), run.close())
    barrier = Barrier(2)

    def work(bench: Billing) -> None:
        barrier.wait()
        for _ in range(20):
            bench.work(rounds=1)

    with ThreadPoolExecutor(2) as threads:
        for one in [threads.submit(work, bench) for bench in (billing, twin)]:
            one.result()
    assert {billing.state(run) for run in runs} == {"finalized"}
    assert all(len(billing.events(run)) == 1 for run in runs)


@pytest.mark.req("CASE-15", "CASE-20", "SEC-15", "NEG-30")
def test_two_copies_of_a_command_apply_it_once(billing: Billing) -> None:
    """Both get the first fact; one grant is consumed and one event is told."""
    run = billing.in_case()
    command = chain_for(billing.requested(run)).command()
    first, second = at_the_fence(billing, run, lambda: billing.resolve(command), lambda: billing.resolve(command))
    assert first == second
    assert len(billing.events(run)) == 2


@pytest.mark.req("CASE-15", "CASE-20", "SEC-15", "NEG-30", "CASE-10")
def test_two_resolutions_of_one_case_leave_one(billing: Billing) -> None:
    """Two actors with grants of their own: one is applied, the other one is told of the conflict."""
    run = billing.in_case()
    requested = billing.requested(run)
    commands = [chain_for(requested, actor=actor).command() for actor in ("person-1", "person-2")]
    results = at_the_fence(billing, run, lambda: billing.resolve(commands[0]), lambda: billing.resolve(commands[1]))
    failed = [one for one in results if isinstance(one, Exception)]
    assert [type(one) for one in failed] == [OwnerConflict]
    assert (
        billing.one(
            "select count(*) from billing.resolution_applied where billing_finalization_fence_id = %s", run.fence
        )
        == 1
    )


@pytest.mark.req("FIN-12", "CAT-04", "FIN-10", "RCP-53")
def test_a_resolution_event_and_a_settlement_input_that_meet_lose_nothing(billing: Billing, twin: Billing) -> None:
    """Held before, or a generation of its own after: the finalization has the newer input either way."""
    run = billing.in_case()
    resolved = billing.resolved(run)
    run.repaired()
    newer = run.measure("attempt-0", "key-0", "8")
    at_the_fence(billing, run, lambda: billing.accept(resolved), lambda: twin.accept(newer))
    billing.alone(run)
    billing.work()
    assert ("settle", "2") in [(kind, amount) for kind, _, amount in billing.ledger(run)]


@pytest.mark.req("REF-16", "AMB-05")
def test_admissions_that_meet_never_spend_the_same_money(billing: Billing, twin: Billing) -> None:
    """Two admissions of 10 on an account of 15: one is refused; the same admission twice is made once."""
    account = billing.account("15")
    runs = [new_run({"step-1": ("k",)}, {}, account=account) for _ in range(2)]
    barrier = Barrier(2)

    def admit(bench: Billing, run: Run) -> bool:
        barrier.wait()
        try:
            with bench.pool.connection() as connection:
                return admission.admit(connection, run.admission())
        except (OceanWayError, psycopg.Error):
            return False

    def both(first: Run, second: Run) -> list[bool]:
        with ThreadPoolExecutor(2) as threads:
            going = [threads.submit(admit, billing, first), threads.submit(admit, twin, second)]
            return sorted(one.result() for one in going)

    assert both(*runs) == [False, True]
    rich = new_run({"step-1": ("k",)}, {}, account=billing.account())
    assert both(rich, rich) == [False, True]
    assert billing.available(rich) == "990"
