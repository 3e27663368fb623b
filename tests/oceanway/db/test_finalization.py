"""What finalization works end in: waiting, finalized, or given back; and that the books balance afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from itertools import permutations, product
from typing import LiteralString

import psycopg
import pytest
from psycopg import sql
from psycopg.types.json import Jsonb

from oceanway.billing import admission
from oceanway.billing import store_finalization as store
from oceanway.billing.finalization.deciding import Closing, Finishing
from oceanway.billing.store_finalization import PriceKey
from oceanway.contracts.errors import Incomplete, InvalidArgument, OwnerConflict, Stale
from oceanway.contracts.works.finalization import OutcomeClosureEventNotApplied
from seapost.model.errors import SeapostError
from tests.kit.database import TestDatabase
from tests.kit.oceanway.billing_finalization import AT_ONCE, Billing, FinalizationRunner, running_billing
from tests.kit.oceanway.billing_finalization_runs import MOMENT, Run

LEASE = timedelta(seconds=60)
DAMAGE = "update billing.finalization_fence set {} where billing_finalization_fence_id = %s"


@pytest.fixture(scope="module")
def billing(billing_database: TestDatabase) -> Iterator[Billing]:
    """Give one billing to all tests here; every test has runs of its own."""
    with running_billing(billing_database) as bench:
        yield bench
        bench.balanced()


def closing(billing: Billing, run: Run, lease: timedelta = LEASE) -> Closing:
    """What a worker is about to write about a run that can be finalized."""
    ending = billing.decided(run, lease=lease)
    assert isinstance(ending, Closing)
    return ending


def commit(billing: Billing, ending: Closing) -> bytes:
    """Write a finalization as the worker does."""
    with billing.pool.connection() as connection:
        return store.commit_finalization(
            connection,
            decision=ending.decision.canonical(),
            fact=ending.fact.canonical(),
            finish=ending.finish.canonical(),
            envelope=ending.envelope,
            fencing_token=ending.work.fencing_token,
            catch_up_works=ending.opening.works,
            dimension_states=ending.opening.dimension_states,
        )


def ready(billing: Billing, *, dimensions: int = 1, amount: str = "10") -> Run:
    """A closed run with an input of 4 for each dimension."""
    run = billing.admitted(dimensions=dimensions, amount=amount)
    billing.accept(*(run.measure("attempt-0", f"key-{number}", "4") for number in range(dimensions)), run.close())
    return run


@pytest.mark.req("APP-06", "APP-07", "APP-12", "FIN-02", "FIN-04", "FIN-05", "REF-37", "RCP-42", "RCP-56")
def test_a_closed_run_with_every_input_is_finalized(billing: Billing) -> None:
    """Amounts are quantity times unit price; the rest returns to the account; the event binds closure and receipt."""
    run = billing.admitted(dimensions=2, amount="10")
    closed = run.close()
    billing.accept(run.measure("attempt-0", "key-0", "4"), run.measure("attempt-0", "key-1", "2"), closed)
    billing.work()
    fence = billing.fence(run)
    assert (fence["state"], fence["active_work_ref"], fence["lease_owner"]) == ("finalized", None, None)
    assert sorted((kind, amount) for kind, _, amount in billing.ledger(run)) == [
        ("release", "8.5"),
        ("reserve", "10"),
        ("settle", "0.5"),
        ("settle", "1"),
    ]
    assert billing.available(run) == "998.5"
    (event,) = billing.events(run)
    payload = event["payload"]
    assert billing.deliveries(event) == ["core_operations"]
    assert event["correlation"]["causationId"] == payload["closureEventId"] == str(closed.event_id)
    assert payload["finalizationFenceRevision"] == fence["fence_revision"]
    receipt = "billingFinalizationCoordinatorConsumerReceiptDigest"
    assert payload[receipt] == fence["coordinator_receipt"][receipt]
    assert payload["closureEventEnvelopeSha256"] == fence["closure_watermark"]["eventEnvelopeSha256"]
    assert billing.one(
        "select count(*) from billing.catch_up_fence where billing_reservation_id = %s"
        " and state = 'pending_verification'",
        run.reservation,
    ) == len(payload["dimensions"])


@pytest.mark.req("FIN-03", "NEG-21", "AMB-34", "APP-13", "REF-36")
def test_before_the_closure_event_a_work_asks_nobody_and_decides_nothing(billing: Billing) -> None:
    """The first work and the one of an early settlement input end as `closure_event_not_applied` and nothing else."""
    run = billing.admitted()
    billing.work()
    assert billing.state(run) == "waiting_for_closure"
    billing.accept(run.measure("attempt-0", "key-0", "4"))
    assert billing.state(run) == "pending"
    billing.work()
    assert billing.finishes(run) == ["closure_event_not_applied"] * 2
    assert billing.peers.questions(run) == []
    assert billing.events(run) == []
    assert [kind for kind, _, _ in billing.ledger(run)] == ["reserve"]
    assert (
        billing.one(
            "select count(*) from billing.finalization_decision where billing_finalization_fence_id = %s", run.fence
        )
        == 0
    )


@pytest.mark.req("REF-37", "CAT-03")
def test_a_missing_input_ends_the_work_and_its_event_makes_the_next_one(billing: Billing) -> None:
    """The Finish names the missing dimensions; no settlement input is asked for before all are there."""
    run = billing.admitted(dimensions=2)
    billing.accept(run.measure("attempt-0", "key-1", "4"), run.close())
    billing.work()
    assert billing.state(run) == "waiting_for_settlement_input"
    missing = billing.one(
        "select convert_from(f.document, 'UTF8')::jsonb #> '{outcome,missing}'"
        " from billing.finalization_work_finish as f join billing.finalization_work as w"
        " using (billing_finalization_work_ref) where w.billing_finalization_fence_id = %s"
        " order by w.work_generation desc limit 1",
        run.fence,
    )
    place = {"runStepId": "step-1", "executionAttemptId": "attempt-0", "chargeDimensionKey": "key-0"}
    assert missing == [place]
    assert "readSettlementInputForBilling" not in billing.peers.questions(run)
    billing.accept(run.measure("attempt-0", "key-0", "4"))
    billing.work()
    assert billing.state(run) == "finalized"


@pytest.mark.req("FIN-02", "FIN-04", "CAT-03", "AMB-46", "TST-14", "TST-20", "TST-21")
def test_every_order_of_closure_inputs_and_works_leads_to_the_same_books(billing: Billing) -> None:
    """Two inputs, their correction and the closure in all orders, with and without the worker in between."""
    books: set[tuple[tuple[str, str], ...]] = set()
    for order, worked in product(permutations(range(3)), [(False, False), (True, False), (True, True)]):
        run = billing.admitted(dimensions=2)
        first = run.measure("attempt-0", "key-0", "4")
        told = [first, run.measure("attempt-0", "key-1", "2"), run.close()]
        newer = run.measure("attempt-0", "key-0", "6")
        for position, item in enumerate(order):
            billing.accept(told[item])
            if item == 0:
                billing.accept(newer)
            if position < len(worked) and worked[position]:
                billing.work()
        billing.work()
        assert billing.state(run) == "finalized", (order, worked)
        books.add(tuple(sorted((kind, amount) for kind, _, amount in billing.ledger(run))))
    assert books == {(("release", "8"), ("reserve", "10"), ("settle", "0.5"), ("settle", "1.5"))}


@pytest.mark.req("REF-37", "REF-50")
def test_costs_above_the_reservation_are_drawn_from_the_account(billing: Billing) -> None:
    """The release is negative, and the account may end below zero."""
    run = billing.admitted(amount="10", money="10")
    billing.accept(run.measure("attempt-0", "key-0", "48"), run.close())
    billing.work()
    assert sorted((kind, amount) for kind, _, amount in billing.ledger(run)) == [
        ("release", "-2"),
        ("reserve", "10"),
        ("settle", "12"),
    ]
    assert billing.available(run) == "-2"


@pytest.mark.req("REF-37")
def test_a_run_without_attempts_releases_everything(billing: Billing) -> None:
    """There is nothing to settle, so there is nothing to wait for."""
    run = billing.admitted(attempts=0)
    billing.accept(run.close())
    billing.work()
    assert [(kind, amount) for kind, _, amount in billing.ledger(run)] == [("release", "10"), ("reserve", "10")]


@pytest.mark.req("FIN-13", "NEG-46", "AMB-45", "AMB-35")
@pytest.mark.parametrize("trouble", ["execution", "metering", "unknown", "price"])
def test_a_work_that_cannot_be_decided_now_is_given_back_whole(billing: Billing, trouble: str) -> None:
    """An unreadable owner, an answer that is not there yet or a missing price: only the lease and its count move."""
    run = billing.admitted()
    billing.accept(run.measure("attempt-0", "key-0", "4"), run.close())
    billing.alone(run)
    before = billing.fence(run)
    peers = billing.peers
    peers.unreadable = {trouble} & {"execution", "metering"}
    peers.unknown = {"readSettlementInputForBilling"} if trouble == "unknown" else set()
    try:
        runner = billing.once() if trouble != "price" else unpriced(billing)
    finally:
        peers.unreadable, peers.unknown = set(), set()
    assert sum(runner.waiting.values()) == 1
    after = billing.fence(run)
    moved = {"available_at", "retry_count", "attempt_number"}
    assert {name: after[name] for name in after.keys() - moved} == {
        name: before[name] for name in before.keys() - moved
    }
    assert (after["attempt_number"], after["retry_count"]) == (1, 1)
    assert billing.finishes(run) == []
    billing.work()
    assert billing.state(run) == "finalized"


def unpriced(billing: Billing) -> FinalizationRunner:
    """Run one step without any price."""

    class Unpriced(FinalizationRunner):
        def _price(self, keys: object) -> dict[PriceKey, Decimal]:
            _ = keys
            return {}

    runner = Unpriced(billing.pool, billing.peers, gate=False, pace=AT_ONCE)
    runner.step(10)
    return runner


@pytest.mark.req("NEG-22", "AMB-28", "TST-20", "TST-21", "FIN-05")
def test_an_input_that_is_acknowledged_before_the_commit_wins_without_another_event(billing: Billing) -> None:
    """S1 was decided on, S2 is acknowledged, F(S1) loses its fence; the work that S2 made finalizes with S2."""
    run = ready(billing)
    newer = run.measure("attempt-0", "key-0", "8")
    billing.peers.meanwhile["readSettlementInputForBilling"] = lambda: billing.accept(newer)
    billing.alone(run)
    runner = billing.once()
    assert runner.waiting["fence_moved_on"] == 1
    assert billing.events(run) == []
    billing.work()
    assert ("settle", "2") in [(kind, amount) for kind, _, amount in billing.ledger(run)]
    assert billing.finishes(run)[-2:] == ["superseded", "finalized"]


@pytest.mark.req("NEG-22", "FIN-05", "AMB-28", "AMB-45")
@pytest.mark.parametrize(
    ("damage", "error"),
    [
        ("fence_revision = fence_revision + 1", Stale),
        ("fencing_token = fencing_token + 1000000", Stale),
        ('closure_watermark = \'{"state": "none"}\', coordinator_receipt = null', Incomplete),
        ("closure_watermark = jsonb_set(closure_watermark, '{eventEnvelopeSha256}', '\"b\"')", InvalidArgument),
        ("closure_watermark = jsonb_set(closure_watermark, '{closureEventId}', '\"b\"')", InvalidArgument),
        ('coordinator_receipt = \'{"billingFinalizationCoordinatorConsumerReceiptDigest": "b"}\'', InvalidArgument),
    ],
)
def test_a_finalization_is_bound_to_its_fence_closure_and_receipt(
    billing: Billing, damage: LiteralString, error: type[SeapostError]
) -> None:
    """Each bound value is compared at the commit; nothing of the transaction stays."""
    run = ready(billing)
    ending = closing(billing, run)
    saved = billing.fence(run)
    billing.admin.execute(sql.SQL(DAMAGE).format(sql.SQL(damage)), (run.fence,))
    before = billing.digest()
    with pytest.raises(error):
        commit(billing, ending)
    assert billing.digest() == before
    billing.admin.execute(
        "update billing.finalization_fence as f set (fence_revision, fencing_token,"
        " closure_watermark, coordinator_receipt)"
        " = (select s.fence_revision, s.fencing_token, s.closure_watermark, s.coordinator_receipt"
        " from jsonb_populate_record(null::billing.finalization_fence, %s) as s)"
        " where f.billing_finalization_fence_id = %s",
        (Jsonb(saved), run.fence),
    )
    commit(billing, ending)


@pytest.mark.req("AMB-28", "TST-21")
def test_inputs_are_compared_with_the_watermarks_at_the_commit(billing: Billing) -> None:
    """Even on an unchanged fence a newer watermark makes the finalization stale."""
    run = ready(billing)
    ending = closing(billing, run)
    billing.admin.execute(
        "update billing.settlement_inbox set settlement_input_state_version = 9, inbox_revision = inbox_revision + 1,"
        " settlement_input_snapshot_ref = 'newer' where billing_reservation_id = %s",
        (run.reservation,),
    )
    with pytest.raises(Stale):
        commit(billing, ending)
    assert billing.events(run) == []


@pytest.mark.req("TST-12", "APP-13", "TST-09")
def test_a_lost_response_of_a_finalization_is_repeated_without_effect(billing: Billing) -> None:
    """The same fact returns the first one; nothing is booked or told twice."""
    run = ready(billing)
    ending = closing(billing, run)
    first = commit(billing, ending)
    before = billing.digest()
    assert commit(billing, ending) == first == ending.fact.canonical()
    assert billing.digest() == before
    other = replace(ending, fact=ending.fact.model_copy(update={"billing_finalization_fact_digest": "b" * 64}))
    with pytest.raises(Stale):
        commit(billing, other)


@pytest.mark.req("AMB-45", "NEG-22")
def test_an_expired_lease_is_claimed_anew_and_the_late_worker_changes_nothing(billing: Billing) -> None:
    """The second attempt has the next number and another token; the first token is stale."""
    run = ready(billing)
    late = closing(billing, run, timedelta(microseconds=1))
    ending = closing(billing, run)
    assert (late.work.attempt_number, ending.work.attempt_number) == (1, 2)
    assert late.work.fencing_token < ending.work.fencing_token
    with pytest.raises(Stale):
        commit(billing, late)
    commit(billing, ending)
    assert (
        billing.one(
            "select count(*) from billing.finalization_work_start where billing_finalization_work_ref = %s",
            late.work.quad.ref,
        )
        == 2
    )


@pytest.mark.req("FIN-03", "REF-36")
def test_a_waiting_finish_is_written_once_and_fits_the_watermark(billing: Billing) -> None:
    """Repeated it is the first one; it is refused once the closure is known."""
    run = billing.admitted()
    ending = billing.decided(run)
    assert isinstance(ending, Finishing)
    for _ in range(2):
        assert finish(billing, ending) == ending.finish.canonical()
    billing.accept(run.close())
    later = billing.decided(run)
    assert isinstance(later, Finishing)
    wrong = later.work.finish(OutcomeClosureEventNotApplied(), MOMENT)
    with pytest.raises(InvalidArgument):
        finish(billing, replace(later, finish=wrong))


def finish(billing: Billing, ending: Finishing) -> bytes:
    """Write a waiting Finish as the worker does; the stored one."""
    with billing.pool.connection() as connection:
        return store.finish_work(
            connection,
            ending.finish.canonical(),
            fencing_token=ending.work.fencing_token,
            expected_revision=ending.work.fence_revision,
        )


@pytest.mark.req("NEG-50", "TST-02", "TST-10", "AMB-41")
def test_a_fact_without_its_event_or_with_a_second_one_is_refused(billing: Billing) -> None:
    """Without its event the fact fails at the commit; a second event of the type for the fact fails at once."""
    run = ready(billing)
    ending = closing(billing, run)
    commit(billing, ending)
    with pytest.raises(OwnerConflict), billing.database.connect() as connection, store.translating():
        connection.execute(
            "select billing.event_bind(%s, 'billing.finalization.committed@1', %s)",
            (ending.envelope, ending.fact.billing_finalization_fact_ref),
        )
    with pytest.raises(InvalidArgument), billing.database.connect() as connection, store.translating():
        connection.execute(
            "select billing.event_bind(%s, 'billing.settlement-transition.committed@1', 'x')", (ending.envelope,)
        )
    orphan = billing.database.connect()
    orphan.execute(
        "insert into billing.event_source (event_type, source_fact_key, event_id)"
        " values ('billing.finalization.committed@1', 'nobody', gen_random_uuid())"
    )
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        orphan.commit()
    for table in ("finalization_fact", "finalization_decision", "ledger_entry", "finalization_work_finish"):
        with pytest.raises(psycopg.errors.RestrictViolation), billing.database.connect() as connection:
            connection.execute(sql.SQL("delete from billing.{}").format(sql.Identifier(table)))


@pytest.mark.req("REF-16", "AMB-05")
def test_runtime_roles_hold_no_right_on_a_table(billing: Billing) -> None:
    """The three roles reach facts through functions only; the auditor reads everything and changes nothing."""
    tables = [row[0] for row in billing.admin.execute("select tablename from pg_tables where schemaname = 'billing'")]
    for role in ("service", "consumer", "reader"):
        for right in ("select", "insert", "update", "delete", "truncate"):
            held = billing.one(
                "select count(*) from unnest(%s::text[]) as t (name)"
                " where has_table_privilege('oceanway_billing_' || %s, 'billing.' || t.name, %s)",
                tables,
                role,
                right,
            )
            assert held == 0, (role, right)
    assert billing.one(
        "select bool_and(has_table_privilege('oceanway_auditor', 'billing.' || t.name, 'select')"
        " and not has_table_privilege('oceanway_auditor', 'billing.' || t.name, 'insert,update,delete'))"
        " from unnest(%s::text[]) as t (name)",
        tables,
    )
    assert admission.read_account(billing.admin, "nobody") is None
