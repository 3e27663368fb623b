"""What only Django has: several databases, transactions by hand, and blocks that are broken before they end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from django.core.exceptions import SynchronousOnlyOperation
from django.db import OperationalError, transaction

from seapost.contracts.events import Event
from seapost.model.errors import AppendOutsideTransaction, InvalidSetting
from tests.conformance.conftest import COUNTED, Shop
from tests.kit import builders
from tests.kit.database import DatabaseServer, GuardLevel
from tests.kit.drivers.django_drivers import add_database, atomic, connections
from tests.kit.kernel import Kernel

from seapost.adapters.django import DjangoTransactions, append, append_many  # isort: skip - after Django's settings


class Counted(Event, type="test.counted@1", producer="tests", aggregate="counter"):
    """An event that is routed."""

    n: int


@pytest.fixture
def alias(shop: Shop) -> Iterator[str]:
    """The shop's database as Django knows it."""
    made = add_database(shop.database.dsn)
    yield made
    connections[made].close()


@pytest.fixture
def other(database_server: DatabaseServer) -> Iterator[tuple[str, Kernel]]:
    """A second database with routes of its own."""
    database = database_server.create(GuardLevel.LEAN)
    kernel = Kernel(database.connect(autocommit=True))
    kernel.route(routes={COUNTED: (builders.BILLING,)})
    made = add_database(database.dsn)
    yield made, kernel
    connections[made].close()
    database_server.drop(database)


def test_each_database_has_its_own_outbox(alias: str, other: tuple[str, Kernel], shop: Shop) -> None:
    """`using` decides; an open block on another database is no transaction on this one."""
    second, kernel = other
    with atomic(alias), atomic(second):
        append(Counted(n=1), key="c-1", revision=1, using=alias)
        append(Counted(n=2), key="c-2", revision=1, using=second)
    with atomic(alias), pytest.raises(AppendOutsideTransaction):
        append(Counted(n=3), key="c-3", revision=1, using=second)

    assert shop.numbers() == [1]
    assert kernel.count("event") == 1


def test_transactions_by_hand(alias: str, shop: Shop) -> None:
    """With autocommit switched off there is a transaction without a block."""
    switch: Any = transaction
    switch.set_autocommit(False, using=alias)
    append(Counted(n=1), key="c-1", revision=1, using=alias)
    assert shop.numbers() == []
    switch.commit(using=alias)

    assert shop.numbers() == [1]


def test_a_block_that_can_only_be_rolled_back(alias: str, shop: Shop) -> None:
    """Django's own refusal passes, and nothing is appended."""
    with atomic(alias):
        connections[alias].needs_rollback = True
        with pytest.raises(transaction.TransactionManagementError):
            append(Counted(n=1), key="c-1", revision=1, using=alias)

    assert shop.numbers() == []


async def test_an_event_loop_is_no_place_for_it(alias: str, shop: Shop) -> None:
    """Django refuses its connection inside a running loop; in a thread the same call works."""
    with pytest.raises(SynchronousOnlyOperation):
        append(Counted(n=1), key="c-1", revision=1, using=alias)

    def place() -> None:
        with atomic(alias):
            append(Counted(n=2), key="c-2", revision=1, using=alias)
        connections[alias].close()

    await asyncio.to_thread(place)
    assert shop.numbers() == [2]


def test_another_database_is_refused() -> None:
    """The message names the alias and what it is."""
    connections.settings["lite"] = {**connections.settings["default"], "ENGINE": "django.db.backends.sqlite3"}
    connections.settings["lite"]["NAME"] = ":memory:"
    with pytest.raises(InvalidSetting, match="'lite' is sqlite"):
        append_many([], using="lite")


def test_a_lost_connection_is_replaced(alias: str, shop: Shop) -> None:
    """After the server ended the session Django connects again for the next block."""
    with suppress(OperationalError), atomic(alias):
        shop.database.kill(connections[alias].connection.info.backend_pid)
        with pytest.raises(OperationalError):
            append(Counted(n=1), key="c-1", revision=1, using=alias)
    connections[alias].close_if_unusable_or_obsolete()
    with atomic(alias):
        append(Counted(n=2), key="c-2", revision=1, using=alias)

    assert shop.numbers() == [2]


def test_an_inbox_has_at_least_one_thread() -> None:
    """The limit is named."""
    with pytest.raises(InvalidSetting, match="at least one thread"):
        DjangoTransactions(threads=0)
