"""The shop's own tests, on real databases, without a running dispatcher."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from http import HTTPStatus

import httpx
import pytest
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import create_engine
from sqlalchemy.orm import Session, sessionmaker

from examples.shop import billing, orders
from examples.shop.contracts import OrderCancelled, OrderPlaced
from seapost.testing import FakeConsumer, TestDatabase, assert_appended, refute_appended, run_until_idle_async

ORDER = {"id": "order-17", "customer": "Ada", "cents": 1990}


@pytest.fixture
async def shop(seapost_database: TestDatabase) -> AsyncIterator[httpx.AsyncClient]:
    """Give a client of the orders service."""
    app = orders.create_app(seapost_database.dsn)
    inside = httpx.ASGITransport(app)
    async with app.router.lifespan_context(app), httpx.AsyncClient(transport=inside, base_url="http://shop") as client:
        yield client


@pytest.fixture
def office(seapost_database: TestDatabase) -> Iterator[sessionmaker[Session]]:
    """Give billing's tables, in the same database."""
    engine = create_engine("postgresql+psycopg://", connect_args=conninfo_to_dict(seapost_database.dsn))
    billing.Base.metadata.create_all(engine)
    seapost_database.connect(autocommit=True).execute("grant select, insert, update on invoices to seapost_consumer")
    yield sessionmaker(engine)
    engine.dispose()


async def test_an_order_and_its_event_are_one(shop: httpx.AsyncClient, seapost_database: TestDatabase) -> None:
    """A placed order has its event; one that is refused has none."""
    assert (await shop.post("/orders", json=ORDER)).status_code == HTTPStatus.CREATED
    assert_appended(seapost_database, OrderPlaced, key="order-17", cents=1990, to={"billing"})
    assert (await shop.post("/orders", json=ORDER | {"cents": 1})).status_code == HTTPStatus.CONFLICT
    refute_appended(seapost_database, OrderPlaced, cents=1)


async def test_a_cancellation_is_told_once(shop: httpx.AsyncClient, seapost_database: TestDatabase) -> None:
    """The second request changes nothing, so there is nothing to tell."""
    await shop.post("/orders", json=ORDER)
    for _ in range(2):
        assert (await shop.delete("/orders/order-17")).status_code == HTTPStatus.NO_CONTENT
    assert_appended(seapost_database, OrderCancelled, key="order-17", revision=2)
    assert (await shop.delete("/orders/order-18")).status_code == HTTPStatus.NOT_FOUND


async def test_an_order_becomes_one_invoice(
    shop: httpx.AsyncClient, office: sessionmaker[Session], seapost_database: TestDatabase
) -> None:
    """The real inbox, through to the receipt; a cancelled order costs nothing, whatever came first."""
    await shop.post("/orders", json=ORDER)
    await shop.delete("/orders/order-17")
    drained = await run_until_idle_async(seapost_database, billing.create_inbox(office))
    assert drained.acknowledged == 2
    with office() as session:
        invoice = session.get(billing.Invoice, "order-17")
        assert invoice is not None
        assert (invoice.cents, invoice.revision) == (0, 2)


async def test_a_lost_answer_costs_nothing(shop: httpx.AsyncClient, seapost_database: TestDatabase) -> None:
    """A consumer that applied and could not say so is asked again, and answers with its first receipt."""
    await shop.post("/orders", json=ORDER)
    consumer = FakeConsumer("billing")
    consumer.lose_next()
    assert (await run_until_idle_async(seapost_database, consumer)).acknowledged == 1
    assert (consumer.calls, len(consumer.received)) == (2, 1)
