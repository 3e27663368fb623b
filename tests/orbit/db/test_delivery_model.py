"""The automata of sections 26.2 and 26.3 as a model beside the real database (T-P04); T-P02 and T-P03 at its end."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run_machine

from tests.kit.database import TestDatabase
from tests.kit.orbit.consuming import change, retry
from tests.kit.orbit.invariants import assert_invariants
from tests.kit.orbit.scene import Lease, Scene

CONNECTIONS: Final = ("conn_" + "a" * 32, "conn_" + "b" * 32)
LATER: Final = 40.0
"""More seconds than any lease or backoff."""


@dataclass
class Modelled:
    """What the model knows of a delivery. Times are counted in jumps of the clock."""

    sequence: int
    budget: int
    state: str = "PENDING"
    revision: int = 1
    attempts: int = 0
    holder: str | None = None
    overdue: bool = False
    resting: bool = False
    delivery_id: str = ""
    proofs: list[Lease] = field(default_factory=list[Lease])


class DeliveryMachine(RuleBasedStateMachine):
    """Random operations on one subscription; after each, every delivery, the subscription and the audit agree."""

    connection: psycopg.Connection[Any]
    places = 0

    @initialize(window=st.integers(1, 4), budget=st.integers(1, 3), types=st.sampled_from([None, ["task.succeeded"]]))
    def begin(self, window: int, budget: int, types: list[str] | None) -> None:
        """Start in a namespace of its own."""
        type(self).places += 1
        self.scene = Scene(self.connection, namespace=f"model-{type(self).places}")
        self.window, self.budget, self.types = window, budget, types
        self.one = self.scene.subscribe(max_pending=window, max_attempts=budget, types=types)
        self.journal: list[tuple[int, str]] = []
        self.deliveries: list[Modelled] = []
        self.cursor = 0
        self.status, self.revision = "ACTIVE", 1
        self.audits = {"authorized": 0, "acked": 0, "retried": 0}

    @rule(outcome=st.sampled_from(["succeeded", "failed"]), count=st.integers(1, 3))
    def produce(self, outcome: str, count: int) -> None:
        """Results of the queue; they change no subscription."""
        for _ in range(count):
            receipt = self.scene.result(outcome=outcome)
            self.journal.append((receipt["sequence"], receipt["event_type"]))

    @rule(connection=st.sampled_from(CONNECTIONS), capacity=st.integers(1, 4), requested=st.integers(1, 4))
    def claim(self, connection: str, capacity: int, requested: int) -> None:
        """Recycle, materialise, lease; nothing of it while paused."""
        claimed = self.scene.lease(self.one, capacity=capacity, requested=requested, connection_id=connection)
        if self.status == "PAUSED":
            assert (claimed.reason, claimed.leases) == ("PAUSED", [])
            return
        self._recycle()
        self._materialise()
        held = sum(1 for one in self.deliveries if one.state == "LEASED" and one.holder == connection)
        free = max(0, min(requested, capacity - held))
        ready = [one for one in self.deliveries if one.state == "PENDING" and not one.resting][:free]
        assert [lease.event_sequence for lease in claimed.leases] == [one.sequence for one in ready]
        for one, lease in zip(ready, claimed.leases, strict=True):
            one.state, one.holder, one.overdue = "LEASED", connection, False
            one.attempts, one.revision, one.delivery_id = one.attempts + 1, one.revision + 1, lease.delivery_id
            assert (lease.attempts, lease.lease_epoch, lease.attempt_budget) == (one.attempts, one.attempts, one.budget)
            one.proofs.append(lease)
        self.audits["authorized"] += len(ready)
        full = self._pending() == self.window
        expected = "DELIVERED" if ready else "CAPACITY_FULL" if not free else "WINDOW_FULL" if full else "EMPTY"
        assert (claimed.reason, claimed.pending_count) == (expected, self._pending())

    @precondition(lambda self: any(one.proofs for one in self.deliveries))
    @rule(data=st.data(), connection=st.sampled_from(CONNECTIONS))
    def acknowledge(self, data: st.DataObject, connection: str) -> None:
        """A group of ACKs with any proofs that there ever were, current or not, some of them twice."""
        proofs = [(one, proof) for one in self.deliveries for proof in one.proofs]
        group = data.draw(st.lists(st.sampled_from(range(len(proofs))), min_size=1, max_size=4))
        rows = self.scene.acknowledge(self.one, *(proofs[i][1] for i in group), connection_id=connection)
        for (_, delivery_id, code, _, duplicate), (one, proof) in zip(rows, (proofs[i] for i in group), strict=True):
            assert delivery_id == one.delivery_id
            if proof is not one.proofs[-1]:
                assert code == "DELIVERY_LEASE_LOST"
            elif one.state == "ACKED":
                assert (code, duplicate) == (None, True)
            else:
                assert (code, duplicate) == (None, False)
                one.state, one.revision = "ACKED", one.revision + 1
                self.audits["acked"] += 1

    @rule()
    def time_passes(self) -> None:
        """More time than any lease and any pause."""
        for one in self.deliveries:
            if one.state == "LEASED" and not one.overdue:
                self.scene.age_lease(one.delivery_id, seconds=LATER)
                one.overdue = True
            elif one.state == "PENDING" and one.resting:
                self.scene.age_backoff(one.delivery_id, seconds=LATER)
                one.resting = False

    @rule(verb=st.sampled_from(["pause", "resume"]), stale=st.booleans())
    def change_status(self, verb: str, stale: bool) -> None:
        """Pause or resume, with the current revision or an old one."""
        aim = "PAUSED" if verb == "pause" else "ACTIVE"
        if self.status == aim or stale:
            with pytest.raises(psycopg.Error) as refused:
                change(self.scene, verb, self.one, self.revision - stale)
            assert refused.value.sqlstate == ("OB020" if self.status == aim else "OB014")
            return
        _, text, _, _ = change(self.scene, verb, self.one, self.revision)
        self.status, self.revision = aim, self.revision + 1
        assert json.loads(text)["revision"] == self.revision

    @precondition(lambda self: any(one.delivery_id for one in self.deliveries))
    @rule(data=st.data(), additional=st.integers(1, 3), stale=st.booleans())
    def retry(self, data: st.DataObject, additional: int, stale: bool) -> None:
        """Retry any delivery that was ever leased."""
        one = data.draw(st.sampled_from([one for one in self.deliveries if one.delivery_id]))
        revision = one.revision - stale
        if one.state != "EXPIRED" or stale:
            with pytest.raises(psycopg.Error) as refused:
                retry(self.scene, self.one, one.delivery_id, revision=revision, additional=additional)
            assert refused.value.sqlstate == ("OB024" if one.state != "EXPIRED" else "OB014")
            return
        retry(self.scene, self.one, one.delivery_id, revision=revision, additional=additional)
        one.state, one.revision, one.resting = "PENDING", one.revision + 1, False
        one.budget += additional
        self.audits["retried"] += 1

    @invariant()
    def the_database_agrees(self) -> None:
        """Every field of the model, and the number of audit rows of each kind."""
        rows = self.scene.rows(
            "select event_sequence, state, revision, attempts, lease_epoch, attempt_budget, lease_connection_id"
            " from orbit.event_deliveries where subscription_id = %s order by event_sequence",
            self.one,
        )
        assert rows == [
            (one.sequence, one.state, one.revision, one.attempts, one.attempts, one.budget, one.holder)
            for one in self.deliveries
        ]
        found = self.scene.row(
            "select status, revision, cursor_sequence, pending_count from orbit.event_subscriptions"
            " where subscription_id = %s",
            self.one,
        )
        assert found == (self.status, self.revision, self.cursor, self._pending())
        counts = dict(
            self.scene.rows(
                "select action, count(*) from orbit.audit_log"
                " where namespace_id = %s and action like 'event.delivery.%%' group by action",
                self.scene.namespace_id,
            )
        )
        assert counts == {f"event.delivery.{word}": count for word, count in self.audits.items() if count}

    def teardown(self) -> None:
        """Every rule of section 28.4 holds at the end."""
        assert_invariants(self.connection)

    def _pending(self) -> int:
        return sum(1 for one in self.deliveries if one.state != "ACKED")

    def _recycle(self) -> None:
        for one in self.deliveries:
            if one.state == "LEASED" and one.overdue:
                exhausted = one.attempts >= one.budget
                one.state, one.revision = "EXPIRED" if exhausted else "PENDING", one.revision + 1
                one.resting = not exhausted

    def _materialise(self) -> None:
        if self._pending() >= self.window:
            return
        for sequence, kind in [row for row in self.journal if row[0] > self.cursor][:100]:
            if self.types is None or kind in self.types:
                if self._pending() >= self.window:
                    return
                self.deliveries.append(Modelled(sequence, self.budget))
            self.cursor = sequence


@contextmanager
def _machine(database: TestDatabase) -> Generator[type[DeliveryMachine]]:
    with psycopg.connect(database.dsn, autocommit=True) as connection:
        yield type("Machine", (DeliveryMachine,), {"connection": connection})


@pytest.mark.req(
    "orbit:T-P04", "orbit:T-P02", "orbit:T-P03", "orbit:SUB-18", "orbit:SUB-19", "orbit:LSE-23", "orbit:LSE-32"
)
def test_deliveries_and_subscriptions_follow_their_automata(orbit_database: TestDatabase) -> None:
    """Random claims, ACKs with any proof, time, pauses, retries and results."""
    with _machine(orbit_database) as machine:
        run_machine(
            machine,
            settings=settings(
                max_examples=25, stateful_step_count=25, deadline=None, suppress_health_check=[HealthCheck.too_slow]
            ),
        )
