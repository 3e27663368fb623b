"""Inputs, finalizations, workers and commands that meet: the second decides again, and nothing is booked twice."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, LiteralString

import pytest

from oceanway.billing import store_settlement as store
from oceanway.billing.catch_up.evaluating import Blocked, CaughtUp, Ending, Evaluator, LeasedWork, Rebased
from oceanway.billing.catch_up.worker import CatchUpRunner
from oceanway.billing.catch_up.works import caught_up_finish
from oceanway.billing.late_commands.command import LateCommand, apply_late_command
from oceanway.contracts.errors import Incomplete, InvalidArgument, NotCovered, Stale
from oceanway.contracts.identity import Quad
from oceanway.contracts.reads_metering import SettlementInputValidation
from seapost.model.outcome import Acknowledged
from tests.kit.oceanway.billing_settlement import AT_ONCE, Billing, running_billing
from tests.kit.oceanway.billing_settlement_commands import CALLER, carry_out, grant_for, grant_key, late_command
from tests.kit.oceanway.billing_settlement_facts import NOW
from tests.kit.oceanway.billing_settlement_peers import current_receipt
from tests.kit.oceanway.core_faults import waiting_for

if TYPE_CHECKING:
    from seapost.testing.databases import TestDatabase
    from tests.kit.oceanway.billing_settlement_facts import Run

WAITS_MAX = 5_000


@pytest.fixture(scope="module")
def billing(billing_database: TestDatabase) -> Iterator[Billing]:
    """Give billing over a database of this module."""
    with running_billing(billing_database) as running:
        yield running


def finalized(billing: Billing, funds: str = "100") -> Run:
    """A run whose first input is settled and caught up."""
    run = billing.new_run(funds=funds)
    billing.accept(run.measure("3"))
    billing.finalize(run)
    billing.work()
    return run


def lease(billing: Billing, lasting: timedelta = timedelta(minutes=5)) -> list[LeasedWork]:
    """Lease what is due."""
    with billing.pool.connection() as connection:
        return [LeasedWork.of(row) for row in store.claim_works(connection, "test", 50, lasting)]


def decide(billing: Billing, work: LeasedWork) -> Ending:
    """What becomes of one leased work."""
    (ending,) = Evaluator(billing.peers).end([work], NOW)
    return ending


def commit(billing: Billing, ending: Ending) -> object:
    """Write an end in a transaction of its own."""
    with billing.pool.connection() as connection:
        match ending:
            case Rebased():
                return store.commit_evaluation(connection, ending.evaluated)
            case CaughtUp():
                return store.finish_works(connection, [ending])
            case Blocked():
                return store.block_work(
                    connection,
                    conflict=ending.conflict,
                    blocked=ending.blocked,
                    fencing_token=ending.work.attempt.fencing_token,
                    expected_revision=ending.work.fence_revision,
                    base=timedelta(0),
                    longest=timedelta(0),
                )
            case _:
                raise AssertionError(ending)


@contextmanager
def stopped_at(billing: Billing, lock: LiteralString) -> Generator[Callable[[int], None]]:
    """Stop every transaction that reaches the lock, until the block ends; gives what waits for so many waiters."""
    with billing.database.connect() as holder, billing.database.connect(autocommit=True) as observer:
        holder.execute(lock)

        def wait(count: int) -> None:
            for _ in range(WAITS_MAX):
                row = observer.execute(
                    "select count(*) from pg_stat_activity where datname = current_database()"
                    " and cardinality(pg_blocking_pids(pid)) > 0"
                ).fetchone()
                if row is not None and row[0] >= count:
                    return
            raise AssertionError("nobody waits")

        yield wait
        holder.rollback()


@pytest.mark.req("TST-20", "TST-21", "AMB-28", "CAT-08")
def test_an_input_that_is_accepted_first_supersedes_the_finalization(billing: Billing) -> None:
    """S2's transaction holds the fence while the finalization of S1 wants to commit: it loses, and S2 is finalized."""
    run = billing.new_run()
    billing.accept(run.measure("3"))
    billing.close(run)
    second = run.measure("5")
    accepted: list[Future[Any]] = []
    with ThreadPoolExecutor(2) as threads:
        with stopped_at(billing, "lock table seapost.inbox_receipt in exclusive mode") as wait:

            def arrive(purpose: str) -> None:
                if purpose == "billing_settlement_input" and not accepted:
                    accepted.append(threads.submit(billing.inputs.deliver, second))
                    wait(1)

            billing.peers.before = arrive
            finalizing = threads.submit(billing.finalizer.step, 50)
            wait(2)
        billing.peers.before = None
        assert finalizing.result() == 1
        assert isinstance(accepted[0].result()[0], Acknowledged)
    assert billing.fence(run)["state"] == "pending"
    billing.finalize_known()
    billing.work()
    billing.require_settled(run)
    assert len(billing.events(run)) == 1


@pytest.mark.req("TST-20", "TST-21", "AMB-28", "CAT-05")
def test_an_input_that_meets_a_committing_finalization_reopens_the_catch_up(billing: Billing) -> None:
    """The finalization of S1 holds the fence while S2 arrives: S2 waits, and is caught up without S3."""
    run = billing.new_run()
    billing.accept(run.measure("3"))
    billing.close(run)
    second = run.measure("5")
    with ThreadPoolExecutor(2) as threads:
        with stopped_at(billing, "lock table billing.audit_record in exclusive mode") as wait:
            finalizing = threads.submit(billing.finalizer.step, 50)
            wait(1)
            accepted = threads.submit(billing.inputs.deliver, second)
            wait(2)
        assert finalizing.result() == 1
        (outcome,) = accepted.result()
    assert isinstance(outcome, Acknowledged)
    assert b"settlement_catch_up_scheduled" in outcome.receipt
    assert billing.fence(run)["state"] == "finalized"
    billing.work()
    billing.require_settled(run)


@pytest.mark.req("TST-08", "CASE-32", "CASE-33", "NEG-32", "REF-50")
def test_a_transition_starts_again_from_what_a_command_left(billing: Billing) -> None:
    """The predecessor comes first: the old receipt books nothing, the next lease has another revision and operation."""
    run = finalized(billing, funds="10")
    billing.accept(run.measure("12"))
    billing.work()
    billing.accept(run.measure("15"))
    (old,) = lease(billing, timedelta(microseconds=1))
    ending = decide(billing, old)
    result = carry_out(billing, late_command(billing, run, "charge"))
    with pytest.raises(Stale):
        _ = commit(billing, ending)
    (new,) = lease(billing)
    assert (old.dimension.revision, new.dimension.revision) == (1, result.to_revision)
    assert old.validation.logical_operation_id == new.validation.logical_operation_id
    assert old.validation.operation_id != new.validation.operation_id
    assert old.attempt.work == new.attempt.work
    _ = commit(billing, decide(billing, new))
    billing.work()
    billing.require_settled(run)
    last = billing.events(run)[-2:]
    assert last[0][1]["payload"]["fromRevision"] == result.to_revision


@pytest.mark.req("NEG-26", "CAT-20", "AMB-45", "NEG-13")
def test_a_lease_that_was_lost_ends_nothing(billing: Billing) -> None:
    """Every end of the old lease is refused; the new one goes on, with the next attempt number."""
    run = finalized(billing)
    billing.accept(run.measure("5"))
    (old,) = lease(billing, timedelta(microseconds=1))
    (new,) = lease(billing)
    assert (old.attempt.attempt_number, new.attempt.attempt_number) == (1, 2)
    with pytest.raises(Stale):
        _ = commit(billing, decide(billing, old))
    billing.peers.conflicting.add(run.dimension())
    blocked = decide(billing, old)
    billing.peers.conflicting.clear()
    with pytest.raises(Stale):
        _ = commit(billing, blocked)
    _ = commit(billing, decide(billing, new))
    (verifying,) = lease(billing, timedelta(microseconds=1))
    (again,) = lease(billing)
    assert commit(billing, decide(billing, verifying)) == []
    assert commit(billing, decide(billing, again)) == [again.work_ref]
    billing.require_settled(run)


@pytest.mark.req("NEG-26", "CAT-20", "TST-19", "AMB-46")
def test_a_newer_input_supersedes_the_verification_that_is_under_way(billing: Billing) -> None:
    """Watermark and revision changed: `caught_up` is refused, the work has its one Finish, and S3 is settled."""
    run = finalized(billing)
    billing.accept(run.measure("5"))
    _ = billing.catcher.step(1)
    (verifying,) = lease(billing)
    ending = decide(billing, verifying)
    billing.accept(run.measure("6"))
    assert commit(billing, ending) == []
    query = "select outcome from billing.catch_up_work_finish where billing_settlement_catch_up_work_ref = %s"
    assert billing.row(query, verifying.work_ref)["outcome"] == "superseded"
    assert billing.catch_up(run)["state"] == "pending_verification"
    billing.work()
    billing.require_settled(run)


@pytest.mark.req("NEG-26", "NEG-27", "CAT-18", "CAT-19", "CAT-20")
def test_a_work_that_was_not_evaluated_is_not_caught_up(billing: Billing) -> None:
    """Not with a receipt for the fence, not with that of the transition, not with one for another operation."""
    run = finalized(billing)
    billing.accept(run.measure("5"))
    (work,) = lease(billing)
    asked: dict[str, Any] = {
        **{name: getattr(work.attempt.work, name) for name in run.place()},
        "settlement_dimension_id": run.dimension(),
        **work.attempt.work.basis.target_input.model_dump(),
    }
    own = work.attempt.work.billing_catch_up_validation_operation_id
    for purpose, operation in (
        ("billing_catch_up_fence", own),
        ("billing_catch_up_fence", "another"),
        ("post_finalization_transition", own),
    ):
        question = SettlementInputValidation(**asked, validation_operation_id=operation)
        receipt = current_receipt(question, purpose)
        finish = caught_up_finish(work.attempt, receipt.quad(), NOW)
        with pytest.raises(InvalidArgument):
            _ = commit(billing, CaughtUp(work, finish.canonical(), receipt.canonical()))
    ending = decide(billing, work)
    assert isinstance(ending, Rebased)
    wrong = current_receipt(
        SettlementInputValidation(**asked, validation_operation_id=work.validation.operation_id),
        "billing_catch_up_fence",
    )
    with pytest.raises(InvalidArgument):
        _ = commit(billing, Rebased(work, replace(ending.evaluated, receipt=wrong.canonical())))
    made_up = Quad("made-up", "1", "jcs-sha256-v1", "e" * 64)
    finish = caught_up_finish(work.attempt, made_up, NOW)
    with pytest.raises(InvalidArgument):
        _ = commit(billing, CaughtUp(work, finish.canonical(), wrong.canonical()))
    assert billing.dimension(run)["state_revision"] == 0
    _ = commit(billing, ending)
    billing.work()
    billing.require_settled(run)


@pytest.mark.req("APP-09", "APP-13")
def test_what_the_account_covers_is_decided_under_its_lock(billing: Billing) -> None:
    """Two dimensions want the same money: the second decision is refused, and opens an exposure when made again."""
    run = billing.new_run(funds="10", keys=("seconds", "tokens"))
    billing.accept(run.measure("0", "seconds"), run.measure("0", "tokens"))
    billing.finalize(run)
    billing.work()
    billing.accept(run.measure("8", "seconds"), run.measure("8", "tokens"))
    first, second = (decide(billing, work) for work in lease(billing, timedelta(microseconds=1)))
    _ = commit(billing, first)
    with pytest.raises(NotCovered):
        _ = commit(billing, second)
    billing.work()
    states = [billing.dimension(run, key) for key in run.keys]
    assert sorted((one["settled_amount"], one["exposure_amount"]) for one in states) == [(0, 8), (8, 0)]
    assert billing.available(run) == Decimal(2)
    billing.require_balanced()


@pytest.mark.req("APP-11", "TST-12", "CASE-31")
def test_one_command_in_two_sessions_is_carried_out_once(billing: Billing) -> None:
    """The second session waits for the first one's commit and returns its result; nothing is booked twice."""
    run = finalized(billing, funds="10")
    billing.accept(run.measure("12"))
    billing.work()
    command = late_command(billing, run, "charge")
    late, keys = LateCommand(command, grant_for(command)), [grant_key().public_key()]
    with (
        ThreadPoolExecutor(1) as threads,
        billing.pool.connection() as second,
        billing.database.connect(autocommit=True) as observer,
    ):
        with billing.pool.connection() as first:
            result = apply_late_command(first, late, caller=CALLER, keys=keys)
            waiting = threads.submit(apply_late_command, second, late, caller=CALLER, keys=keys)
            waiting_for(observer, second)
        assert waiting.result() == result
    assert billing.dimension(run)["settled_amount"] == 12
    assert len(billing.events(run)) == 5
    billing.require_balanced()


@pytest.mark.req("CAT-11", "CAT-19", "CAT-20", "AMB-45")
def test_several_workers_end_every_work_once(billing: Billing) -> None:
    """Four workers over many dimensions: each input has one transition, each work at most one Finish."""
    runs = [finalized(billing) for _ in range(12)]
    told = [run.measure(quantity) for run in runs for quantity in ("4", "6")]
    for one in told:
        billing.accept(one)
    runners = [CatchUpRunner(billing.pool, billing.peers, pace=AT_ONCE) for _ in range(4)]

    def work(runner: CatchUpRunner) -> None:
        while runner.step(3):
            pass

    with ThreadPoolExecutor(len(runners)) as threads:
        list(threads.map(work, runners))
    billing.work()
    for run in runs:
        billing.require_settled(run)
        assert len(billing.events(run)) == 2


@pytest.mark.req("NEG-50", "TST-10", "TST-09", "AMB-41")
def test_a_transition_without_its_event_or_with_a_second_one_does_not_commit(billing: Billing) -> None:
    """An event too few or too many, one of another fact, and one that another fact has."""
    run = finalized(billing)
    billing.accept(run.measure("5"))
    (work,) = lease(billing)
    ending = decide(billing, work)
    assert isinstance(ending, Rebased)
    (envelope,) = ending.evaluated.envelopes
    before = billing.events(run)
    another = run.event_of(run.snapshot("tokens", "6", run.snapshots["tokens"][-1])).envelope
    wrong: list[tuple[tuple[bytes, ...], type[Exception]]] = [
        ((), Incomplete),
        ((envelope, envelope), Incomplete),
        ((another,), InvalidArgument),
        ((envelope.replace(run.attempt.encode(), b"another"),), InvalidArgument),
    ]
    for envelopes, error in wrong:
        with pytest.raises(error):
            _ = commit(billing, Rebased(work, replace(ending.evaluated, envelopes=envelopes)))
    assert billing.events(run) == before
    _ = commit(billing, ending)
    billing.work()
    billing.require_settled(run)
