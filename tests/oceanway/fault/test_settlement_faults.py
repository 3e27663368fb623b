"""A write that fails anywhere in a transaction leaves nothing of it, and the repetition succeeds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import psycopg
import pytest

from oceanway.billing import store_settlement as store
from oceanway.billing.catch_up.evaluating import Blocked, CaughtUp, Evaluator, LeasedWork, Rebased
from seapost.model.outcome import Retryable
from tests.kit.oceanway.billing_settlement import Billing, running_billing
from tests.kit.oceanway.billing_settlement_commands import carry_out, grant_for, late_command
from tests.kit.oceanway.billing_settlement_facts import NOW
from tests.kit.oceanway.core_faults import APPENDED, DEFERRED, INJECTED, failing

if TYPE_CHECKING:
    from psycopg import Connection

    from seapost.testing.databases import TestDatabase
    from tests.kit.oceanway.billing_settlement_facts import Run

BOOKED: Final = (
    "billing.dimension_state",
    "billing.reservation",
    "billing.ledger_entry",
    "billing.dimension_revision",
    "billing.event_source",
    "billing.audit_record",
    *APPENDED,
    DEFERRED + "billing.event_source",
)
VERIFIED: Final = ("billing.validation_receipt", "billing.catch_up_work_finish", "billing.catch_up_fence")
EVALUATED: Final = (*BOOKED, *VERIFIED, "billing.transition", "billing.consumption", "billing.catch_up_work")
COMMANDED: Final = (*BOOKED, "billing.account", "billing.grant_consumed", "billing.late_command_result")
BLOCKED: Final = ("billing.settlement_input_conflict", "billing.catch_up_work_blocked", "billing.catch_up_fence")
SCHEDULED: Final = (
    "billing.settlement_inbox",
    "billing.catch_up_fence",
    "billing.catch_up_work",
    "seapost.inbox_receipt",
)
REOPENED: Final = (*SCHEDULED, "billing.catch_up_work_finish", DEFERRED + "billing.catch_up_work")
ORDERED: Final = (
    "billing.settlement_inbox",
    "billing.catch_up_fence",
    "billing.finalization_fence",
    "billing.finalization_trigger",
    "billing.finalization_work",
    "seapost.inbox_receipt",
)


@pytest.fixture(scope="module")
def billing(billing_database: TestDatabase) -> Iterator[Billing]:
    """Give billing over a database of this module."""
    with running_billing(billing_database) as running:
        yield running


def everything(billing: Billing) -> dict[str, str]:
    """The content of every table of billing and of the kernel, as digests."""
    names = billing.rows(
        "select n.nspname || '.' || c.relname as name from pg_class as c"
        " join pg_namespace as n on n.oid = c.relnamespace"
        " where n.nspname in ('billing', 'seapost') and c.relkind in ('r', 'p')"
    )
    found: dict[str, str] = {}
    for row in names:
        query: Any = (
            f"select coalesce(md5(string_agg(t::text, '|' order by t::text)), '') as digest from {row['name']} t"  # noqa: S608 - the names of the catalogue
        )
        found[row["name"]] = billing.row(query)["digest"]
    return found


def finalized(billing: Billing, funds: str = "100") -> Run:
    """A run whose first input is settled and caught up."""
    run = billing.new_run(funds=funds)
    billing.accept(run.measure("3"))
    billing.finalize(run)
    billing.work()
    return run


def require_all_or_nothing(billing: Billing, places: tuple[str, ...], action: Callable[[], object]) -> None:
    """At each place the transaction fails and leaves nothing; then it succeeds."""
    before = everything(billing)
    for place in places:
        with failing(billing.database, place), pytest.raises(psycopg.Error) as error:
            action()
        assert error.value.sqlstate == INJECTED, place
        assert everything(billing) == before, place
    action()
    assert everything(billing) != before


def leased(billing: Billing) -> CaughtUp | Rebased | Blocked:
    """Lease the one work that is due, and let it be decided."""
    with billing.pool.connection() as connection:
        (row,) = store.claim_works(connection, "test", 50, timedelta(minutes=5))
    (ending,) = Evaluator(billing.peers).end([LeasedWork.of(row)], NOW)
    assert isinstance(ending, CaughtUp | Rebased | Blocked), ending
    return ending


def in_transaction(billing: Billing, action: Callable[[Connection[Any]], object]) -> Callable[[], None]:
    """The action in a transaction of its own."""

    def run() -> None:
        with billing.pool.connection() as connection:
            _ = action(connection)

    return run


@pytest.mark.req("APP-06", "APP-08", "APP-09", "APP-13", "CAT-21", "TST-01", "TST-12")
@pytest.mark.parametrize("kind", ["adjust", "request_open", "resolve"])
def test_a_transition_is_booked_completely_or_not_at_all(billing: Billing, kind: str) -> None:
    """TX-11 with TX-30: fact, money, exposure, audit, events, Finish and successor."""
    run = finalized(billing, funds="100" if kind == "adjust" else "10")
    places = EVALUATED
    if kind == "resolve":
        billing.accept(run.measure("20"))
        billing.work()
    if kind != "request_open":
        places = (*places, "billing.account")
    billing.accept(run.measure("12" if kind != "resolve" else "2"))
    ending = leased(billing)
    assert isinstance(ending, Rebased)
    action = in_transaction(billing, lambda connection: store.commit_evaluation(connection, ending.evaluated))
    require_all_or_nothing(billing, places, action)
    again = everything(billing)
    action()  # the response was lost: the same Finish, and nothing new (CAT-22)
    assert everything(billing) == again
    billing.work()
    billing.require_settled(run)


@pytest.mark.req("CAT-20", "CAT-22", "TST-12")
def test_a_catch_up_ends_completely_or_not_at_all(billing: Billing) -> None:
    """TX-31: receipt, Finish and fence."""
    run = billing.new_run()
    billing.accept(run.measure("3"))
    billing.finalize(run)
    ending = leased(billing)
    assert isinstance(ending, CaughtUp)
    action = in_transaction(billing, lambda connection: store.finish_works(connection, [ending]))
    require_all_or_nothing(billing, VERIFIED, action)
    again = everything(billing)
    action()
    assert everything(billing) == again
    billing.require_settled(run)


@pytest.mark.req("CAT-12", "CAT-15")
def test_a_block_is_written_completely_or_not_at_all(billing: Billing) -> None:
    """TX-29: conflict fact, Blocked and fence."""
    run = finalized(billing)
    billing.accept(run.measure("5"))
    billing.peers.conflicting.add(run.dimension())
    ending = leased(billing)
    billing.peers.conflicting.clear()
    assert isinstance(ending, Blocked)

    def block(connection: Connection[Any]) -> bytes:
        return store.block_work(
            connection,
            conflict=ending.conflict,
            blocked=ending.blocked,
            fencing_token=ending.work.attempt.fencing_token,
            expected_revision=ending.work.fence_revision,
            base=timedelta(0),
            longest=timedelta(0),
        )

    require_all_or_nothing(billing, BLOCKED, in_transaction(billing, block))
    again = everything(billing)
    in_transaction(billing, block)()
    assert everything(billing) == again
    billing.work()
    billing.require_settled(run)


@pytest.mark.req("APP-11", "APP-13", "TST-01", "TST-12")
def test_a_command_is_carried_out_completely_or_not_at_all(billing: Billing) -> None:
    """TX-12: grant, result, exposure, money, audit and both events."""
    run = finalized(billing, funds="10")
    billing.accept(run.measure("12"))
    billing.work()
    command = late_command(billing, run, "charge")
    grant = grant_for(command)
    require_all_or_nothing(billing, COMMANDED, lambda: carry_out(billing, command, grant))
    again = everything(billing)
    _ = carry_out(billing, command, grant)
    assert everything(billing) == again
    billing.require_balanced()


@pytest.mark.req("CAT-02", "CAT-06", "CAT-11", "TST-16")
@pytest.mark.parametrize("phase", ["open", "finalized", "superseding"])
def test_an_input_is_accepted_completely_or_not_at_all(billing: Billing, phase: str) -> None:
    """TX-28 in both phases: watermark, fence, work and receipt, last of all the receipt."""
    run = billing.new_run() if phase == "open" else finalized(billing)
    if phase == "superseding":
        billing.accept(run.measure("4"))
        _ = leased(billing)
    told = run.measure("5")
    places = {"open": ORDERED, "finalized": SCHEDULED, "superseding": REOPENED}[phase]
    before = everything(billing)
    for place in places:
        with failing(billing.database, place):
            (outcome,) = billing.inputs.deliver(told)
        assert isinstance(outcome, Retryable), place
        assert everything(billing) == before, place
    receipt = billing.accept(told)
    after = everything(billing)
    assert billing.accept(told) == receipt
    assert everything(billing) == after
    if phase == "open":
        billing.finalize(run)
    billing.work()
    billing.require_settled(run)
