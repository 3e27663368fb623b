"""What the suite runs on: every driver, directly, and on request also through both kinds of PgBouncer."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import pytest

from tests.kit import builders
from tests.kit.database import TestDatabase
from tests.kit.drivers.base import Driver, Producer
from tests.kit.drivers.catalogue import DRIVERS
from tests.kit.kernel import Kernel

ROUTES_VARIABLE: Final = "SEAPOST_TEST_PGBOUNCER"
"""Set, the suite runs through PgBouncer too: thrice the time, so not in every run."""

ROUTES: Final = ("direct", "plain", "prepared") if os.environ.get(ROUTES_VARIABLE) else ("direct",)
COUNTED: Final = "test.counted@1"
ROLE: Final = "seapost_producer"


@dataclass(frozen=True, slots=True)
class Route:
    """How producers reach the database; `prepared`: whether named prepared statements work there."""

    dsn: str
    prepared: bool


@dataclass(frozen=True, slots=True)
class Shop:
    """A database in which `test.counted@1` goes to billing, and producers own a table of business."""

    database: TestDatabase
    kernel: Kernel

    def numbers(self) -> list[int]:
        """The payload numbers of the events that others can see, in order."""
        rows = self.kernel.rows("select (event_payload ->> 'n')::int from seapost.outbox_events order by 1")
        return [row[0] for row in rows]

    def business(self) -> list[int]:
        """The business rows that others can see."""
        return [row[0] for row in self.kernel.rows("select n from public.business order by n")]


MakeProducer = Callable[..., Producer]


@pytest.fixture
def bare_shop(database: TestDatabase) -> Shop:
    """A shop before its first delivery set."""
    kernel = Kernel(database.connect(autocommit=True))
    kernel.run("create table public.business (n int primary key)")
    kernel.run("grant select, insert on public.business to seapost_producer")
    return Shop(database, kernel)


@pytest.fixture
def shop(bare_shop: Shop) -> Iterator[Shop]:
    """A shop whose routes are active; afterwards every invariant must hold."""
    bare_shop.kernel.route(routes={COUNTED: (builders.BILLING,)})
    yield bare_shop
    bare_shop.database.assert_places()


@pytest.fixture(params=ROUTES)
def route(request: pytest.FixtureRequest, database: TestDatabase) -> Route:
    """The way to the database."""
    if request.param == "direct":
        return Route(database.dsn, prepared=True)
    pooler = request.getfixturevalue(f"pgbouncer_{request.param}")
    return Route(pooler.dsn(database.dsn), prepared=pooler.prepared)


@pytest.fixture(params=list(DRIVERS))
def kind(request: pytest.FixtureRequest) -> type[Driver]:
    """Each library and mode in turn."""
    return DRIVERS[request.param]


@pytest.fixture
def make(kind: type[Driver], route: Route) -> Iterator[MakeProducer]:
    """Make producers of this kind; they are closed at the end."""
    made: list[Producer] = []

    def producer(*, autocommit: bool = False) -> Producer:
        made.append(Producer(kind, route.dsn, prepared=route.prepared, autocommit=autocommit, role=ROLE))
        return made[-1]

    yield producer
    for one in made:
        one.close()


@pytest.fixture
def producer(make: MakeProducer) -> Producer:
    """One producer."""
    return make()
