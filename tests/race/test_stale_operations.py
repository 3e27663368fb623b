"""Thousands of stale words through every verb and every driver, and none believed (`make fencing` says 100,000)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product

import pytest

from seapost.model.delivery import Claim
from tests.fencing.callers import CALLERS
from tests.fencing.calls import Verb
from tests.fencing.campaign import Plan, campaign, restored
from tests.fencing.stock import Kind
from tests.kit.database import DatabaseServer, TestDatabase
from tests.kit.seeds import new_seed
from tests.kit.tree import sql_objects

PLAN = Plan(operations=4_000, batch_max=120)
TWIN_OPERATIONS_MAX = 1_000
COMPARISON = "and l.token = g.token"

Restored = tuple[TestDatabase, list[Claim]]
"""A copy of a database whose original went on for a while, and what was claimed there."""


@pytest.fixture
def each_restored_database(database_server: DatabaseServer, each_guard_database: TestDatabase) -> Iterator[Restored]:
    """Restore a database, once at guard level lean and once at strict."""
    copy, lost = restored(database_server, each_guard_database)
    yield copy, lost
    database_server.drop(copy)


@pytest.fixture
def restored_database(database_server: DatabaseServer, database: TestDatabase) -> Iterator[Restored]:
    """Restore a database at guard level lean."""
    copy, lost = restored(database_server, database)
    yield copy, lost
    database_server.drop(copy)


@pytest.mark.req("NEG-43", "CLM-05", "CLM-09", "TST-29", "TST-30", "TST-31", "TST-32", "DLV-13", "DLV-15", "F14", "F15")
def test_no_stale_operation_is_accepted(each_restored_database: Restored) -> None:
    """Neither the answers nor the tables show one believed, and every live word beside them is."""
    database, lost = each_restored_database
    tally = campaign(database, lost, random.Random(new_seed()), PLAN)
    assert (tally.operations >= PLAN.operations, tally.accepted) == (True, 0), str(tally)
    assert 0 < tally.live == tally.live_accepted, str(tally)
    assert {(verb, driver) for verb, driver, _ in tally.kinds} == set(product(Verb, CALLERS))
    assert {(verb, kind) for verb, _, kind in tally.kinds} == set(product(Verb, Kind))
    database.assert_places()


@pytest.mark.req("NEG-43")
@pytest.mark.parametrize("verb", Verb)
def test_without_the_token_some_are_accepted(restored_database: Restored, verb: Verb) -> None:
    """The same campaign notices when a function of the kernel stops comparing the token."""
    database, lost = restored_database
    (function,) = [item for item in sql_objects("function") if item.expected_name == f"seapost.delivery_{verb}_v1"]
    assert function.text.count(COMPARISON) == 1
    database.connect(autocommit=True).execute(function.text.replace(COMPARISON, "").encode())
    plan = Plan(operations=TWIN_OPERATIONS_MAX, batch_max=1, verbs=(verb,), stops=True)
    tally = campaign(database, lost, random.Random(new_seed()), plan)
    assert tally.accepted > 0, str(tally)
