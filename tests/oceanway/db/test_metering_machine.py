"""One attempt with both lanes, and everything that may happen to it in any order: nothing ever breaks a rule.

The machine delivers, redelivers and delays events, lets workers claim, die and write late, and turns conflicts and
outages of the owners on and off. After every step the rules of `metering_checks` hold; at the end, when everything has
been delivered and nothing is in the way, the lanes stand where the newest revisions put them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from oceanway.metering.outcomes import Task
from tests.kit.database import TestDatabase
from tests.kit.oceanway.metering import Metering, running_metering
from tests.kit.oceanway.metering_facts import COST, USAGE, Attempt, Told, conflict_quad

READS = {
    "readExecutionEligibilityFact": "executionEligibilityConflictFact",
    "readGatewaySourceEvent": "gatewayEvidenceConflictFact",
    "validateGatewayAvailabilityCurrent": "gatewayEvidenceConflictFact",
    "validateGatewayRouteCurrent": "gatewayBindingConflictFact",
}
STATES = ("available", "pending", "not_reported", "unavailable", "conflicting")


class MeteringMachine(RuleBasedStateMachine):
    """See the module."""

    metering: ClassVar[Metering]

    def __init__(self) -> None:
        super().__init__()
        self.attempt: Attempt = self.metering.new_attempt()
        self.waiting: list[Told] = []
        self.receipts: dict[Told, bytes] = {}
        self.held: list[tuple[Any, Task]] = []

    @initialize()
    def _begin(self) -> None:
        self.ended = False

    @precondition(lambda self: not self.ended)
    @rule(result=st.sampled_from(["succeeded", "succeeded", "failed", "not_dispatched"]))
    def end_attempt(self, result: str) -> None:
        """Execution knows how the attempt ended; its event is on the way."""
        self.ended = True
        self.waiting.append(self.attempt.end(result))

    @rule(
        kind=st.sampled_from([(USAGE, "tokens"), (COST, "spend")]),
        state=st.sampled_from(STATES),
        value=st.integers(0, 9),
    )
    def report(self, kind: tuple[str, str], state: str, value: int) -> None:
        """The gateway has a new current availability; its event is on the way."""
        if len(self.attempt.chains.get(kind, [])) < 6:
            self.waiting.append(self.attempt.report(*kind, state, str(value)))

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def deliver(self, data: st.DataObject) -> None:
        """Any of the events on the way arrives."""
        told = self.waiting.pop(data.draw(st.integers(0, len(self.waiting) - 1)))
        self.receipts[told] = self.metering.consumer.accept(told)

    @precondition(lambda self: self.receipts)
    @rule(data=st.data())
    def redeliver(self, data: st.DataObject) -> None:
        """An event arrives again and gets its first receipt."""
        told = data.draw(st.sampled_from(list(self.receipts)))
        assert self.metering.consumer.accept(told) == self.receipts[told]

    @rule(is_cost=st.booleans())
    def claim(self, is_cost: bool) -> None:
        """A worker leases what is due and gets no further for now."""
        runner = self.metering.cost if is_cost else self.metering.eligibility
        self.held.extend((runner, task) for task in runner.claim(10))

    @precondition(lambda self: self.held)
    @rule()
    def write(self) -> None:
        """A worker decides and writes, however late."""
        runner, task = self.held.pop(0)
        runner.settle([task], runner.judge([task]))

    @rule()
    def expire(self) -> None:
        """Every lease ends; who held it may be dead or may write late."""
        self.metering.expire(self.attempt)

    @rule(read=st.sampled_from(sorted(READS)))
    def conflict(self, read: str) -> None:
        """An owner answers `conflicting`, or again the facts."""
        conflicting = self.metering.peers.conflicting
        key = (self.attempt.ref, read)
        if conflicting.pop(key, None) is None:
            conflicting[key] = conflict_quad(READS[read])

    @rule(owner=st.sampled_from(["execution", "gateway"]))
    def outage(self, owner: str) -> None:
        """An owner cannot be asked, or again can; the consumer keeps the manifest it has read."""
        if self.receipts:
            self.metering.peers.unreadable ^= {owner}

    @invariant()
    def rules_hold(self) -> None:
        """See `metering_checks`."""
        self.metering.check()

    def teardown(self) -> None:
        """Deliver the rest, repair everything, and compare the lanes with the newest revisions."""
        peers = self.metering.peers
        peers.conflicting.clear()
        peers.unreadable.clear()
        for told in self.waiting:
            self.receipts[told] = self.metering.consumer.accept(told)
        self.metering.expire(self.attempt)
        for _ in range(3):
            self.metering.work()
        self.metering.check()
        if self.attempt.fact is not None or (USAGE, "tokens") in self.attempt.chains:
            assert self.metering.lane(self.attempt)["state"] == self.expected_eligibility()
        if (COST, "spend") in self.attempt.chains:
            state = self.attempt.chains[COST, "spend"][-1]["availability"]["state"]
            expected = {
                "available": "availability_processed",
                "pending": "waiting_for_evidence",
                "conflicting": "reconciliation_required",
            }
            assert self.metering.lane(self.attempt, "spend")["state"] == expected.get(state, "no_cost_evidence")
        for told, receipt in self.receipts.items():
            assert self.metering.consumer.accept(told) == receipt
        self.metering.retire(self.attempt)

    def expected_eligibility(self) -> str:
        """Where the eligibility lane must stand."""
        if self.attempt.fact is None:
            return "waiting_for_execution"
        disposition = self.attempt.fact["disposition"]
        if disposition["kind"] == "not_dispatched" or disposition["result"]["state"] == "failed":
            return "applied"
        chain = self.attempt.chains.get((USAGE, "tokens"))
        state = chain[-1]["availability"]["state"] if chain else "pending"
        return {"pending": "waiting_for_gateway_usage", "conflicting": "blocked_on_owner_conflict"}.get(
            state, "applied"
        )


@pytest.fixture(scope="module")
def metering(metering_database: TestDatabase) -> Iterator[Metering]:
    """Give one metering to the machine; every run of it has an attempt of its own."""
    with running_metering(metering_database) as bench:
        yield bench


@pytest.mark.req(
    "MTR-02", "MTR-05", "MTR-08", "MTR-14", "MTR-20", "MTR-35", "MTR-38", "MTR-39", "RCP-30", "RCP-33", "NEG-13"
)
def test_no_order_of_deliveries_workers_deaths_and_conflicts_breaks_a_rule(metering: Metering) -> None:
    """A failure prints the steps that lead to it."""
    MeteringMachine.metering = metering
    run_state_machine_as_test(
        MeteringMachine,
        settings=settings(
            max_examples=20,
            stateful_step_count=25,
            deadline=None,
            phases=(Phase.explicit, Phase.generate),
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
        ),
    )
