"""A small day, played to its end on a pipeline: the same waves, operator, ledger and audit as the demo's."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psycopg

from oceanway.billing import admission as billing
from oceanway.billing.finalization.gate import ROUTES, CommandChain, open_gate
from oceanway.demo import staging, store_day, waves
from oceanway.demo.audit import Audit, audit
from oceanway.demo.ledger import LedgerWriter, prices
from oceanway.demo.operator import Operator
from oceanway.demo.plan import CURRENCY, Day
from oceanway.installation.layout import Database

if TYPE_CHECKING:
    from oceanway.demo.staging import StagedRun
    from tests.kit.oceanway.pipeline import Pipeline

ROUNDS_MAX: Final = 200


@dataclass(slots=True)
class PlayedDay:
    """A day on a pipeline; between two waves everything that is due is done."""

    pipeline: Pipeline
    day: Day
    folder: Path
    staged: list[StagedRun] = field(init=False)
    sessions: waves.Sessions = field(init=False)

    def play(self) -> Audit:
        """Every wave, every late word, every case; then the audit."""
        path = self.folder / "ledger.jsonl"
        with ExitStack() as stack:

            def session(database: Database) -> psycopg.Connection[tuple[object, ...]]:
                dsn = self.pipeline.databases[database].dsn
                return stack.enter_context(psycopg.connect(dsn, autocommit=True))

            self.sessions = waves.Sessions(
                billing=session(Database.BILLING),
                core=session(Database.CORE),
                execution=session(Database.EXECUTION),
                gateway=session(Database.GATEWAY),
                metering=session(Database.METERING),
            )
            writer = stack.enter_context(LedgerWriter(path))
            writer.day(self.day.seed, len(self.day.runs))
            self._open_books()
            self._open_gate()
            operator = Operator(self.sessions, session(Database.CORE), writer)
            self.staged = [staging.stage(run) for run in self.day.runs]
            for run in self.staged:
                operator.knows(run)
            for wave in waves.WAVES:
                wave(self.sessions, self.staged)
                self.pipeline.settle()
            for wave in waves.WAVES:  # again, as a driver does that was interrupted
                wave(self.sessions, self.staged)
            self._end(operator)
        return audit({name.value: one.dsn for name, one in self.pipeline.databases.items()}, path)

    def _end(self, operator: Operator) -> None:
        """Contradictions, cases and late words, until nothing is left to do."""
        held = [run for run in self.staged if run.plan.is_held]
        revised = [run for run in self.staged if run.plan.is_revised]
        watch = self.sessions.billing
        for _ in range(ROUNDS_MAX):
            held = waves.contradict(self.sessions, held)
            self.pipeline.settle()
            acted = operator.step()
            self.pipeline.settle()
            billed = store_day.finalized(watch, [run.run_id for run in revised])
            due = [run for run in revised if run.run_id in billed]
            disputed = waves.dispute(self.sessions, due)
            waves.revise(self.sessions, due)
            revised = [run for run in revised if run.run_id not in billed]
            self.pipeline.settle()
            waves.concede(self.sessions, disputed)
            self.pipeline.settle()
            left = held or revised or acted or operator.waits() or store_day.unfinished(watch)
            if not left and not store_day.catching_up(watch)[0]:
                return
        raise AssertionError(f"the day did not end after {ROUNDS_MAX} rounds")

    def _open_gate(self) -> None:
        """Let contradictions become cases: the operator has the whole chain of commands."""
        chain = CommandChain(frozenset(ROUTES), decision_store=True, command_handler=True)
        with self.pipeline.connect(Database.BILLING) as connection:
            open_gate(connection, chain, actor="test")
        self.pipeline.start_works()

    def _open_books(self) -> None:
        session = self.sessions.billing
        for (book, version), unit, price in prices():
            billing.enter_price(session, billing.PriceKey(book, version, unit, CURRENCY), price)
        for number, amount in self.day.deposits.items():
            billing.open_account(session, staging.account_id(number), CURRENCY)
            if amount > Decimal(0):
                billing.deposit(session, f"deposit-{number}", staging.account_id(number), amount)
