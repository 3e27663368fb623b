"""A failure after any single write of a transaction leaves nothing of it, and the repetition succeeds (annex D.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from psycopg import sql

from seapost.model.outcome import Retryable
from tests.kit.database import TestDatabase
from tests.kit.oceanway.metering import Metering, running_metering
from tests.kit.oceanway.metering_facts import COST, USAGE, Attempt, conflict_quad

TABLES = """
select c.relname from pg_class as c
where c.relnamespace = 'metering'::regnamespace and c.relkind = 'r' and c.relname <> 'schema_migration'
order by 1
"""
FAULT = """
create table public.fault (relation text primary key);
create function public.fail() returns trigger language plpgsql security definer as $$
begin
    if exists (select from public.fault as f where f.relation = tg_argv[0] || tg_relid::regclass::text) then
        raise exception 'injected';
    end if;
    return null;
end $$;
"""
AT_ONCE = sql.SQL("create trigger a_fault after insert or update on {} for each row execute function public.fail('')")
DEFERRED = sql.SQL(
    "create constraint trigger z_late after insert or update on {} deferrable initially deferred"
    " for each row execute function public.fail('deferred ')"
)


@pytest.fixture(scope="module")
def metering(metering_database: TestDatabase) -> Iterator[Metering]:
    """Give a metering whose every table can be made to fail."""
    with metering_database.connect(autocommit=True) as connection:
        connection.execute(FAULT)
        for (table,) in connection.execute(TABLES).fetchall():
            relation = sql.Identifier("metering", table)
            connection.execute(AT_ONCE.format(relation))
            connection.execute(DEFERRED.format(relation))
    with running_metering(metering_database) as bench:
        yield bench


def eligible(metering: Metering, state: str = "available") -> Attempt:
    """An attempt whose eligibility work is due."""
    attempt = metering.new_attempt()
    metering.accept(attempt.end(), attempt.report(USAGE, "tokens", state, "3"))
    return attempt


def costly(metering: Metering, state: str = "available") -> Attempt:
    """An attempt whose cost work is due."""
    attempt = metering.new_attempt()
    metering.accept(attempt.report(COST, "spend", state))
    return attempt


def owner_conflict(metering: Metering) -> Attempt:
    """An attempt about which execution answers `conflicting`."""
    attempt = eligible(metering)
    metering.peers.conflicting[attempt.ref, "readExecutionEligibilityFact"] = conflict_quad(
        "executionEligibilityConflictFact"
    )
    return attempt


def local_conflict(metering: Metering) -> Attempt:
    """An attempt whose usage has another unit than its charge."""
    attempt = metering.new_attempt()
    metering.accept(attempt.end(), attempt.report(USAGE, "tokens", "available", unit="second"))
    return attempt


def cost_conflict(metering: Metering) -> Attempt:
    """An attempt whose cost has another currency than its route."""
    attempt = metering.new_attempt()
    metering.accept(attempt.report(COST, "spend", "available", currency="USD"))
    return attempt


Case = tuple[Callable[[Metering], Attempt], str | None, str, tuple[str, ...]]
WORKS: dict[str, Case] = {
    "TX-18 waiting": (lambda m: eligible(m, "pending"), None, "waiting_for_gateway_usage", ("work_finish", "lane")),
    "TX-16 and TX-18 applied": (
        eligible,
        None,
        "applied",
        (
            "validation_receipt",
            "eligibility_decision",
            "meter_event",
            "settlement_input_snapshot",
            "event_source",
            "settlement_pointer",
            "work_finish",
            "lane",
        ),
    ),
    "TX-19": (
        costly,
        "spend",
        "availability_processed",
        ("validation_receipt", "cost_processing", "provider_cost_fact", "work_finish", "lane"),
    ),
    "TX-20": (
        lambda m: costly(m, "unavailable"),
        "spend",
        "no_cost_evidence",
        ("cost_processing", "work_finish", "lane"),
    ),
    "TX-21 owner": (owner_conflict, None, "blocked_on_owner_conflict", ("work_blocked", "lane")),
    "TX-21 local": (
        local_conflict,
        None,
        "blocked_on_owner_conflict",
        ("eligibility_conflict_evidence", "work_blocked", "lane"),
    ),
    "TX-21 cost": (
        cost_conflict,
        "spend",
        "blocked_on_processing_conflict",
        ("cost_conflict_evidence", "work_blocked", "lane"),
    ),
}


@pytest.mark.req("APP-26", "MTR-19", "MTR-31", "MTR-34", "MTR-36", "MTR-39", "NEG-17", "TST-13")
@pytest.mark.parametrize("case", WORKS)
@pytest.mark.parametrize("moment", ["", "deferred "])
def test_a_work_is_written_whole_or_not_at_all(metering: Metering, case: str, moment: str) -> None:
    """Each write of the transaction fails once; afterwards the same work is done, once."""
    make, dimension, state, tables = WORKS[case]
    attempt = make(metering)
    for table in tables:
        runner = metering.cost if dimension else metering.eligibility
        tasks = [task for task in runner.claim(50) if task.work["executionAttemptId"] == attempt.ref]
        assert len(tasks) == 1, table
        outcomes = runner.judge(tasks)
        before = metering.facts_digest()
        metering.fail_at(f"{moment}metering.{table}")
        if table == "lane":
            with pytest.raises(Exception, match="injected"):
                runner.settle(tasks, outcomes)
        else:
            runner.settle(tasks, outcomes)
        metering.fail_at(None)
        assert metering.facts_digest() == before, table
        assert metering.lane(attempt, dimension)["state"] == "pending"
        metering.expire(attempt)
    metering.work()
    assert metering.lane(attempt, dimension)["state"] == state
    metering.peers.conflicting.clear()
    metering.retire(attempt)
    metering.check()


@pytest.mark.req("MTR-02", "MTR-06", "MTR-11", "NEG-46", "NEG-17")
@pytest.mark.parametrize("moment", ["", "deferred "])
def test_an_inbox_transaction_is_written_whole_or_not_at_all(metering: Metering, moment: str) -> None:
    """TX-17 with a superseded finish: no receipt stays, and the redelivery gets one."""
    attempt = metering.new_attempt()
    metering.accept(attempt.report(COST, "spend", "pending"))
    assert [task for task in metering.cost.claim(50) if task.work["executionAttemptId"] == attempt.ref]
    told = attempt.report(COST, "spend", "available")
    for table in ("watermark", "work", "work_finish", "lane"):
        before = metering.facts_digest()
        metering.fail_at(f"{moment}metering.{table}")
        (outcome,) = metering.consumer.deliver(told)
        metering.fail_at(None)
        assert isinstance(outcome, Retryable), table
        assert metering.facts_digest() == before, table
    metering.accept(told)
    assert metering.lane(attempt, "spend")["latest_work_generation"] == 2
    assert [one["outcome"]["state"] for one in metering.documents("work_finish", attempt)] == ["superseded"]
    metering.work()
    metering.check()
