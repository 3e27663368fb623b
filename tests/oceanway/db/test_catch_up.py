"""One reservation under everything that can happen to it, in any order; and inputs during a case."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from oceanway.billing import store_settlement as store
from oceanway.billing.finalization.gate import ROUTES, CommandChain, close_gate, open_gate
from oceanway.billing.finalization.worker import FinalizationRunner, Pace
from seapost.model.outcome import Acknowledged
from tests.kit.oceanway.billing_settlement import Billing, running_billing
from tests.kit.oceanway.billing_settlement_commands import carry_out, late_command

if TYPE_CHECKING:
    from seapost.testing.databases import TestDatabase
    from tests.kit.oceanway.billing_settlement_facts import Told

QUANTITIES = st.sampled_from(["0", "1", "3", "8", "12", "20"])


@pytest.fixture(scope="module")
def billing(billing_database: TestDatabase) -> Iterator[Billing]:
    """Give billing over a database of this module."""
    with running_billing(billing_database) as running:
        yield running


class Reservation(RuleBasedStateMachine):
    """Inputs in any order, redeliveries, closing, workers that lose their leases, commands, deposits, sick owners."""

    billing: Billing

    def __init__(self) -> None:
        super().__init__()
        self.run = self.billing.unbound_run()
        self.billing.peers.unreadable = False
        self.billing.peers.conflicting.clear()
        self.told: list[Told] = []
        self.receipts: dict[int, bytes] = {}
        self.is_admitted = self.is_closed = False

    @rule(quantity=QUANTITIES)
    def measure(self, quantity: str) -> None:
        """Metering has a newer input; its event is on its way."""
        self.told.append(self.run.measure(quantity))

    @precondition(lambda self: self.told)
    @rule(data=st.data())
    def deliver(self, data: st.DataObject) -> None:
        """One of the events arrives, perhaps again: the first receipt stays."""
        place = data.draw(st.integers(0, len(self.told) - 1))
        (outcome,) = self.billing.inputs.deliver(self.told[place])
        assert isinstance(outcome, Acknowledged) is self.is_admitted
        if isinstance(outcome, Acknowledged):
            assert self.receipts.setdefault(place, outcome.receipt) == outcome.receipt

    @precondition(lambda self: not self.is_admitted)
    @rule()
    def admit(self) -> None:
        """Core admits the run."""
        self.billing.admit(self.run)
        self.is_admitted = True

    @precondition(lambda self: self.is_admitted and not self.is_closed)
    @rule()
    def close(self) -> None:
        """Execution closes the run."""
        self.billing.close(self.run)
        self.is_closed = True

    @precondition(lambda self: self.is_admitted)
    @rule()
    def finalize(self) -> None:
        """The finalization's worker runs once."""
        _ = self.billing.finalizer.step(50)

    @rule()
    def catch_up(self) -> None:
        """The catch-up's worker runs once."""
        _ = self.billing.catcher.step(50)

    @rule()
    def lose_leases(self) -> None:
        """A worker leases everything and dies."""
        with self.billing.pool.connection() as connection:
            _ = store.claim_works(connection, "lost", 50, timedelta(microseconds=1))

    @rule(action=st.sampled_from(["charge", "waive"]))
    def command(self, action: str) -> None:
        """Somebody closes the exposure, if one is open."""
        rows = self.billing.rows(
            "select 1 from billing.dimension_state where settlement_dimension_id = %s and exposure_state = 'open'",
            self.run.dimension(),
        )
        if rows:
            _ = carry_out(self.billing, late_command(self.billing, self.run, action))

    @rule(amount=st.sampled_from(["1", "9"]))
    def pay(self, amount: str) -> None:
        """The account gets money."""
        self.billing.pay(self.run, amount)

    @rule(is_sick=st.booleans())
    def contradict(self, *, is_sick: bool) -> None:
        """Metering contradicts itself about the dimension, or is sound again."""
        (self.billing.peers.conflicting.add if is_sick else self.billing.peers.conflicting.discard)(
            self.run.dimension()
        )

    @rule(is_unreadable=st.booleans())
    def disappear(self, *, is_unreadable: bool) -> None:
        """The owners cannot be asked, or can again."""
        self.billing.peers.unreadable = is_unreadable

    @invariant()
    def is_sound(self) -> None:
        """The books balance, revisions have no gap, and no work has an end and is active."""
        self.billing.require_balanced()
        gaps = self.billing.rows(
            "select s.settlement_dimension_id from billing.dimension_state as s"
            " left join billing.dimension_revision as r using (settlement_dimension_id)"
            " group by s.settlement_dimension_id, s.state_revision having count(r.revision) <> s.state_revision"
        )
        assert gaps == []
        ended = self.billing.rows(
            "select 1 from billing.catch_up_fence as c"
            " join billing.catch_up_work_finish as f on f.billing_settlement_catch_up_work_ref = c.active_work_ref"
        )
        assert ended == []

    def teardown(self) -> None:
        """When everything has arrived and everybody is well, the newest input is settled and verified (TST-21)."""
        self.billing.peers.unreadable = False
        self.billing.peers.conflicting.clear()
        if not self.told:
            self.measure("3")
        if not self.is_admitted:
            self.admit()
        self.billing.accept(*self.told)
        if not self.is_closed:
            self.close()
        self.billing.finalize_known()
        self.billing.work()
        self.billing.require_settled(self.run)


@pytest.mark.req(
    "TST-07",
    "TST-14",
    "TST-15",
    "TST-16",
    "TST-17",
    "TST-19",
    "TST-20",
    "TST-21",
    "CAT-02",
    "CAT-08",
    "CAT-22",
    "AMB-28",
)
def test_any_order_of_everything_ends_with_the_newest_input_and_balanced_books(billing: Billing) -> None:
    """A state machine of one reservation; at its end the watermark's input is settled and caught up."""
    machine = type("BoundReservation", (Reservation,), {"billing": billing})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=15,
            stateful_step_count=25,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )


@pytest.mark.req("CAT-04", "RCP-52", "RCP-53", "NEG-25")
def test_an_input_during_a_case_moves_its_watermark_and_orders_nothing(billing: Billing) -> None:
    """`held_for_resolution` names fence, case and generation; there is no trigger, no work and no catch-up."""
    run = billing.new_run()
    billing.accept(run.measure("3"))
    billing.close(run)
    billing.peers.conflicting.add(run.dimension())
    parts = CommandChain(frozenset(ROUTES), decision_store=True, command_handler=True)
    with billing.database.connect() as connection:
        open_gate(connection, parts, actor="test")
        connection.commit()
    at_once = Pace(timedelta(minutes=5), timedelta(0), timedelta(0))
    assert FinalizationRunner(billing.pool, billing.peers, gate=True, pace=at_once).step(50) == 1
    with billing.database.connect() as connection:
        close_gate(connection, actor="test")
        connection.commit()
    billing.peers.conflicting.clear()
    before = billing.fence(run)
    assert before["state"] == "reconciliation_required"
    works = "select count(*) from billing.finalization_work where billing_finalization_fence_id = %s"
    count = billing.row(works, before["billing_finalization_fence_id"])["count"]
    told = run.measure("4")
    (receipt,) = billing.accept(told)
    said = json.loads(receipt)["outcome"]
    assert said["inboxRevision"] == 2
    case = billing.row(
        "select * from billing.reconciliation where billing_finalization_fence_id = %s",
        before["billing_finalization_fence_id"],
    )
    assert said["durability"] == {
        "state": "held_for_resolution",
        "finalizationFenceRevision": before["fence_revision"],
        "reconciliationCaseRef": case["reconciliation_case_ref"],
        "reconciliationGeneration": 1,
        "expectedResolutionRevision": 1,
    }
    assert billing.fence(run) == before
    assert billing.row(works, before["billing_finalization_fence_id"])["count"] == count
    assert billing.accept(told) == [receipt]
    assert billing.available(run) == Decimal(90)


@pytest.mark.req("CAT-02", "CAT-11", "TST-19", "AMB-28")
def test_a_batch_takes_its_inputs_in_the_order_of_its_locks(billing: Billing) -> None:
    """Inputs of several reservations, bound and unbound, newest first: each dimension advances once for each input."""
    bound, unbound = billing.new_run(), billing.unbound_run()
    told = [run.measure(quantity) for quantity in ("1", "2", "3") for run in (bound, unbound)]
    outcomes = billing.inputs.deliver(*reversed(told))
    assert [isinstance(one, Acknowledged) for one in outcomes] == [False, True] * 3
    generations = [
        json.loads(one.receipt)["outcome"]["durability"]["workGeneration"]
        for one in outcomes
        if isinstance(one, Acknowledged)
    ]
    assert generations == [4, 3, 2]
    for run in (bound, unbound):
        watermark = billing.row(
            "select * from billing.settlement_inbox where settlement_dimension_id = %s", run.dimension()
        )
        assert (watermark["inbox_revision"], watermark["settlement_input_state_version"]) == (3, 3)
