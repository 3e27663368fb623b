"""Random histories of the delivery automaton against the real database, step by step beside a pure model.

Two workers keep every claim they ever got and use any of them at any time. Each history runs in one transaction that is
rolled back; on failure Hypothesis prints the steps and a blob that replays them.
"""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from seapost.model.delivery import Claim
from tests.kit import builders
from tests.kit.automaton import Automaton
from tests.kit.builders import BILLING, PLACED, SEARCH, SHIPPED
from tests.kit.clock import Clock
from tests.kit.kernel import Kernel, Row

DESTINATIONS = st.sampled_from([BILLING, SEARCH])
WORKERS = st.sampled_from(["ann", "bob"])
DELAYS = st.sampled_from([0, 1, 5]).map(lambda seconds: timedelta(seconds=seconds))
LEASES = st.sampled_from([1, 4]).map(lambda seconds: timedelta(seconds=seconds))
POSITIONS = st.integers(0, 1_000)

HISTORY = settings(
    stateful_step_count=25,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


class Machine(RuleBasedStateMachine):
    """One history: rules do the same to the database and to the model, and compare what both answer."""

    def __init__(self, kernel: Kernel, clock: Clock) -> None:
        super().__init__()
        self.kernel = kernel
        self.clock = clock
        self.model = Automaton(clock.now)
        self.memory: dict[str, list[Claim]] = {"ann": [], "bob": []}
        kernel.run("begin")

    def teardown(self) -> None:
        """Take everything back, the clock included."""
        self.kernel.run("rollback")
        self.clock.now = self.clock.start

    @initialize()
    def first_events(self) -> None:
        """Begin with work for both destinations."""
        self.append(SHIPPED)
        self.append(PLACED)

    @rule(event_type=st.sampled_from([PLACED, SHIPPED]))
    def append(self, event_type: str) -> None:
        """Append an event with one or two destinations."""
        (event_id,) = self.kernel.append_new(event_type)
        self.model.append(event_id, (BILLING,) if event_type == PLACED else (BILLING, SEARCH))

    @rule(seconds=st.sampled_from([0.5, 1, 5]))
    def time_passes(self, seconds: float) -> None:
        """Move the database's clock."""
        self.model.now = self.clock.advance(seconds)

    @rule(destination=DESTINATIONS, worker=WORKERS, limit=st.integers(1, 9), lease=LEASES, suspects=st.booleans())
    def claim(self, destination: str, worker: str, limit: int, lease: timedelta, *, suspects: bool) -> None:
        """Claim: the model names exactly which deliveries come, in which order, with which counts."""
        expected = self.model.claimable(destination, limit, suspects=suspects)
        claims = self.kernel.claim(destination, limit=limit, owner=worker, lease=lease, suspects=suspects)
        assert [(claim.fence.event_id, claim.destination) for claim in claims] == expected
        for claim in claims:
            delivery = self.model.deliveries[claim.fence.event_id, destination]
            assert (claim.attempt_number, claim.failure_count, claim.lost_count, claim.company) == (
                delivery.attempts + 1,
                delivery.failures,
                delivery.losses,
                len(claims),
            )
            self.model.lease(claim, lease)
        self.memory[worker] += claims

    def remembered(self, worker: str, position: int) -> Claim:
        """One of the claims this worker ever got, the latest ones first."""
        claims = self.memory[worker]
        return claims[-1 - position % len(claims)]

    @staticmethod
    def refusal(claim: Claim, result: str) -> list[Row]:
        """The answer of a settle call that did not move this claim."""
        return [(claim.fence.event_id, claim.fence.attempt_id, result)]

    @precondition(lambda self: all(self.memory.values()))
    @rule(worker=WORKERS, position=POSITIONS)
    def acknowledge(self, worker: str, position: int) -> None:
        """Confirm one remembered claim, current or old."""
        claim = self.remembered(worker, position)
        delivery = self.model.held(claim)
        assert self.kernel.acknowledge(claim) == ([] if delivery else self.refusal(claim, "stale"))
        if delivery:
            delivery.leave("acknowledged")

    @precondition(lambda self: all(self.memory.values()))
    @rule(worker=WORKERS, position=POSITIONS, field=st.sampled_from(["eventId", "eventEnvelopeSha256", "destination"]))
    def acknowledge_badly(self, worker: str, position: int, field: str) -> None:
        """Confirm with a receipt of something else: invalid or stale, and nothing moves."""
        claim = self.remembered(worker, position)
        wrong = builders.receipt_for(claim, **{field: "other"})
        result = "invalid" if self.model.held(claim) else "stale"
        assert self.kernel.acknowledge(claim, receipts=[wrong]) == self.refusal(claim, result)

    @precondition(lambda self: all(self.memory.values()))
    @rule(destination=DESTINATIONS, worker=WORKERS)
    def acknowledge_all(self, destination: str, worker: str) -> None:
        """Confirm a batch in which held and stale claims stand side by side."""
        claims = [claim for claim in self.memory[worker] if claim.destination == destination][-20:]
        held = [(claim, delivery) for claim in claims if (delivery := self.model.held(claim))]
        refused = self.kernel.acknowledge(*claims, destination=destination)
        assert {row[2] for row in refused} <= {"stale"}
        assert len(refused) == len(claims) - len(held)
        for _, delivery in held:
            delivery.leave("acknowledged")

    @precondition(lambda self: all(self.memory.values()))
    @rule(worker=WORKERS, position=POSITIONS, delay=DELAYS, counted=st.booleans(), lost=st.booleans())
    def retry(self, worker: str, position: int, delay: timedelta, *, counted: bool, lost: bool) -> None:
        """End one remembered claim as retryable."""
        claim = self.remembered(worker, position)
        delivery = self.model.held(claim)
        answer = self.kernel.retry(claim, delay=delay, counted=counted, lost=lost)
        assert answer == ([] if delivery else self.refusal(claim, "stale"))
        if delivery:
            self.model.retry(delivery, delay, counted=counted, lost=lost)

    @precondition(lambda self: all(self.memory.values()))
    @rule(worker=WORKERS, position=POSITIONS)
    def quarantine(self, worker: str, position: int) -> None:
        """Isolate one remembered claim."""
        claim = self.remembered(worker, position)
        delivery = self.model.held(claim)
        assert self.kernel.quarantine(claim) == ([] if delivery else self.refusal(claim, "stale"))
        if delivery:
            delivery.leave("quarantined")

    @precondition(lambda self: all(self.memory.values()))
    @rule(worker=WORKERS, position=POSITIONS, lease=LEASES)
    def renew(self, worker: str, position: int, lease: timedelta) -> None:
        """Lengthen one remembered claim, expired or not."""
        claim = self.remembered(worker, position)
        delivery = self.model.held(claim)
        assert self.kernel.renew(claim, lease=lease) == ({claim.fence.event_id} if delivery else set())
        if delivery and delivery.lease:
            delivery.lease.expires_at = self.model.now + lease

    @rule(delay=DELAYS)
    def recover(self, delay: timedelta) -> None:
        """End every expired lease."""
        assert self.kernel.recover(delay=delay) == self.model.recover(delay)

    @invariant()
    def database_equals_model(self) -> None:
        """Status, times and counts of every delivery, and the published events."""
        stored = {
            (row[0], row[1]): row[2:]
            for row in self.kernel.rows(
                "select event_id, destination, status, available_at, attempt_count, lease_expires_at,"
                " coalesce(failure_count, 0), coalesce(lost_count, 0) from seapost.outbox_deliveries"
            )
        }
        assert stored == {
            key: (
                delivery.status,
                delivery.available_at,
                delivery.attempts,
                delivery.lease.expires_at if delivery.lease else None,
                *((delivery.failures, delivery.losses) if delivery.status in {"pending", "leased"} else (0, 0)),
            )
            for key, delivery in self.model.deliveries.items()
        }
        published: set[UUID] = {row[0] for row in self.kernel.rows("select event_id from seapost.publication")}
        assert published == self.model.published()

    @invariant()
    def no_defects(self) -> None:
        """Every delivery in one place, every finish with its start, no key or deferred check broken."""
        self.kernel.run("set constraints all immediate")
        assert self.kernel.defects() == []


@pytest.mark.req("TST-33", "STO-24", "STO-25", "DLV-15", "CLM-05", "CLM-09", "NEG-10", "NEG-44", "AMB-06", "F14", "F30")
def test_random_histories_agree_with_the_model(kernel: Kernel, clock: Clock) -> None:
    """Whatever the order of claims, settles, recoveries and stale words, database and model stay equal, at both
    levels.
    """

    class Bound(Machine):
        def __init__(self) -> None:
            super().__init__(kernel, clock)

    run_state_machine_as_test(Bound, settings=HISTORY)  # pyright: ignore[reportUnknownMemberType]
