"""Billing's finalization as its processes run it: the consumers, the worker and the reads, over one database."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Generator, Mapping
from contextlib import AsyncExitStack, ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, LiteralString
from uuid import UUID, uuid4

from oceanway.billing import admission
from oceanway.billing import store_finalization as store
from oceanway.billing.consumers import build_inboxes
from oceanway.billing.finalization.claimed import ClaimedWork
from oceanway.billing.finalization.deciding import Decider, Ending
from oceanway.billing.finalization.gate import ROUTES, CommandChain, close_gate, open_gate
from oceanway.billing.finalization.worker import FinalizationRunner, Pace, write_ending
from oceanway.billing.resolution.command import ResolutionCommand, apply_resolution
from seapost.database.pool import SyncPool, open_pool, open_sync_pool
from seapost.inbox.receive import Receiving
from seapost.model.delivery import Claim, Fence
from seapost.model.delivery_set import DefinitionQuad, Member
from seapost.model.outcome import Acknowledged, Outcome
from seapost.transport.protocol import pack
from tests.kit.oceanway.billing_finalization_commands import GATEWAY, chain_for, grant_key
from tests.kit.oceanway.billing_finalization_peers import Peers
from tests.kit.oceanway.billing_finalization_runs import MOMENT, Run, Told, new_run

if TYPE_CHECKING:
    from psycopg import Connection

    from seapost.testing.databases import TestDatabase

LEASE: Final = timedelta(seconds=60)
ROLE: Final = "billing_test_consumer"
CHAIN: Final = CommandChain(frozenset(ROUTES), decision_store=True, command_handler=True)
AT_ONCE: Final = Pace(retry_base=timedelta(0), retry_longest=timedelta(0))
_RECEIPTS: Final = {
    "billing_finalization_coordinator": "BillingFinalizationCoordinatorConsumerReceipt",
    "billing_settlement_catch_up": "BillingSettlementCatchUpConsumerReceipt",
}


class Billing:
    """One billing, and the owners that it asks.

    Attributes:
        admin: a session that may look at and break everything.
        waiting: what the runner of the last `work` counted.
    """

    def __init__(
        self,
        database: TestDatabase,
        pool: SyncPool,
        peers: Peers,
        runner: asyncio.Runner,
        receiving: Mapping[str, Receiving],
    ) -> None:
        self.database = database
        self.pool = pool
        self.peers = peers
        self.admin: Connection[Any] = database.connect(autocommit=True)
        self._runner = runner
        self._receiving = receiving
        row = self.admin.execute(
            "select delivery_set_version, encode(definition_digest, 'hex')"
            " from seapost.delivery_set_version where status = 'active'"
        ).fetchone()
        assert row is not None
        self._definition = DefinitionQuad(row[0], "1", "jcs-sha256-v1", row[1])
        self.waiting: dict[str, int] = {}

    def deliver(self, *told: Told) -> list[Outcome]:
        """Hand events of one destination over in one batch; one outcome for each."""
        (parcel,) = pack([self._claim(one) for one in told])
        return self._runner.run(self._receiving[told[0].destination].receive(parcel.request))

    def accept(self, *told: Told) -> list[bytes]:
        """Deliver events one after the other that must all be acknowledged; their receipts."""
        receipts: list[bytes] = []
        for one in told:
            (outcome,) = self.deliver(one)
            assert isinstance(outcome, Acknowledged), outcome
            receipts.append(outcome.receipt)
        return receipts

    def account(self, money: str = "1000") -> str:
        """Open an account with some money."""
        account = f"account-{uuid4().hex}"
        with self.pool.connection() as connection:
            admission.open_account(connection, account, "EUR")
            if Decimal(money):
                admission.deposit(connection, f"deposit-{account}", account, Decimal(money))
        return account

    def admitted(self, *, dimensions: int = 1, attempts: int = 1, amount: str = "10", money: str = "1000") -> Run:
        """Admit a run of one step, with so many attempts and dimensions, on an account of its own."""
        keys = tuple(f"key-{number}" for number in range(dimensions))
        run = new_run(
            {"step-1": keys},
            {f"attempt-{number}": "step-1" for number in range(attempts)},
            account=self.account(money),
            amount=amount,
        )
        self.peers.runs[run.run_id] = run
        with self.pool.connection() as connection:
            assert admission.admit(connection, run.admission())
        return run

    def work(self, *, gate: bool = False, rounds: int = 20) -> FinalizationRunner:
        """Run works until there are none to lease."""
        runner = FinalizationRunner(self.pool, self.peers, gate=gate, pace=AT_ONCE)
        for _ in range(rounds):
            if not runner.step(50):
                break
        return runner

    def once(self, *, gate: bool = False) -> FinalizationRunner:
        """Run one step."""
        return self.work(gate=gate, rounds=1)

    def decided(self, run: Run, *, gate: bool = False, lease: timedelta = LEASE) -> Ending:
        """Lease the work of a run and decide on it, without writing what became of it."""
        self.alone(run)
        with self.pool.connection() as connection:
            [row] = store.claim_works(connection, "worker-1", 10, lease)
        prices = {admission.PriceKey("prices", "1", "token", "EUR"): Decimal("0.25")}
        [ending] = Decider(self.peers, lambda _: prices, gate=gate).decide([ClaimedWork.of(row)], MOMENT)
        return ending

    def write(self, ending: Ending) -> None:
        """Write what became of a work, as the worker does."""
        with self.pool.connection() as connection:
            write_ending(connection, ending)

    def alone(self, run: Run) -> Run:
        """Let only the work of this run be due, and nothing that other tests left."""
        self.admin.execute(
            "update billing.finalization_fence as f set available_at = case when f.billing_reservation_id = %s"
            " then clock_timestamp() else 'infinity' end where f.state = 'pending'",
            (run.reservation,),
        )
        return run

    def resolve(self, command: ResolutionCommand, *, caller: str = GATEWAY, now: datetime | None = None) -> Any:  # noqa: ANN401 - the fact
        """Apply a resolution command as the process does that receives commands."""
        with self.database.connect(ROLE) as connection, connection.transaction():
            return apply_resolution(connection, command, caller=caller, grant_keys=[grant_key().public_key()], now=now)

    def in_case(self, *, dimensions: int = 1) -> Run:
        """A run whose finalization is in its first case, because execution contradicts itself."""
        run = self.admitted(dimensions=dimensions)
        self.accept(*(run.measure("attempt-0", f"key-{number}", "4") for number in range(dimensions)), run.close())
        run.in_conflict()
        self.work(gate=True)
        assert self.state(run) == "reconciliation_required"
        return run

    def requested(self, run: Run) -> dict[str, Any]:
        """The newest case requested event of a run."""
        kind = "billing.finalization-reconciliation.case-requested@1"
        return [event for event in self.events(run) if event["eventType"] == kind][-1]

    def resolved(self, run: Run) -> Told:
        """Resolve the case of a run; the event for the coordinator."""
        self.resolve(chain_for(self.requested(run)).command())
        return self.resolution_event(run)

    def resolution_event(self, run: Run) -> Told:
        """The newest resolution event of a run, for the coordinator."""
        kind = "billing.finalization-reconciliation-resolution.applied@1"
        event = [event for event in self.events(run) if event["eventType"] == kind][-1]
        return self.told(event, "billing_finalization_coordinator")

    def deliveries(self, event: dict[str, Any]) -> list[str]:
        """Where an event goes."""
        rows = self.admin.execute(
            "select destination from seapost.delivery where event_id = %s order by destination", (event["eventId"],)
        )
        return [row[0] for row in rows]

    def open_gate(self) -> None:
        """Enable the producer of reconciliation cases."""
        open_gate(self.admin, CHAIN, actor="tests")

    def close_gate(self) -> None:
        """Disable it."""
        close_gate(self.admin, actor="tests")

    def fence(self, run: Run) -> dict[str, Any]:
        """The row of a run's fence."""
        return self.one(
            "select to_jsonb(f) from billing.finalization_fence as f where f.billing_reservation_id = %s",
            run.reservation,
        )

    def state(self, run: Run) -> str:
        """The state of a run's fence."""
        return str(self.fence(run)["state"])

    def finishes(self, run: Run) -> list[str]:
        """Outcomes of a run's works, oldest first."""
        rows = self.admin.execute(
            "select f.outcome from billing.finalization_work_finish as f join billing.finalization_work as w"
            " using (billing_finalization_work_ref) where w.billing_finalization_fence_id = %s"
            " order by w.work_generation",
            (run.fence,),
        )
        return [row[0] for row in rows]

    def ledger(self, run: Run) -> list[tuple[str, str | None, str]]:
        """Kind, dimension and amount of a run's bookings, in order."""
        return self.admin.execute(
            "select e.kind, e.settlement_dimension_id, trim_scale(e.amount)::text from billing.ledger_entry as e"
            " where e.billing_reservation_id = %s order by e.kind, e.settlement_dimension_id",
            (run.reservation,),
        ).fetchall()

    def available(self, run: Run) -> str:
        """What the account of a run can still spend."""
        found = admission.read_account(self.admin, run.manifest.billing_account_id)
        assert found is not None
        return found.available

    def events(self, run: Run) -> list[dict[str, Any]]:
        """What billing has told about a run, oldest first."""
        rows = self.admin.execute(
            "select e.envelope from seapost.event as e"
            " where convert_from(e.envelope, 'UTF8')::jsonb #>> '{payload,runId}' = %s order by e.event_id",
            (run.run_id,),
        )
        return [json.loads(row[0]) for row in rows]

    def told(self, event: dict[str, Any], destination: str) -> Told:
        """An event of billing on its way to one of its destinations."""
        row = self.admin.execute(
            "select envelope from seapost.event where event_id = %s", (event["eventId"],)
        ).fetchone()
        assert row is not None
        return Told(UUID(event["eventId"]), event["eventType"], destination, bytes(row[0]))

    def balanced(self) -> None:
        """Fail unless the books balance and every delivery is in one place."""
        assert self.admin.execute("select * from billing.audit_balance").fetchall() == []
        self.database.assert_places()

    def one(self, query: LiteralString, *arguments: object) -> Any:  # noqa: ANN401 - whatever the query asks for
        """The one value of a query."""
        row = self.admin.execute(query, arguments).fetchone()
        assert row is not None
        return row[0]

    def digest(self) -> str:
        """A digest of everything that billing and the kernel hold: whether a single row is new or changed."""
        return str(self.one("select public.everything()"))

    def _claim(self, told: Told) -> Claim:
        return Claim(
            destination=told.destination,
            fence=Fence(told.event_id, 41, uuid4()),
            attempt_number=1,
            failure_count=0,
            lost_count=0,
            company=1,
            member=Member(
                1,
                self._definition,
                told.event_type,
                "1",
                told.destination,
                f"{told.destination}_consumer",
                mandatory=True,
                receipt_type=_RECEIPTS[told.destination],
                receipt_schema_version="1",
                projection=None,
            ),
            event_digest=sha256(told.envelope).digest(),
            envelope=told.envelope,
            available_at=datetime(2026, 1, 1, tzinfo=UTC),
        )


@contextmanager
def running_billing(database: TestDatabase, peers: Peers | None = None) -> Generator[Billing]:
    """Run billing in the roles of its processes; `peers` lets several of them ask the same owners."""
    peers = Peers() if peers is None else peers
    with database.connect(autocommit=True) as connection:
        connection.execute(
            f"do $$ begin create role {ROLE} nologin;"
            " exception when duplicate_object or unique_violation then null; end $$"
        )
        connection.execute(f"grant oceanway_billing_consumer, oceanway_billing_reader, seapost_consumer to {ROLE}")
        connection.execute(EVERYTHING)
    _prices(database)

    async def opened(stack: AsyncExitStack) -> dict[str, Receiving]:
        pool = await stack.enter_async_context(open_pool(database.dsn, part="inbox", role=ROLE, size_max=2))
        threads = stack.enter_context(open_sync_pool(database.dsn, part="inbox", role=ROLE, size_max=2))
        return {
            inbox.destination: await stack.enter_async_context(Receiving(inbox, pool, threads))
            for inbox in build_inboxes(peers)
        }

    with ExitStack() as stack:
        runner = stack.enter_context(asyncio.Runner())
        opening = AsyncExitStack()
        receiving = runner.run(opened(opening))
        stack.callback(lambda: runner.run(opening.aclose()))
        pool = stack.enter_context(
            open_sync_pool(database.dsn, part="work", role="oceanway_billing_service", size_max=3)
        )
        yield Billing(database, pool, peers, runner, receiving)


def _prices(database: TestDatabase) -> None:
    with database.connect() as connection:
        key = admission.PriceKey("prices", "1", "token", "EUR")
        admission.enter_price(connection, key, Decimal("0.25"))
        connection.commit()


EVERYTHING: Final = """
create or replace function public.everything() returns text language plpgsql as $$
declare
    v_table text;
    v_part text;
    v_all text := '';
begin
    for v_table in
        select c.oid::regclass::text from pg_class as c
        where c.relnamespace in ('billing'::regnamespace, 'seapost'::regnamespace) and c.relkind = 'r' order by 1
    loop
        execute format('select md5(string_agg(t::text, chr(10) order by t::text)) from %s as t', v_table) into v_part;
        v_all := v_all || v_table || coalesce(v_part, '-');
    end loop;
    return md5(v_all);
end $$;
"""
