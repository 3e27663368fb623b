"""A failure after any single write of a finalization's transactions leaves nothing; the repetition succeeds (D.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psycopg
import pytest
from psycopg import sql

from oceanway.billing import admission
from seapost.model.outcome import Acknowledged, Retryable
from tests.kit.database import TestDatabase
from tests.kit.oceanway.billing_finalization import Billing, running_billing
from tests.kit.oceanway.billing_finalization_commands import chain_for
from tests.kit.oceanway.billing_finalization_runs import Told, new_run

FAULT = """
create table public.fault (relation text primary key);
create function public.fail() returns trigger language plpgsql security definer as $$
begin
    if exists (select from public.fault as f where f.relation = tg_argv[0]) then
        raise exception 'injected';
    end if;
    return null;
end $$;
"""
AT_ONCE = "create trigger a_fault after insert or update on {} for each row execute function public.fail({})"
LATE = (
    "create constraint trigger z_late after insert or update on {} deferrable initially deferred"
    " for each row execute function public.fail({})"
)
APPEND = ("event_source", "seapost.event", "seapost.delivery")
ORDERED = ("finalization_fence", "finalization_trigger", "finalization_work")

Action = Callable[[], object]


@pytest.fixture(scope="module")
def billing(billing_database: TestDatabase) -> Iterator[Billing]:
    """Give a billing whose every table can be made to fail, at once or at the commit."""
    with billing_database.connect(autocommit=True) as connection:
        connection.execute(FAULT)
        tables = connection.execute(
            "select format('billing.%I', tablename) from pg_tables where schemaname = 'billing' union all"
            " values ('seapost.event'), ('seapost.delivery'), ('seapost.inbox_receipt')"
        ).fetchall()
        for (table,) in tables:
            name = sql.SQL(table)
            connection.execute(sql.SQL(AT_ONCE).format(name, sql.Literal(table)))
            if table.startswith("billing."):
                connection.execute(sql.SQL(LATE).format(name, sql.Literal(f"deferred {table}")))
    with running_billing(billing_database) as bench:
        bench.open_gate()
        yield bench
        bench.balanced()


def admitting(billing: Billing) -> Action:
    """TX-09 in billing: the admission of a run."""
    run = new_run({"step-1": ("tokens",)}, {"attempt-0": "step-1"}, account=billing.account())

    def action() -> object:
        with billing.pool.connection() as connection:
            admission.admit(connection, run.admission())
        return billing.fence(run)

    return action


def finalizing(billing: Billing) -> Action:
    """TX-10: the finalization."""
    run = billing.admitted(dimensions=2)
    billing.accept(*(run.measure("attempt-0", f"key-{number}", "4") for number in range(2)), run.close())
    ending = billing.decided(run)
    return lambda: (billing.write(ending), billing.ledger(run), billing.events(run))


def closing(billing: Billing) -> Action:
    """TX-22: the closure event, while a worker has started the first work."""
    run = billing.admitted()
    _ = billing.decided(run)
    return delivering(billing, run.close())


def resolving(billing: Billing) -> Action:
    """TX-23: the resolution event."""
    return delivering(billing, billing.resolved(billing.in_case()))


def delivering(billing: Billing, told: Told) -> Action:
    """Deliver an event; a retryable outcome is a failure."""

    def action() -> object:
        (outcome,) = billing.deliver(told)
        if isinstance(outcome, Retryable):
            raise psycopg.DatabaseError(outcome.code)
        assert isinstance(outcome, Acknowledged)
        return outcome.receipt

    return action


def waiting(billing: Billing) -> Action:
    """TX-24: a Finish before the closure."""
    run = billing.admitted()
    ending = billing.decided(run)
    return lambda: (billing.write(ending), billing.finishes(run))


def missing(billing: Billing) -> Action:
    """TX-24: a Finish before a settlement input."""
    run = billing.admitted()
    billing.accept(run.close())
    ending = billing.decided(run)
    return lambda: (billing.write(ending), billing.finishes(run))


def requiring(billing: Billing) -> Action:
    """TX-26: the entry into a case."""
    run = billing.admitted()
    billing.accept(run.measure("attempt-0", "key-0", "4"), run.close())
    run.in_conflict()
    ending = billing.decided(run, gate=True)
    return lambda: (billing.write(ending), billing.events(run))


def commanding(billing: Billing) -> Action:
    """TX-27: the resolution command."""
    command = chain_for(billing.requested(billing.in_case())).command()
    return lambda: billing.resolve(command)


TRANSACTIONS: dict[str, tuple[Callable[[Billing], Action], tuple[str, ...]]] = {
    "TX-09": (admitting, ("reservation", *ORDERED, "ledger_entry", "audit_record", "account")),
    "TX-10": (
        finalizing,
        (
            "finalization_decision",
            "finalization_fact",
            *APPEND,
            "dimension_state",
            "catch_up_fence",
            "catch_up_work",
            "reservation",
            "ledger_entry",
            "account",
            "finalization_work_finish",
            "finalization_fence",
            "audit_record",
        ),
    ),
    "TX-22": (closing, (*ORDERED, "finalization_work_finish", "seapost.inbox_receipt")),
    "TX-23": (resolving, (*ORDERED, "seapost.inbox_receipt")),
    "TX-24 closure": (waiting, ("finalization_work_finish", "finalization_fence")),
    "TX-24 input": (missing, ("finalization_work_finish", "finalization_fence")),
    "TX-26": (
        requiring,
        (
            "finalization_decision",
            "reconciliation",
            *APPEND,
            "finalization_work_finish",
            "finalization_fence",
            "audit_record",
        ),
    ),
    "TX-27": (commanding, ("grant_consumed", "resolution_applied", *APPEND, "audit_record")),
}


@pytest.mark.req(
    "APP-13", "CASE-04", "CASE-15", "CASE-21", "FIN-02", "FIN-10", "FIN-13", "NEG-46", "TST-01", "TST-02", "TST-12"
)
@pytest.mark.parametrize("name", TRANSACTIONS)
def test_a_transaction_is_written_whole_or_not_at_all(billing: Billing, name: str) -> None:
    """Each write fails once, at once and at the commit; nothing stays; then it succeeds, and again gives the same."""
    make, tables = TRANSACTIONS[name]
    action = make(billing)
    before = billing.digest()
    for table in tables:
        relation = table if "." in table else f"billing.{table}"
        for moment in ("", "deferred ") if relation.startswith("billing.") else ("",):
            billing.admin.execute("insert into public.fault values (%s)", (moment + relation,))
            with pytest.raises(psycopg.Error):
                action()
            billing.admin.execute("delete from public.fault")
            assert billing.digest() == before, moment + relation
    first = action()
    after = billing.digest()
    assert after != before
    assert action() == first
    assert billing.digest() == after


@pytest.mark.req("TST-16", "RCP-40", "FIN-14", "FIN-08")
@pytest.mark.parametrize("make", [closing, resolving])
def test_a_lost_answer_of_the_coordinator_is_repeated_byte_by_byte(
    billing: Billing, make: Callable[[Billing], Action]
) -> None:
    """The receipt was committed and its answer lost: the redelivery gets the same bytes and makes no second work."""
    action = make(billing)
    first = action()
    works = billing.one("select count(*) from billing.finalization_work")
    assert action() == first
    assert billing.one("select count(*) from billing.finalization_work") == works
