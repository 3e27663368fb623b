"""Metering with its peers: execution and gateway in memory, the consumer and the workers on a real database.

```python
with running_metering(metering_database) as metering:
    attempt = metering.new_attempt()
    metering.accept(attempt.end(), attempt.report("provider_usage", "tokens", "available", "12"))
    metering.work()
    assert metering.lane(attempt)["state"] == "applied"
```
"""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, LiteralString

from psycopg.rows import dict_row

from oceanway.metering.lanes import COST, ELIGIBILITY
from oceanway.metering.store import Backoff
from oceanway.metering.worker import Runner, WorkerSettings, build_runners
from seapost.contracts.canonical import encode
from seapost.database.pool import open_sync_pool
from seapost.model.outcome import Acknowledged
from tests.kit.oceanway.metering_checks import ALL_CHECKS, FACT_TABLES
from tests.kit.oceanway.metering_consumer import Consumer, consuming
from tests.kit.oceanway.metering_facts import USAGE, Attempt, Told, new_attempt
from tests.kit.oceanway.metering_peers import Peers

if TYPE_CHECKING:
    from psycopg import Connection

    from oceanway.metering.documents import Document
    from seapost.database.pool import SyncPool
    from seapost.testing.databases import TestDatabase

AT_ONCE: Final = Backoff(timedelta(0), timedelta(0))
SETTINGS: Final = WorkerSettings(lease=timedelta(minutes=5), backoff=AT_ONCE)

_OF_ATTEMPT: Final[dict[str, LiteralString]] = {
    "work": "select document from metering.work where execution_attempt_id = %s order by work_generation",
    "work_finish": (
        "select f.document from metering.work_finish as f join metering.work as w using (metering_input_work_ref)"
        " where w.execution_attempt_id = %s order by w.lane_kind, w.work_generation"
    ),
    "work_blocked": (
        "select b.document from metering.work_blocked as b join metering.work as w using (metering_input_work_ref)"
        " where w.execution_attempt_id = %s order by w.work_generation, b.attempt_number"
    ),
    "eligibility_conflict_evidence": (
        "select e.document from metering.eligibility_conflict_evidence as e"
        " join metering.work as w using (metering_input_work_ref) where w.execution_attempt_id = %s"
    ),
    "cost_conflict_evidence": (
        "select e.document from metering.cost_conflict_evidence as e"
        " join metering.work as w using (metering_input_work_ref) where w.execution_attempt_id = %s"
    ),
    "eligibility_decision": (
        "select d.document from metering.eligibility_decision as d"
        " join metering.work as w using (metering_input_work_ref)"
        " where w.execution_attempt_id = %s order by w.work_generation"
    ),
    "meter_event": (
        "select document from metering.meter_event where execution_attempt_id = %s order by charge_dimension_key"
    ),
    "cost_processing": (
        "select c.document from metering.cost_processing as c join metering.work as w using (metering_input_work_ref)"
        " where w.execution_attempt_id = %s order by w.work_generation"
    ),
    "provider_cost_fact": "select document from metering.provider_cost_fact where execution_attempt_id = %s order by 1",
    "settlement_input_snapshot": (
        "select document from metering.settlement_input_snapshot where execution_attempt_id = %s"
        " order by charge_dimension_key, settlement_input_state_version"
    ),
}


@dataclass
class Metering:
    """Everything of metering, over one database.

    Attributes:
        eligibility, cost: the runners; what fails is tried again at once.
        admin: a superuser's session, in autocommit.
    """

    database: TestDatabase
    pool: SyncPool
    peers: Peers
    consumer: Consumer
    eligibility: Runner
    cost: Runner
    admin: Connection[Any] = field(repr=False)

    def new_attempt(self, **options: Any) -> Attempt:
        """Make an attempt that the peers know."""
        return self.peers.add(new_attempt(**options))

    def usable(self, value: str = "7", **charges: str) -> Attempt:
        """Make an attempt that succeeded and whose usage is available; its work is due."""
        attempt = self.new_attempt(charges=charges or {"generation": "tokens"})
        self.accept(attempt.end(), attempt.report(USAGE, "tokens", "available", value))
        return attempt

    def costly(self, value: str = "1.25") -> Attempt:
        """Make an attempt with an available cost; its work is due."""
        attempt = self.new_attempt()
        self.accept(attempt.report(COST, "spend", "available", value))
        return attempt

    def accept(self, *told: Told) -> None:
        """Deliver events in one batch; all of them must be acknowledged."""
        for outcome in self.consumer.deliver(*told):
            assert isinstance(outcome, Acknowledged), outcome

    def receipt(self, told: Told) -> Document:
        """The receipt of an event, delivered (again)."""
        document: Document = json.loads(self.consumer.accept(told))
        return document

    def work(self) -> int:
        """Run one step of each runner; how many works they claimed."""
        return self.eligibility.step(500) + self.cost.step(500)

    def work_until_idle(self) -> None:
        """Run steps until nothing is due; nothing may be blocked meanwhile."""
        for _ in range(50):
            if not self.work():
                return
        raise AssertionError("The works do not come to an end")

    def lane(self, attempt: Attempt, dimension: str | None = None) -> dict[str, Any]:
        """The eligibility lane of an attempt, or the cost lane of a dimension."""
        with self.admin.cursor(row_factory=dict_row) as cursor:
            row = cursor.execute(
                "select l.* from metering.lane as l where l.execution_attempt_id = %s and l.lane_kind = %s"
                " and l.source_evidence_dimension_key = %s",
                (attempt.ref, COST if dimension else ELIGIBILITY, dimension or ""),
            ).fetchone()
        assert row is not None
        return row

    def documents(self, table: str, attempt: Attempt) -> list[Document]:
        """The documents of an attempt in one table."""
        return [json.loads(row[0]) for row in self.admin.execute(_OF_ATTEMPT[table], (attempt.ref,))]

    def manifest(self, attempt: Attempt) -> bytes:
        """The manifest of an attempt in the bytes that the fence keeps."""
        return encode(attempt.manifest)

    def current(self, attempt: Attempt) -> list[Document]:
        """The current snapshots of an attempt, by charge dimension."""
        rows = self.admin.execute(
            "select s.document from metering.settlement_pointer as p"
            " join metering.settlement_input_snapshot as s using (settlement_input_snapshot_ref)"
            " where p.execution_attempt_id = %s order by p.charge_dimension_key",
            (attempt.ref,),
        )
        return [json.loads(row[0]) for row in rows]

    def events(self, dimension: str) -> list[Document]:
        """The envelopes that announce the snapshots of a dimension, oldest first."""
        rows = self.admin.execute(
            "select envelope from seapost.event where aggregate_id = %s order by aggregate_revision", (dimension,)
        )
        return [json.loads(row[0]) for row in rows]

    def watermarks(self, attempt: Attempt) -> list[tuple[str, str, int]]:
        """Source, dimension and version of every watermark."""
        return self.admin.execute(
            "select source_kind, dimension_key, state_version from metering.watermark where execution_attempt_id = %s"
            " order by 1, 2",
            (attempt.ref,),
        ).fetchall()

    def expire(self, attempt: Attempt) -> None:
        """Let the leases of an attempt's works end now, as time would."""
        self.admin.execute(
            "update metering.lane set available_at = clock_timestamp(), lease_expires_at ="
            " case when lease_owner is not null then clock_timestamp() end where execution_attempt_id = %s",
            (attempt.ref,),
        )

    def retire(self, attempt: Attempt) -> None:
        """Let nobody work on an attempt any more: a blocked one would be tried in every later step."""
        self.admin.execute(
            "update metering.lane set available_at = '2100-01-01Z' where execution_attempt_id = %s", (attempt.ref,)
        )

    def fail_at(self, place: str | None) -> None:
        """Make writes fail: see the fault tests, which put the triggers there."""
        self.admin.execute("delete from public.fault")
        if place is not None:
            self.admin.execute("insert into public.fault values (%s)", (place,))

    def facts_digest(self) -> list[tuple[int, int]]:
        """Count and sum over the rows of every table but that of the lanes, and of receipts and events."""
        return [self.admin.execute(query).fetchone() or (0, 0) for query in FACT_TABLES]

    def check(self) -> None:
        """Fail unless every rule that holds at all times holds now."""
        broken = self.admin.execute(ALL_CHECKS).fetchall()
        assert not broken, broken


@contextmanager
def running_metering(database: TestDatabase, settings: WorkerSettings = SETTINGS) -> Generator[Metering]:
    """Run metering with peers that know nothing yet."""
    peers = Peers()
    with ExitStack() as stack:
        consumer = stack.enter_context(consuming(database, peers))
        pool = stack.enter_context(
            open_sync_pool(database.dsn, part="works", role="oceanway_metering_service", size_max=3)
        )
        eligibility, cost = build_runners(pool, peers, settings)
        admin = database.connect(autocommit=True)
        yield Metering(database, pool, peers, consumer, eligibility, cost, admin)
