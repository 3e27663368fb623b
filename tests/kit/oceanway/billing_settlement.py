"""Billing after the finalization, over one database: consumers, workers and commands, with their owners in memory.

```python
with running_billing(billing_database) as billing:
    run = billing.new_run(deposit="100", reserved="10")
    billing.accept(run.measure("3"))
    billing.finalize(run)
    billing.accept(run.measure("4"))
    billing.work()
    assert billing.dimension(run)["settled_amount"] == 4
```

A quantity of 1 costs 1 EUR.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, LiteralString
from uuid import uuid4

from psycopg.rows import dict_row

from oceanway.billing.admission import PriceKey, admit, deposit, enter_price, open_account
from oceanway.billing.catch_up.consumer import CONSUMER, DESTINATION, build_catch_up_inbox
from oceanway.billing.catch_up.worker import CatchUpRunner, Pace
from oceanway.billing.finalization import coordinator
from oceanway.billing.finalization.worker import FinalizationRunner
from oceanway.billing.finalization.worker import Pace as FinalizationPace
from oceanway.contracts.events.execution import RunFinalizationClosed
from seapost.contracts.envelope import read_envelope
from seapost.database.pool import open_pool, open_sync_pool
from seapost.inbox.deciding import Deciding
from seapost.inbox.receipts import ReceiptSubject
from seapost.inbox.receive import Receiving
from seapost.inbox.received import Received
from seapost.model.delivery import Claim, Fence
from seapost.model.delivery_set import DefinitionQuad, Member
from seapost.model.outcome import Acknowledged, Outcome
from seapost.transport.protocol import pack
from tests.kit.oceanway.billing_settlement_facts import NOW, Run, Told
from tests.kit.oceanway.billing_settlement_peers import Peers

if TYPE_CHECKING:
    from psycopg import Connection

    from seapost.database.pool import SyncPool
    from seapost.inbox.deciding import DecidingInbox
    from seapost.testing.databases import TestDatabase

ROLE: Final = "billing_settlement_test"
AT_ONCE: Final = Pace(timedelta(minutes=5), timedelta(0), timedelta(0))
PRICE: Final = PriceKey("prices", "1", "token", "EUR")
STEPS_MAX: Final = 40
_ROLES: Final = "oceanway_billing_service, oceanway_billing_consumer, oceanway_billing_reader, seapost_consumer"


@dataclass
class Consumer:
    """One inbox; every call is one delivery or one batch of them."""

    runner: asyncio.Runner = field(repr=False)
    receiving: Receiving = field(repr=False)
    definition: DefinitionQuad
    destination: str
    consumer: str
    receipt_type: str

    def deliver(self, *told: Told) -> list[Outcome]:
        """Hand events over in one batch; one outcome for each."""
        (parcel,) = pack([self._claim(one) for one in told])
        return self.runner.run(self.receiving.receive(parcel.request))

    def _claim(self, told: Told) -> Claim:
        return Claim(
            destination=self.destination,
            fence=Fence(told.event_id, 41, uuid4()),
            attempt_number=1,
            failure_count=0,
            lost_count=0,
            company=1,
            member=Member(
                1,
                self.definition,
                told.event_type,
                "1",
                self.destination,
                self.consumer,
                mandatory=True,
                receipt_type=self.receipt_type,
                receipt_schema_version="1",
                projection=None,
            ),
            event_digest=sha256(told.envelope).digest(),
            envelope=told.envelope,
            available_at=datetime(2026, 1, 1, tzinfo=UTC),
        )


@dataclass
class Billing:
    """Everything of billing.

    Attributes:
        pool: as the runtime roles.
        admin: a superuser's session, in autocommit.
        finalizer, catcher: the two runners; what fails is tried again at once.
    """

    database: TestDatabase
    pool: SyncPool
    peers: Peers
    admin: Connection[Any] = field(repr=False)
    inputs: Consumer
    coordinator: DecidingInbox
    finalizer: FinalizationRunner
    catcher: CatchUpRunner

    def new_run(self, *, funds: str = "100", reserved: str = "10", keys: Sequence[str] = ("tokens",)) -> Run:
        """Make a run with an account of its own, and admit it."""
        run = self.peers.add(Run(keys=tuple(keys)))
        with self.pool.connection() as connection:
            _ = open_account(connection, run.account, "EUR")
            _ = deposit(connection, f"deposit-{run.account}", run.account, Decimal(funds))
        self.admit(run, reserved)
        return run

    def unbound_run(self) -> Run:
        """Make a run with an account, and do not admit it yet."""
        run = self.peers.add(Run())
        with self.pool.connection() as connection:
            _ = open_account(connection, run.account, "EUR")
            _ = deposit(connection, f"deposit-{run.account}", run.account, Decimal(100))
        return run

    def admit(self, run: Run, reserved: str = "10") -> None:
        """Admit a run."""
        with self.pool.connection() as connection:
            _ = admit(connection, run.admission(reserved))

    def pay(self, run: Run, amount: str) -> None:
        """Book another deposit."""
        with self.pool.connection() as connection:
            _ = deposit(connection, uuid4().hex, run.account, Decimal(amount))

    def accept(self, *told: Told) -> list[bytes]:
        """Deliver inputs that must be acknowledged; their receipts."""
        outcomes = self.inputs.deliver(*told)
        receipts = [one.receipt for one in outcomes if isinstance(one, Acknowledged)]
        assert len(receipts) == len(told), outcomes
        return receipts

    def close(self, run: Run) -> None:
        """Tell the coordinator that the run is closed: its handler, in a transaction of its own."""
        told = run.closed()
        envelope = read_envelope(told.envelope)
        subject = ReceiptSubject(str(told.event_id), told.event_type, "1", envelope.digest.hex())
        common = self.coordinator.decisions.common(subject, NOW)
        context = Deciding(
            received=Received.of(envelope, 1),
            envelope=told.envelope,
            envelope_sha256=envelope.digest.hex(),
            committed_at=NOW,
            prepared=None,
            common=common,
        )
        with self.pool.connection() as connection:
            _ = coordinator.apply_closure(connection, RunFinalizationClosed.decode(envelope.payload), context)

    def finalize(self, run: Run) -> None:
        """Close the run and finalize it with the inputs that are known."""
        self.close(run)
        self.finalize_known()
        assert self.fence(run)["state"] == "finalized", self.finalizer.waiting

    def finalize_known(self) -> None:
        """Let the finalization's worker run until nothing is due."""
        for _ in range(STEPS_MAX):
            if not self.finalizer.step(50):
                return
        raise AssertionError(self.finalizer.waiting)

    def work(self) -> None:
        """Let the catch-up's worker run until nothing is due."""
        for _ in range(STEPS_MAX):
            if not self.catcher.step(50):
                return
        raise AssertionError(self.catcher.waiting)

    def row(self, query: LiteralString, *arguments: object) -> dict[str, Any]:
        """Exactly one row."""
        with self.admin.cursor(row_factory=dict_row) as cursor:
            row = cursor.execute(query, arguments).fetchone()
        assert row is not None
        return row

    def rows(self, query: LiteralString, *arguments: object) -> list[dict[str, Any]]:
        """Rows as dictionaries."""
        with self.admin.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(query, arguments).fetchall()

    def fence(self, run: Run) -> dict[str, Any]:
        """The finalization fence."""
        return self.row("select * from billing.finalization_fence where billing_reservation_id = %s", run.reservation)

    def catch_up(self, run: Run, key: str | None = None) -> dict[str, Any]:
        """The catch-up fence of a dimension."""
        query = "select * from billing.catch_up_fence where settlement_dimension_id = %s"
        return self.row(query, run.dimension(key))

    def dimension(self, run: Run, key: str | None = None) -> dict[str, Any]:
        """The state of a dimension."""
        query = "select * from billing.dimension_state where settlement_dimension_id = %s"
        return self.row(query, run.dimension(key))

    def available(self, run: Run) -> Decimal:
        """What the account has."""
        query = "select available from billing.account where billing_account_id = %s"
        return self.row(query, run.account)["available"]

    def events(self, run: Run) -> list[tuple[str, dict[str, Any]]]:
        """Billing's own events about a run, in the order of their identifiers: type and envelope."""
        rows = self.rows(
            "select event_type, convert_from(envelope, 'UTF8')::jsonb as body from seapost.event"
            " where convert_from(envelope, 'UTF8')::jsonb #>> '{payload,runId}' = %s order by event_id",
            run.run,
        )
        return [(row["event_type"], row["body"]) for row in rows]

    def require_balanced(self) -> None:
        """Every reservation and account adds up, to the last decimal."""
        assert self.rows("select * from billing.audit_balance") == []

    def require_settled(self, run: Run, key: str | None = None) -> None:
        """The dimension rests on its watermark, and is caught up with it (TST-21)."""
        key = key or run.keys[0]
        fence, state = self.catch_up(run, key), self.dimension(run, key)
        watermark = self.row(
            "select * from billing.settlement_inbox where settlement_dimension_id = %s", run.dimension(key)
        )
        newest = run.snapshots[key][-1]
        assert watermark["settlement_input_snapshot_ref"] == newest.settlement_input_snapshot_ref
        assert state["last_evaluated"]["settlementInputSnapshotRef"] == newest.settlement_input_snapshot_ref
        assert fence["state"] == "caught_up", fence
        accounted = state["settled_amount"] + state["waived_amount"] + state["exposure_amount"]
        assert accounted == Decimal(newest.quantity), state
        self.require_balanced()


def prepare_role(database: TestDatabase) -> None:
    """Make the role of billing's processes."""
    with database.connect(autocommit=True) as connection:
        connection.execute(
            f"do $$ begin create role {ROLE} nologin;"
            " exception when duplicate_object or unique_violation then null; end $$"
        )
        connection.execute(f"grant {_ROLES} to {ROLE}")


@contextmanager
def running_billing(database: TestDatabase) -> Generator[Billing]:
    """Run billing in the roles of its processes."""
    prepare_role(database)
    peers = Peers()
    with ExitStack() as stack:
        runner = stack.enter_context(asyncio.Runner())
        opening = AsyncExitStack()
        stack.callback(lambda: runner.run(opening.aclose()))
        pool = stack.enter_context(open_sync_pool(database.dsn, part="works", role=ROLE, size_max=4))
        admin = stack.enter_context(database.connect(autocommit=True))
        with pool.connection() as connection:
            _ = enter_price(connection, PRICE, Decimal(1))
        row = admin.execute(
            "select delivery_set_version, encode(definition_digest, 'hex')"
            " from seapost.delivery_set_version where status = 'active'"
        ).fetchone()
        assert row is not None
        definition = DefinitionQuad(row[0], "1", "jcs-sha256-v1", row[1])

        async def opened(inbox: DecidingInbox) -> Receiving:
            waiting = await opening.enter_async_context(open_pool(database.dsn, part="inbox", role=ROLE, size_max=2))
            threads = opening.enter_context(open_sync_pool(database.dsn, part="inbox", role=ROLE, size_max=2))
            return await opening.enter_async_context(Receiving(inbox, waiting, threads))

        def consumer(inbox: DecidingInbox, destination: str, name: str, receipt: str) -> Consumer:
            return Consumer(runner, runner.run(opened(inbox)), definition, destination, name, receipt)

        yield Billing(
            database,
            pool,
            peers,
            admin,
            inputs=consumer(
                build_catch_up_inbox(peers), DESTINATION, CONSUMER, "BillingSettlementCatchUpConsumerReceipt"
            ),
            coordinator=coordinator.build_coordinator_inbox(peers),
            finalizer=FinalizationRunner(
                pool, peers, gate=False, pace=FinalizationPace(timedelta(minutes=5), timedelta(0), timedelta(0))
            ),
            catcher=CatchUpRunner(pool, peers, pace=AT_ONCE),
        )
