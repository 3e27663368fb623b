"""Whatever the order in which events are appended, fed and delivered, a version ends as the fold of all of them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator

import pytest

from seapost.database.installer import GuardLevel
from seapost.model.outcome import Acknowledged
from tests.kit import accounts as kit
from tests.kit.database import DatabaseServer, TestDatabase
from tests.kit.kernel import Kernel
from tests.kit.seeds import new_seed

ROUNDS = 12


@pytest.fixture
def database(database_server: DatabaseServer) -> Iterator[TestDatabase]:
    """Give a database in which version 1 is read and version 2 is known."""
    database = database_server.create(GuardLevel.LEAN)
    kit.prepare_database(database, "1", "2")
    yield database
    database_server.drop(database)


@pytest.mark.req("OPS-11", "OPS-12", "ORD-02", "ORD-03", "SET-32")
def test_any_order_of_appends_feeds_and_deliveries_ends_as_the_fold(database: TestDatabase) -> None:
    """Gaps heal by themselves; what a delivery brought is not fed again, and the reverse; each event counts once."""
    seed = new_seed()
    choice = random.Random(seed)
    done: list[bytes] = []
    with database.connect(autocommit=True) as connection:
        kernel = Kernel(connection)
        for round_ in range(ROUNDS):
            envelopes = [
                kit.moved(f"{round_}-{account}", revision, choice.randrange(-9, 9))
                for account in range(choice.randrange(1, 4))
                for revision in range(1, choice.randrange(2, 7))
            ]
            done += envelopes
            choice.shuffle(envelopes)
            waiting = list(envelopes)
            while waiting:
                part = [waiting.pop() for _ in range(min(len(waiting), choice.randrange(1, 4)))]
                kernel.append(*part)
                if choice.random() < 0.5:
                    _ = kit.rebuild(database, kit.accounts("2", many=choice.random() < 0.5), batch=3, workers=1)
            foreign = [kit.moved(f"{round_}-f", revision, 1, producer="harbour") for revision in (1, 2, 3)]
            done += foreign
            todo = [kit.delivery(text, "2") for text in foreign]
            while todo:
                outcomes = asyncio.run(kit.deliver(database, kit.accounts("2"), *choice.sample(todo, len(todo))))
                settled = sum(isinstance(outcome, Acknowledged) for outcome in outcomes)
                assert settled, f"seed {seed}"
                if settled == len(todo):
                    todo = []
        report = kit.rebuild(database, kit.accounts("2"))
        assert (report.is_complete, kernel.value(kit.GAPS)) == (True, 0), f"seed {seed}"
        assert kit.balances(kernel, "2") == kit.fold_of(done), f"seed {seed}"
        assert kit.receipts(kernel, "2") == len(done)
