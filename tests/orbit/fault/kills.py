"""Kills the receiver example again and again: `python -m tests.orbit.fault.kills --kills 200` (`make orbit-kills`).

Ten receivers on one queue: each fail point of the example, and moments that a seed chooses, with SQLite and with
PostgreSQL inboxes. Results of all four types keep coming between the kills. At the end every inbox must be the journal,
text for text, every business change must have happened once, every delivery must be acknowledged, and the history
checker must find nothing. Leases are ended by hand, and the history says so; a real one is waited for by the tests.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from orbit.history.verdict import Verdict
from seapost.testing.databases import serve_databases
from tests.kit.database import SERVER_VARIABLE, DatabaseServer
from tests.kit.drivers.urls import url_of
from tests.kit.orbit.receivers import FAILPOINTS, Receiver, Stage, assert_received, stage

RANDOM: Final = "random"
STORES: Final = ("sqlite", "postgresql")
KILLS_PER_ROUND: Final = 5
RESULTS_EACH: Final = 12
PARALLEL: Final = 4
HANDLED_MAX: Final = 12


@dataclass(frozen=True, slots=True)
class Victim:
    """A receiver and where it is killed."""

    receiver: Receiver
    point: str
    rng: random.Random

    def round(self) -> None:
        """Kill it a few times, or until nothing is left to receive."""
        for _ in range(KILLS_PER_ROUND):
            if self.point == RANDOM:
                self.receiver.start()
                self.receiver.await_handled(self.rng.randint(1, HANDLED_MAX), hurry=True)
            else:
                self.receiver.start(self.point)
                if not self.receiver.await_marker(self.point, hurry=True):
                    self.receiver.stop()
                    return
            self.receiver.kill(age=True)

    def drain(self) -> None:
        """Let it receive everything that is left."""
        self.receiver.start()
        self.receiver.await_drained(hurry=True)
        self.receiver.stop()


def make_victims(
    server: DatabaseServer, open_stage: Stage, stack: ExitStack, *, points: tuple[str, ...], seed: int
) -> list[Victim]:
    """A receiver for each point and store; `stack` drops what they need."""
    victims: list[Victim] = []
    for store in STORES:
        for point in points:
            name = f"{store}-{point}"
            address = str(open_stage.folder / f"{name}.db")
            if store == "postgresql":
                database = server.create()
                stack.callback(server.drop, database)
                address = url_of(database.dsn)
            receiver = Receiver(name, open_stage, address)
            stack.callback(receiver.close)
            victims.append(Victim(receiver, point, random.Random(f"{seed}/{name}")))
    return victims


def play(server: DatabaseServer, folder: Path, *, kills: int, seed: int) -> tuple[list[Victim], Verdict, int]:
    """Kill, drain and check; return the victims, the verdict and the number of results."""
    with ExitStack() as stack:
        open_stage = stack.enter_context(stage(server, folder))
        victims = make_victims(server, open_stage, stack, points=(*FAILPOINTS, RANDOM), seed=seed)
        crowd = stack.enter_context(ThreadPoolExecutor(PARALLEL))
        while sum(victim.receiver.kills for victim in victims) < kills:
            open_stage.produce(RESULTS_EACH)
            list(crowd.map(Victim.round, victims))
            open_stage.resolve_reviews()
            say(f"{sum(victim.receiver.kills for victim in victims)} kills, {len(open_stage.journal())} results")
        list(crowd.map(Victim.drain, victims))
        journal = open_stage.journal()
        for victim in victims:
            assert_received(victim.receiver, journal)
            if victim.point == "after_commit":
                assert max(victim.receiver.attempts()) >= 2, f"{victim.receiver.name} was never redelivered to"
        return victims, open_stage.verdict(), len(journal)


def say(text: str) -> None:
    """One line of progress, at once."""
    print(text, flush=True)  # noqa: T201 - this is a program


def main() -> int:
    """Play and report; returns 0 only when nothing was lost, applied twice or broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.orbit.fault.kills", description="Kill the receiver.")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    options = parser.parse_args()
    say(f"seed {options.seed}: --seed {options.seed} plays this run again")
    started = time.monotonic()
    with serve_databases(os.environ.get(SERVER_VARIABLE)) as server, tempfile.TemporaryDirectory() as folder:
        victims, verdict, results = play(server, Path(folder), kills=options.kills, seed=options.seed)
    by_point: Counter[str] = Counter()
    for victim in victims:
        by_point[victim.point] += victim.receiver.kills
    for violation in verdict.violations:
        say(f"{violation.invariant} {violation.subject}: {violation.detail}")
    say(json.dumps({"kills": dict(by_point), "results": results, "history": verdict.lines, "aged": verdict.aged}))
    total, seconds = sum(by_point.values()), time.monotonic() - started
    clean = "clean" if verdict.holds else "broken"
    say(f"kills={total} results={results} inboxes={len(victims)} lost=0 applied_twice=0 history={clean} {seconds:.0f}s")
    return 0 if verdict.holds and total >= options.kills else 1


if __name__ == "__main__":
    sys.exit(main())
