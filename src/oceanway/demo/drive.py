"""The driver of the day, a process of its own: `python -m oceanway.demo.drive`.

It stands for the applications of core, execution and gateway, and for an operator: batch after batch it plays the waves
of the plan, waits for the bills, lets the providers change their word, and ends the cases that operations shows. It is
over when every run is billed, every late word was said, and nothing that came of it is under way.
"""

from __future__ import annotations

import argparse
import time
from contextlib import ExitStack
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Final

import psycopg

from oceanway.billing import admission as billing
from oceanway.demo import staging, store_day, waves
from oceanway.demo.ledger import LedgerWriter, prices
from oceanway.demo.operator import Operator
from oceanway.demo.plan import CURRENCY, Day, plan
from oceanway.installation.layout import Database, Kind, process_of
from oceanway.installation.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oceanway.demo.staging import StagedRun

BATCH: Final = 40
LOOK_SECONDS: Final = 0.5
QUIET_SECONDS: Final = 3.0
DISPUTE_SECONDS: Final = 1.0
PROGRAM: Final = "oceanway-drive"


@dataclass(frozen=True, slots=True)
class Arguments:
    """What the driver is told: how many runs of which seed, over how many seconds, and where to write its ledger.

    Attributes:
        first: number of the first run; other than 0 where days follow each other on one platform.
        batch: runs that begin together.
    """

    config: Path
    ledger: Path
    runs: int
    seed: int
    seconds: float
    first: int = 0
    batch: int = BATCH


class Driver:
    """Plays one day."""

    def __init__(
        self, arguments: Arguments, ledger: LedgerWriter, connections: dict[str, psycopg.Connection[Any]]
    ) -> None:
        self._arguments = arguments
        self._ledger = ledger
        self._sessions = waves.Sessions(
            billing=connections["billing"],
            core=connections["core"],
            execution=connections["execution"],
            gateway=connections["gateway"],
            metering=connections["metering"],
        )
        self._watch_billing = connections["watch-billing"]
        self._operator = Operator(self._sessions, connections["watch-core"], ledger)
        self._held: list[StagedRun] = []
        self._disputed: list[tuple[float, StagedRun]] = []
        self._pause = Event()

    def run(self) -> None:
        """Play the day to its end."""
        arguments = self._arguments
        self._ledger.day(arguments.seed, arguments.runs, arguments.first)
        day = plan(arguments.seed, arguments.runs, arguments.first)
        self._open_books(day)
        revised = self._play(day)
        self._finish(revised)

    def _open_books(self, day: Day) -> None:
        """Accounts with their deposits, and the price book."""
        session = self._sessions.billing
        with session.transaction():
            for (book, version), unit, price in prices():
                _ = billing.enter_price(session, billing.PriceKey(book, version, unit, CURRENCY), price)
            for number, amount in day.deposits.items():
                account = staging.account_id(number)
                _ = billing.open_account(session, account, CURRENCY)
                if amount > Decimal(0):
                    _ = billing.deposit(session, f"deposit-{account}", account, amount)

    def _play(self, day: Day) -> list[StagedRun]:
        """Every wave of every batch, at an even pace; the runs whose usage is revised later."""
        size = self._arguments.batch
        batches = [day.runs[start : start + size] for start in range(0, len(day.runs), size)]
        ready: dict[int, list[StagedRun]] = {}
        began = time.monotonic()
        turns = len(batches) + len(waves.WAVES) - 1
        for turn in range(turns):
            for number, wave in enumerate(waves.WAVES):
                place = turn - number
                if not 0 <= place < len(batches):
                    continue
                if number == 0:
                    ready[place] = [staging.stage(run) for run in batches[place]]
                    for run in ready[place]:
                        self._operator.knows(run)
                    self._held += [run for run in ready[place] if run.plan.is_held]
                wave(self._sessions, ready[place])
            self._held = waves.contradict(self._sessions, self._held)
            _ = self._operator.step()
            rest = began + self._arguments.seconds * (turn + 1) / turns - time.monotonic()
            if rest > 0:
                _ = self._pause.wait(rest)
        return [run for runs in ready.values() for run in runs if run.plan.is_revised]

    def _finish(self, waiting: list[StagedRun]) -> None:
        """Say the late words of each run once it is billed, end the cases, and leave when all is quiet."""
        quiet_since, before = time.monotonic(), (-1, -1)
        while True:
            waiting = self._revise(waiting)
            self._held = waves.contradict(self._sessions, self._held)
            self._concede()
            acted = self._operator.step()
            standing = store_day.catching_up(self._watch_billing)
            is_said = not waiting and not self._held and not self._disputed
            is_done = is_said and not store_day.unfinished(self._watch_billing) and not self._operator.waits()
            now = time.monotonic()
            if acted or not is_done or standing != before or standing[0]:
                quiet_since, before = now, standing
            elif now - quiet_since > QUIET_SECONDS:
                return
            _ = self._pause.wait(LOOK_SECONDS)

    def _concede(self) -> None:
        """End the disputes that have lasted long enough for billing to meet them."""
        now = time.monotonic()
        waves.concede(self._sessions, [run for until, run in self._disputed if until <= now])
        self._disputed = [(until, run) for until, run in self._disputed if until > now]

    def _revise(self, waiting: Sequence[StagedRun]) -> list[StagedRun]:
        """Revise the usage of the runs that are billed; those that are not yet."""
        if not waiting:
            return []
        billed = store_day.finalized(self._watch_billing, [run.run_id for run in waiting])
        due = [run for run in waiting if run.run_id in billed][:BATCH]
        if due:
            conceded = time.monotonic() + DISPUTE_SECONDS
            self._disputed += [(conceded, run) for run in waves.dispute(self._sessions, due)]
            waves.revise(self._sessions, due)
        done = {run.run_id for run in due}
        return [run for run in waiting if run.run_id not in done]


def main() -> None:
    """Read the arguments and play the day."""
    parser = argparse.ArgumentParser(prog="oceanway.demo.drive")
    _ = parser.add_argument("--config", type=Path, required=True)
    _ = parser.add_argument("--ledger", type=Path, required=True)
    _ = parser.add_argument("--runs", type=int, required=True)
    _ = parser.add_argument("--seed", type=int, required=True)
    _ = parser.add_argument("--seconds", type=float, required=True)
    _ = parser.add_argument("--first", type=int, default=0)
    _ = parser.add_argument("--batch", type=int, default=BATCH)
    given = parser.parse_args()
    arguments = Arguments(**vars(given))
    settings = load_settings(arguments.config)
    with ExitStack() as stack:
        connections = {
            name: stack.enter_context(
                psycopg.connect(
                    settings.process_dsn(process_of(kind, database.value)), autocommit=True, application_name=PROGRAM
                )
            )
            for name, kind, database in (
                ("billing", Kind.DRIVE, Database.BILLING),
                ("core", Kind.DRIVE, Database.CORE),
                ("execution", Kind.DRIVE, Database.EXECUTION),
                ("gateway", Kind.DRIVE, Database.GATEWAY),
                ("metering", Kind.DRIVE, Database.METERING),
                ("watch-billing", Kind.AUDIT, Database.BILLING),
                ("watch-core", Kind.AUDIT, Database.CORE),
            )
        }
        ledger = stack.enter_context(LedgerWriter(arguments.ledger))
        Driver(arguments, ledger, connections).run()


if __name__ == "__main__":
    main()
